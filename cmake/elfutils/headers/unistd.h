// Nothing is read by a file descriptor: all ELF files are in memory.
#pragma once

#include <sys/types.h>
#include_next <unistd.h>

#define _SC_PAGESIZE 30
#define sysconf(name) 4096
#define pread(descriptor, to, size, offset) ((ssize_t)-1)
#define pwrite(descriptor, from, size, offset) ((ssize_t)-1)
#define realpath(path, to) ((char*)NULL)
