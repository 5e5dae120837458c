/* SPDX-License-Identifier: MIT */
/* Cases and checks of programs that run in the emulated machine. */
#ifndef PTKIT_TESTS_KERNEL_CHECK_H
#define PTKIT_TESTS_KERNEL_CHECK_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

extern int failures; /* of the case that runs */

#define CHECK(what)                                                                   \
  do {                                                                                \
    if (!(what)) {                                                                    \
      failures++;                                                                     \
      printf("# %s:%d: %s (errno %s)\n", __FILE__, __LINE__, #what, strerror(errno)); \
    }                                                                                 \
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

/* A call that fails with an errno. */
#define CHECK_FAILS(call, expected)                                                                         \
  do {                                                                                                      \
    errno = 0;                                                                                              \
    long long done = (long long)(call);                                                                     \
    if (done != -1 || errno != (expected)) {                                                                \
      failures++;                                                                                           \
      printf("# %s:%d: %s gave %lld, errno %s, not %s\n", __FILE__, __LINE__, #call, done, strerror(errno), \
             #expected);                                                                                    \
    }                                                                                                       \
  } while (0)

#endif /* PTKIT_TESTS_KERNEL_CHECK_H */
