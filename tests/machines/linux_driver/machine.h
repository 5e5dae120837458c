/* SPDX-License-Identifier: MIT */
/* Requests of tests to the emulated machine and to the driver's device. */
#ifndef PTKIT_TESTS_KERNEL_MACHINE_H
#define PTKIT_TESTS_KERNEL_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptkit/ptkit_ioctl.h"

#define REAL_MODULE "/lib/real.ko"
#define MODEL_MODULE "/lib/model.ko"
#define OTHER_MODULE "/lib/other.ko"

/* 0, or errno. */
int load_module(const char* path);
int load_module_with(const char* path, const char* parameters);
int unload_module(void);

void write_file(const char* path, const char* text);
/* A parameter of the model. */
void set_parameter(const char* name, int value);
void set_online(int cpu, bool online);
/* The first number behind `name` in a file of /proc. */
long read_number(const char* path, const char* name);
bool log_has(const char* text);
/* The address of a symbol of the kernel or its modules; 0 if there is none. */
uint64_t module_symbol(const char* name);

/* Goes on as a user with one capability; -1: with none. */
void become_user(int capability);
int open_device(void);
/* The answer of the module over the model, loaded with these parameters. */
struct ptkit_query query_with(const char* parameters);
/* PTKIT_FEATURE_* of the module over the model, loaded with these parameters. */
uint64_t features_with(const char* parameters);
/* All branches of user and kernel code of one processor to a full ToPA. */
struct ptkit_config simple_config(uint32_t cpu);
/* This configuration, changed so, is refused with an error that names the field. */
#define EXPECT_REFUSED(config, error, field, ...)                   \
  do {                                                              \
    struct ptkit_config c = (config);                               \
    __VA_ARGS__;                                                    \
    expect_refused(c, error, offsetof(struct ptkit_config, field)); \
  } while (0)
void expect_refused(struct ptkit_config config, int error, size_t field);
/* Opened and configured. */
int open_session(struct ptkit_config config);
struct ptkit_status status_of(int session, uint32_t cpu);
/* The processor's buffer; null if it cannot be mapped. */
const uint8_t* map_buffer(int session, uint32_t cpu, uint64_t* bytes);
/* Whether each byte is followed by the next one that the model writes. */
bool is_stretch(const uint8_t* bytes, uint64_t count);

/* Random requests for a while (fuzz.c); how many. */
int fuzz_driver(unsigned seconds);

#endif /* PTKIT_TESTS_KERNEL_MACHINE_H */
