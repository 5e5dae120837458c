// SPDX-License-Identifier: MIT
/*
 * The entry of test builds: begins shims and model, then the driver, and takes the requests of control.h out
 * of those that the driver gets. At the end it tells what the driver has not given back.
 */
#include <ntifs.h>

#include "common/pt_types.h"
#include "host.h"
#include "model.h"
#include "ptkit/rtit_regs.h"
#include "shims.h"

static PDRIVER_DISPATCH driver_control;
static PDRIVER_UNLOAD driver_unload;

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path);
NTSTATUS NTAPI TestEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path);

struct request {
  void* bytes; /* input, then output */
  ULONG in;
  ULONG room;
  ULONG_PTR out;
};

static NTSTATUS set(struct request* request) {
  if (request->in != sizeof(struct model_set) || !model_set(request->bytes)) return STATUS_INVALID_PARAMETER;
  return STATUS_SUCCESS;
}

static NTSTATUS get_registers(struct request* request) {
  const uint32_t* cpu = request->bytes;
  uint32_t before;
  if (request->in != sizeof(*cpu) || *cpu >= MODEL_CPUS || request->room < sizeof(struct model_registers))
    return STATUS_INVALID_PARAMETER;
  struct model_unit* unit = model_take(*cpu, &before);
  struct model_registers registers = unit->registers;
  model_give_back(unit, before);
  RtlCopyMemory(request->bytes, &registers, sizeof(registers));
  request->out = sizeof(registers);
  return STATUS_SUCCESS;
}

static NTSTATUS put_registers(struct request* request) {
  const struct model_registers* registers = request->bytes;
  uint32_t before;
  if (request->in != sizeof(*registers) || registers->cpu >= MODEL_CPUS) return STATUS_INVALID_PARAMETER;
  struct model_unit* unit = model_take(registers->cpu, &before);
  if (!(registers->ctl & PT_BIT(PT_CTL_TRACE_EN))) model_trace_disabled(unit);
  unit->registers = *registers;
  model_give_back(unit, before);
  return STATUS_SUCCESS;
}

/* One block at a time, so that calls and DPCs come in between. */
static NTSTATUS execute(struct request* request) {
  struct model_execute wanted = *(struct model_execute*)request->bytes;
  uint64_t* log = request->bytes;
  struct model_thread* thread = thread_of(wanted.thread);
  if (request->in != sizeof(wanted) || wanted.cpu >= MODEL_CPUS || thread == NULL ||
      thread->program->count == 0 || wanted.blocks > request->room / sizeof(*log))
    return STATUS_INVALID_PARAMETER;
  for (uint32_t i = 0; i < wanted.blocks; i++) {
    uint32_t before;
    struct model_unit* unit = model_take(wanted.cpu, &before);
    if (thread->cr3 != wanted.cr3 || thread->cpu != wanted.cpu) model_switch(unit, NULL);
    thread->cr3 = wanted.cr3;
    thread->cpu = wanted.cpu;
    model_switch(unit, thread);
    log[i] = thread_step(thread, unit);
    model_give_back(unit, before);
  }
  request->out = wanted.blocks * sizeof(*log);
  return STATUS_SUCCESS;
}

static NTSTATUS get_program(struct request* request) {
  const struct program* program = program_of(*(uint32_t*)request->bytes);
  struct model_program* answer = request->bytes;
  if (request->in != sizeof(uint32_t) || program == NULL || program->code == NULL ||
      request->room < sizeof(*answer) + PROGRAM_BYTES)
    return STATUS_INVALID_PARAMETER;
  *answer = (struct model_program){program->base, PROGRAM_BYTES};
  RtlCopyMemory(answer + 1, program->code, PROGRAM_BYTES);
  request->out = sizeof(*answer) + PROGRAM_BYTES;
  return STATUS_SUCCESS;
}

static NTSTATUS load(struct request* request) {
  const struct model_load* image = request->bytes;
  const struct model_block* blocks = (const struct model_block*)(image + 1);
  if (request->in < sizeof(*image) || (request->in - sizeof(*image)) / sizeof(*blocks) != image->count ||
      !program_load(image->base, image->first, blocks, image->count))
    return STATUS_INVALID_PARAMETER;
  return STATUS_SUCCESS;
}

static NTSTATUS get_counts(struct request* request) {
  struct model_counts counts = model_counts();
  if (request->room < sizeof(counts)) return STATUS_INVALID_PARAMETER;
  RtlCopyMemory(request->bytes, &counts, sizeof(counts));
  request->out = sizeof(counts);
  return STATUS_SUCCESS;
}

static void tell_image(const struct model_tell* tell) {
  IMAGE_INFO info = {0};
  UNICODE_STRING path = {(USHORT)tell->path_bytes, (USHORT)tell->path_bytes, (PWSTR)tell->path};
  info.ImageBase = (PVOID)(ULONG_PTR)tell->address;
  info.ImageSize = (SIZE_T)tell->bytes;
  info.SystemModeImage = tell->pid == 0;
  if (info.SystemModeImage) shim_add_driver(&path, &info);
  shim_notify_image(tell->path_bytes == 0 ? NULL : &path, (HANDLE)(ULONG_PTR)tell->pid, &info);
}

static NTSTATUS tell(struct request* request) {
  const struct model_tell* event = request->bytes;
  if (request->in != sizeof(*event) || event->path_bytes > sizeof(event->path))
    return STATUS_INVALID_PARAMETER;
  HANDLE pid = (HANDLE)(ULONG_PTR)event->pid;
  HANDLE other = (HANDLE)(ULONG_PTR)event->tid;
  if (event->event == MODEL_TELL_PROCESS)
    shim_notify_process(other, pid, event->begins != 0);
  else if (event->event == MODEL_TELL_THREAD)
    shim_notify_thread(pid, other, event->begins != 0);
  else if (event->event == MODEL_TELL_IMAGE)
    tell_image(event);
  else
    shim_notify_power(event->begins != 0);
  return STATUS_SUCCESS;
}

static NTSTATUS reset(struct request* request) {
  UNREFERENCED_PARAMETER(request);
  model_reset_parameters();
  return STATUS_SUCCESS;
}

static const struct {
  uint32_t code;
  NTSTATUS (*function)(struct request* request);
} requests[] = {
    {MODEL_SET, set},
    {MODEL_REGISTERS, get_registers},
    {MODEL_PUT_REGISTERS, put_registers},
    {MODEL_EXECUTE, execute},
    {MODEL_PROGRAM, get_program},
    {MODEL_COUNTS, get_counts},
    {MODEL_TELL, tell},
    {MODEL_RESET, reset},
    {MODEL_LOAD, load},
};

static NTSTATUS NTAPI control(PDEVICE_OBJECT device, PIRP irp) {
  PIO_STACK_LOCATION location = IoGetCurrentIrpStackLocation(irp);
  struct request request = {irp->AssociatedIrp.SystemBuffer,
                            location->Parameters.DeviceIoControl.InputBufferLength,
                            location->Parameters.DeviceIoControl.OutputBufferLength, 0};
  for (uint32_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
    if (requests[i].code != location->Parameters.DeviceIoControl.IoControlCode) continue;
    NTSTATUS status = requests[i].function(&request);
    irp->IoStatus.Status = status;
    irp->IoStatus.Information = request.out;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
    return status;
  }
  return driver_control(device, irp);
}

static void NTAPI unload(PDRIVER_OBJECT driver) {
  driver_unload(driver);
  shims_end();
  struct shim_counts left = shim_counts();
  if (left.runs != 0) host_report("unloaded, and memory was not given back\n");
  if (left.mappings != 0) host_report("unloaded, and a mapping was not given back\n");
  if (left.timers != 0) host_report("unloaded, and a timer is still set\n");
  if (left.routines != 0) host_report("unloaded, and a routine is still registered\n");
  if (left.runs == 0 && left.mappings == 0 && left.timers == 0 && left.routines == 0)
    host_report("unloaded, and all was given back\n");
}

static void set_up(void) {
  struct model_set sets[8];
  uint32_t bytes = host_read_setup(sets, sizeof(sets));
  for (uint32_t i = 0; i < bytes / sizeof(sets[0]); i++) model_set(&sets[i]);
}

NTSTATUS NTAPI TestEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path) {
  NTSTATUS status = shims_begin();
  if (!NT_SUCCESS(status)) return status;
  model_begin();
  set_up();
  status = DriverEntry(driver, path);
  if (!NT_SUCCESS(status)) {
    shims_end();
    return status;
  }
  driver_control = driver->MajorFunction[IRP_MJ_DEVICE_CONTROL];
  driver_unload = driver->DriverUnload;
  driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = control;
  driver->DriverUnload = unload;
  return STATUS_SUCCESS;
}
