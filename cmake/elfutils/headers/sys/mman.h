// Files are not mapped: all ELF files are in memory.
#pragma once

#include <stddef.h>

#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_FAILED ((void*)-1)
#define mmap(address, size, protection, flags, descriptor, offset) MAP_FAILED
#define munmap(address, size) (-1)
