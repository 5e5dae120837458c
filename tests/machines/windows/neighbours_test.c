// SPDX-License-Identifier: MIT
/* Others that use the trace unit or its interrupt, as scripts. */
#include <string.h>

#include "cases.h"
#include "check.h"
#include "ptkit/rtit_regs.h"
#include "session.h"

#define TICK_MS 20 /* of the driver's timer */

/* As another tracer left them: all of them have values. */
static struct model_registers foreign(uint32_t cpu, bool traces) {
  struct model_registers registers;
  memset(&registers, 0, sizeof(registers));
  registers.cpu = cpu;
  registers.ctl = 1ULL << PT_CTL_TSC_EN | 1ULL << PT_CTL_USER | (traces ? 1 : 0);
  registers.status = 77ULL << PT_STATUS_PACKET_BYTE_COUNT_SHIFT;
  registers.output_base = 0x7000;
  registers.mask_ptrs = 5ULL << PT_OUTPUT_OFFSET_SHIFT | PT_OUTPUT_MASK_LOWEST;
  registers.cr3_match = 0x123000;
  for (uint64_t i = 0; i < 8; i++) registers.addr[i] = 0x1000 * i;
  registers.debugctl = 1ULL << PT_DEBUGCTL_LBR;
  registers.ds_area = 0x55550000;
  return registers;
}

static bool has_registers(void* device, const struct model_registers* wanted) {
  struct model_registers now = registers_of(device, wanted->cpu);
  return memcmp(&now, wanted, sizeof(now)) == 0;
}

void puts_registers_back(void) {
  void* device = device_open();
  struct model_registers before = foreign(0, false);
  for (uint32_t output = 0; output <= PTKIT_OUTPUT_BTS; output++) {
    struct ptkit_windows_config config = simple_config(0);
    config.config.output = output;
    config.config.mode = PTKIT_MODE_RING;
    if (output != PTKIT_OUTPUT_BTS) {
      config.config.process = USER_PROCESS;
      config.config.range_count = 2;
      for (int i = 0; i < 2; i++) {
        config.config.ranges[i].action = PTKIT_RANGE_FILTER + (unsigned)i;
        config.config.ranges[i].last = 0xfff;
      }
    }
    put_registers(device, &before);
    void* session = open_session(config);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
    CHECK(!has_registers(device, &before));
    execute(session, 0, 0, (uint64_t)USER_PROCESS << 16, 1000, NULL);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_PAUSE), DEVICE_SUCCESS);
    CHECK(has_registers(device, &before));
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_RESUME), DEVICE_SUCCESS);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
    CHECK(has_registers(device, &before));
    device_close(session);
  }
  device_close(device);
}

/* With all processors, of which another tracer has one: none is started, and none is changed. */
void leaves_the_unit_of_another_tracer(void) {
  struct ptkit_windows_config config = simple_config(0);
  config.config.target = PTKIT_TARGET_ALL;
  void* session = open_session(config);
  for (uint32_t cpu = 0; cpu < MODEL_CPUS; cpu++) {
    struct model_registers other = foreign(cpu, cpu == 2);
    put_registers(session, &other);
  }
  CHECK_REFUSED(session, command(session, PTKIT_WINDOWS_START), DEVICE_BUSY, PTKIT_REASON_OWNER);
  CHECK_EQUAL(refusal_of(session).cpu, 2);
  for (uint32_t cpu = 0; cpu < MODEL_CPUS; cpu++) {
    struct model_registers other = foreign(cpu, cpu == 2);
    CHECK(has_registers(session, &other));
  }
  struct model_registers free_again = foreign(2, false);
  put_registers(session, &free_again);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  device_close(session);
}

void shares_no_processor(void) {
  struct ptkit_windows_config all = simple_config(0);
  all.config.target = PTKIT_TARGET_ALL;
  void* first = open_session(simple_config(3));
  void* second = open_session(all);
  CHECK_EQUAL(command(first, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  CHECK_REFUSED(second, command(second, PTKIT_WINDOWS_START), DEVICE_BUSY, PTKIT_REASON_SESSION);
  CHECK_EQUAL(refusal_of(second).cpu, 3);
  CHECK(status_of(first, 3).flags & PTKIT_STATUS_RUNNING);
  CHECK_EQUAL(command(first, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  CHECK_EQUAL(command(second, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  device_close(first);
  device_close(second);
}

/* Traces and reads, with time for the timer in between; nothing is lost. */
static void trace_slowly(const char* name, uint32_t number) {
  struct bytes stream = {0}, log = {0};
  void* session = open_session(wake_up_config(0, 65536, 8192));
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  for (int i = 0; i < 30; i++) {
    execute(session, 0, 0, 0, 8000, &log);
    sleep_ms(2 * TICK_MS);
    consume_all(session, 0, &stream);
  }
  CHECK(stream.count > 2 * 65536);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  consume_all(session, 0, &stream);
  CHECK_EQUAL(status_of(session, 0).stops, 0);
  CHECK_EQUAL(counts_of(session).dropped_bytes, 0);
  write_bytes(&stream, name, number, "pt");
  write_bytes(&log, name, number, "log");
  free_bytes(&stream);
  free_bytes(&log);
  device_close(session);
}

/* Another handler acknowledges them; then they are not delivered either. */
void goes_on_after_swallowed_interrupts(void) {
  void* device = device_open();
  for (uint32_t how = 1; how <= 2; how++) {
    set_model(device, MODEL_SWALLOW, 0, how);
    trace_slowly("goes_on_after_swallowed_interrupts", how);
  }
  CHECK(counts_of(device).swallowed > 2);
  device_close(device);
}

static void load_with(uint32_t parameter) {
  struct model_set set = {parameter, 0, 1};
  CHECK_EQUAL(driver_unload(), 0);
  CHECK_EQUAL(driver_load_with(&set, 1), 0);
}

/* The interrupt cannot be unmasked; then another driver has it. */
void goes_on_without_interrupts(void) {
  struct ptkit_windows_query query = {0};
  load_with(MODEL_CANNOT_ARM);
  trace_slowly("goes_on_without_interrupts", 0);
  load_with(MODEL_NO_INTERRUPTS);
  trace_slowly("goes_on_without_interrupts", 1);
  void* device = device_open();
  CHECK_EQUAL(device_request(device, PTKIT_WINDOWS_QUERY, NULL, 0, &query, sizeof(query), NULL),
              DEVICE_SUCCESS);
  CHECK_EQUAL(query.system, 0);
  CHECK_EQUAL(counts_of(device).interrupts, 0);
  struct ptkit_windows_config config = simple_config(0);
  config.config.output = PTKIT_OUTPUT_BTS;
  CHECK_CONFIG_REFUSED(config, DEVICE_BUSY, PTKIT_REASON_INTERRUPT,
                       offsetof(struct ptkit_windows_config, config.mode));
  device_close(device);
}

/* As VMXON does it where the processor cannot trace in VMX operation. */
void goes_on_where_it_was_cleared(void) {
  struct bytes stream = {0}, log = {0};
  void* session = open_session(wake_up_config(0, 65536, 8192));
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  for (uint64_t i = 1; i <= 5; i++) {
    execute(session, 0, 0, 0, 3000, &log);
    set_model(session, MODEL_CLEAR_TRACE_EN, 0, 1);
    sleep_ms(4 * TICK_MS);
    struct ptkit_status status = status_of(session, 0);
    CHECK(status.flags & PTKIT_STATUS_CLEARED);
    CHECK(status.flags & PTKIT_STATUS_RUNNING);
    CHECK_EQUAL(status.clears, i);
    CHECK(status.cleared_at <= status.head && status.cleared_at + 256 > status.head);
    consume_all(session, 0, &stream);
  }
  execute(session, 0, 0, 0, 1000, &log);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  consume_all(session, 0, &stream);
  write_bytes(&stream, "goes_on_where_it_was_cleared", 0, "pt");
  write_bytes(&log, "goes_on_where_it_was_cleared", 0, "log");
  free_bytes(&stream);
  free_bytes(&log);
  device_close(session);
}

/* Each access of a start and of a stop in turn. */
void ends_where_a_register_faults(void) {
  void* device = device_open();
  struct model_registers before = foreign(1, false);
  uint32_t faults = 0;
  for (uint32_t number = 1; number < 40; number++) {
    void* session = open_session(wake_up_config(1, 65536, 8192));
    put_registers(device, &before);
    set_model(device, MODEL_FAULT, 0, number);
    int32_t status = command(session, PTKIT_WINDOWS_START);
    set_model(device, MODEL_FAULT, 0, 0);
    if (status != DEVICE_SUCCESS) {
      faults++;
      CHECK_REFUSED(session, status, DEVICE_IO_ERROR, PTKIT_REASON_FAULT);
      CHECK_EQUAL(registers_of(device, 1).ctl, before.ctl);
    }
    device_close(session);
    CHECK_EQUAL(registers_of(device, 1).ctl, before.ctl);
  }
  CHECK(faults > 5);
  void* session = open_session(wake_up_config(1, 65536, 8192));
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  set_model(device, MODEL_FAULT_CTL, 0, 1 + 1);
  CHECK_REFUSED(session, command(session, PTKIT_WINDOWS_STOP), DEVICE_IO_ERROR, PTKIT_REASON_FAULT);
  set_model(device, MODEL_FAULT_CTL, 0, 0);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  CHECK(has_registers(device, &before));
  device_close(session);
  device_close(device);
}

/* Such a unit is shown by CPUID. What it is to be seen by is that it stops with an error. */
void says_that_a_hypervisor_denies_the_unit(void) {
  for (uint32_t system = 0; system <= PTKIT_SYSTEM_HYPERVISOR; system += PTKIT_SYSTEM_HYPERVISOR) {
    const struct model_set sets[] = {{MODEL_SYSTEM, 0, system}, {MODEL_DENIES, 0, 1}};
    CHECK_EQUAL(driver_unload(), 0);
    CHECK_EQUAL(driver_load_with(sets, 2), 0);
    void* session = open_session(wake_up_config(1, 65536, 8192));
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
    execute(session, 1, 0, 0, 100, NULL);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
    CHECK_EQUAL(status_of(session, 1).error, system ? PTKIT_REASON_DENIED : PTKIT_REASON_ERROR);
    device_close(session);
  }
}

/* A buffer that is 64 times as large takes no more accesses. */
void does_bounded_work_in_interrupts(void) {
  uint64_t most[2];
  for (uint32_t i = 0; i < 2; i++) {
    void* session = open_session(wake_up_config(0, i ? 4 << 20 : 65536, 8192));
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
    for (int j = 0; j < 20; j++) {
      execute(session, 0, 0, 0, 3000, NULL);
      struct bytes stream = {0};
      consume_all(session, 0, &stream);
      free_bytes(&stream);
    }
    most[i] = counts_of(session).most_accesses;
    CHECK(counts_of(session).interrupts > 0);
    device_close(session);
  }
  CHECK(most[0] > 5 && most[0] < 40);
  CHECK_EQUAL(most[1], most[0]);
}
