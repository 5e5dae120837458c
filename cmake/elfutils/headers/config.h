// The configuration of elfutils for Windows.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define PACKAGE_NAME "elfutils"
#define HAVE_ERROR_H 1
#define HAVE_DECL_MEMPCPY 0
#define HAVE_DECL_POWEROF2 0
#define HAVE_DECL_REALLOCARRAY 0
#define HAVE_GCC_STRUCT 1
#define USE_LOCKS 1
#define assert_perror(number) assert((number) == 0)

typedef unsigned int uid_t;
typedef unsigned int gid_t;

static inline char* stpcpy(char* to, const char* from) {
  const size_t size = strlen(from);
  memcpy(to, from, size + 1);
  return to + size;
}

#include <eu-config.h>
