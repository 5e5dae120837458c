/* SPDX-License-Identifier: MIT */
/* Sessions of the driver, and what the model executes for them. */
#ifndef PTKIT_TESTS_WINDOWS_SESSION_H
#define PTKIT_TESTS_WINDOWS_SESSION_H

#include "control.h"
#include "device.h"
#include "ptkit/ptkit_windows.h"

#define USER_PROCESS 1234

/* All branches of user and kernel code of one processor to a full ToPA. */
struct ptkit_windows_config simple_config(uint32_t cpu);
/* ... handed over while it goes on. */
struct ptkit_windows_config wake_up_config(uint32_t cpu, uint64_t buffer_bytes, uint64_t wake_up_bytes);
/* Opened and configured; checks that. */
void* open_session(struct ptkit_windows_config config);
/* A request without input and output. */
int32_t command(void* session, uint32_t code);
struct ptkit_status status_of(void* session, uint32_t cpu);
struct ptkit_windows_refusal refusal_of(void* session);
/* The request ends with this status, and PTKIT_WINDOWS_REFUSAL tells the reason. */
#define CHECK_REFUSED(session, request, status, because) \
  check_refused(session, request, status, because, __FILE__, __LINE__)
void check_refused(void* session, int32_t is, int32_t status, uint32_t reason, const char* file, int line);
/* A new session refuses this configuration, and names the field. */
#define CHECK_CONFIG_REFUSED(config, status, because, field) \
  check_config_refused(config, status, because, field, __FILE__, __LINE__)
void check_config_refused(struct ptkit_windows_config config, int32_t status, uint32_t reason, size_t field,
                          const char* file, int line);

/* Bytes that grow. */
struct bytes {
  uint8_t* all;
  size_t count;
};
void add_bytes(struct bytes* bytes, const void* more, size_t count);
void write_bytes(const struct bytes* bytes, const char* name, uint32_t cpu, const char* kind);
void free_bytes(struct bytes* bytes);
/* Writes program.NUMBER.code: struct model_program and the code of one of MODEL_PROGRAM_*. */
void write_program(void* device, uint32_t number);

/* Bytes [offset, offset + count) of a buffer; wraps. */
void read_buffer(void* session, uint32_t cpu, uint32_t what, uint64_t offset, uint64_t count,
                 struct bytes* out);
/* Bytes that can be read and were not yet consumed; consumes them. */
void consume_all(void* session, uint32_t cpu, struct bytes* out);
void consume_sideband(void* session, struct bytes* out);

void set_model(void* device, uint32_t parameter, uint32_t cpu, uint64_t value);
void reset_model(void* device);
struct model_registers registers_of(void* device, uint32_t cpu);
void put_registers(void* device, const struct model_registers* registers);
struct model_counts counts_of(void* device);
/* Executes blocks; adds their log. */
void execute(void* device, uint32_t cpu, uint32_t thread, uint64_t cr3, uint32_t blocks, struct bytes* log);
void sleep_ms(uint32_t ms);
void tell(void* device, uint32_t event, uint32_t pid, uint32_t tid, bool begins);

#endif /* PTKIT_TESTS_WINDOWS_SESSION_H */
