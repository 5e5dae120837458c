/* SPDX-License-Identifier: MIT */
/* Cases and checks of programs that run in Wine, or natively. */
#ifndef PTKIT_TESTS_WINDOWS_CHECK_H
#define PTKIT_TESTS_WINDOWS_CHECK_H

#include <stdbool.h>
#include <stdio.h>

extern int failures; /* of the case that runs */

extern bool may_be_abandoned; /* the driver, by a case that lets registers fault at any time */

#define MOST_PRINTED 12

#define CHECK(what)                                                                      \
  do {                                                                                   \
    if (!(what)) {                                                                       \
      if (failures++ < MOST_PRINTED) printf("# %s:%d: %s\n", __FILE__, __LINE__, #what); \
    }                                                                                    \
  } while (0)

#define CHECK_EQUAL(left, right)                                                          \
  do {                                                                                    \
    long long is = (long long)(left);                                                     \
    long long should = (long long)(right);                                                \
    if (is != should) {                                                                   \
      if (failures++ < MOST_PRINTED)                                                      \
        printf("# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #left, is, should); \
    }                                                                                     \
  } while (0)

#endif /* PTKIT_TESTS_WINDOWS_CHECK_H */
