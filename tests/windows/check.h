/* SPDX-License-Identifier: MIT */
/* Cases and checks of programs that run in Wine. */
#ifndef PTKIT_TESTS_WINDOWS_CHECK_H
#define PTKIT_TESTS_WINDOWS_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <windows.h>

extern int failures; /* of the case that runs */

#define CHECK(what)                                                                                  \
  do {                                                                                               \
    if (!(what)) {                                                                                   \
      failures++;                                                                                    \
      printf("# %s:%d: %s (error %lu)\n", __FILE__, __LINE__, #what, (unsigned long)GetLastError()); \
    }                                                                                                \
  } while (0)

#define CHECK_EQUAL(left, right)                                                        \
  do {                                                                                  \
    long long is = (long long)(left);                                                   \
    long long should = (long long)(right);                                              \
    if (is != should) {                                                                 \
      failures++;                                                                       \
      printf("# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #left, is, should); \
    }                                                                                   \
  } while (0)

#endif /* PTKIT_TESTS_WINDOWS_CHECK_H */
