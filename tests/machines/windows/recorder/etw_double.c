// SPDX-License-Identifier: MIT
/*
 * ETW's functions for the test build of the recorder, as Wine has none that work. A session delivers the
 * events of the file PTKIT_TEST_EVENTS, which grows while the recorder runs.
 *
 *   PTKIT_TEST_START_ERROR   the error of StartTraceW()
 *   PTKIT_TEST_CLOCK         the clock that a session says it has, instead of the one that was asked for
 *   PTKIT_TEST_ENDS          delivery ends at once; then there is this file
 *   PTKIT_TEST_ORPHAN        the name of a session that is there already; a file of its name means it was
 * stopped
 */
#include <windows.h>
#define WMIAPI __stdcall /* of functions that are exported here, not imported */
/* These need <windows.h>. */
#include <evntcons.h>
#include <evntrace.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"

#define SESSION 17
#define CONSUMER 18
#define CPU_CYCLES 3

static const GUID thread_class = {
    0x3d6fa8d1, 0xfe05, 0x11d0, {0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c}};
static const GUID image_class = {
    0x2cb15d1d, 0x5fc1, 0x11d2, {0xab, 0xe1, 0x00, 0xa0, 0xc9, 0x11, 0xf5, 0x18}};
static const GUID loss_class = {0x6a399ae0, 0x4bc6, 0x4de9, {0x87, 0x0b, 0x36, 0x57, 0xf8, 0x94, 0x7e, 0x7e}};
static const GUID kernel_logger = {
    0x9e814aad, 0x3204, 0x11d2, {0x9a, 0x82, 0x00, 0x60, 0x08, 0xa8, 0x69, 0x39}};

static wchar_t session_name[128];
static ULONG lost;
static volatile LONG is_running;
static PEVENT_RECORD_CALLBACK callback;
static void* callback_context;

static unsigned long setting(const char* name) {
  const char* value = getenv(name);
  return value != NULL ? strtoul(value, NULL, 10) : 0;
}

static bool is_wanted(const EVENT_TRACE_PROPERTIES* properties) {
  const ULONG modes = EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE;
  const ULONG flags = EVENT_TRACE_FLAG_CSWITCH | EVENT_TRACE_FLAG_THREAD | EVENT_TRACE_FLAG_IMAGE_LOAD;
  return properties->Wnode.ClientContext == CPU_CYCLES && properties->LogFileMode == modes &&
         properties->EnableFlags == flags && !IsEqualGUID(&properties->Wnode.Guid, &kernel_logger) &&
         properties->Wnode.BufferSize > properties->LoggerNameOffset;
}

ULONG WINAPI StartTraceW(PTRACEHANDLE session, LPCWSTR name, PEVENT_TRACE_PROPERTIES properties) {
  if (setting("PTKIT_TEST_START_ERROR") != 0) return setting("PTKIT_TEST_START_ERROR");
  if (!is_wanted(properties) || wcslen(name) >= 128) return ERROR_INVALID_PARAMETER;
  wcscpy(session_name, name);
  is_running = 1;
  *session = SESSION;
  return ERROR_SUCCESS;
}

static bool is_orphan(LPCWSTR name) {
  wchar_t orphan[128] = L"";
  const char* value = getenv("PTKIT_TEST_ORPHAN");
  if (value != NULL) mbstowcs(orphan, value, 127);
  return value != NULL && wcscmp(name, orphan) == 0;
}

ULONG WINAPI ControlTraceW(TRACEHANDLE session, LPCWSTR name, PEVENT_TRACE_PROPERTIES properties,
                           ULONG code) {
  (void)session;
  if (code != EVENT_TRACE_CONTROL_STOP) return ERROR_INVALID_PARAMETER;
  if (is_orphan(name)) {
    FILE* file = fopen(getenv("PTKIT_TEST_ORPHAN"), "wb");
    return file != NULL && fclose(file) == 0 ? ERROR_SUCCESS : ERROR_GEN_FAILURE;
  }
  if (wcscmp(name, session_name) != 0 || !is_running) return ERROR_WMI_INSTANCE_NOT_FOUND;
  is_running = 0;
  properties->EventsLost = lost;
  properties->RealTimeBuffersLost = lost != 0;
  return ERROR_SUCCESS;
}

ULONG WINAPI QueryAllTracesW(PEVENT_TRACE_PROPERTIES* all, ULONG room, PULONG count) {
  const char* orphan = getenv("PTKIT_TEST_ORPHAN");
  *count = orphan != NULL && room != 0;
  if (*count != 0) mbstowcs((wchar_t*)((char*)all[0] + all[0]->LoggerNameOffset), orphan, strlen(orphan) + 1);
  return ERROR_SUCCESS;
}

TRACEHANDLE WINAPI OpenTraceW(PEVENT_TRACE_LOGFILEW from) {
  const ULONG modes =
      PROCESS_TRACE_MODE_REAL_TIME | PROCESS_TRACE_MODE_RAW_TIMESTAMP | PROCESS_TRACE_MODE_EVENT_RECORD;
  if (from->ProcessTraceMode != modes || wcscmp(from->LoggerName, session_name) != 0) {
    SetLastError(ERROR_INVALID_PARAMETER);
    return INVALID_PROCESSTRACE_HANDLE;
  }
  unsigned long clock = setting("PTKIT_TEST_CLOCK");
  from->LogfileHeader.ReservedFlags = clock != 0 ? clock : CPU_CYCLES;
  callback = from->EventRecordCallback;
  callback_context = from->Context;
  return CONSUMER;
}

static void put(uint8_t* payload, USHORT* bytes, const void* value, size_t size) {
  memcpy(payload + *bytes, value, size);
  *bytes = (USHORT)(*bytes + size);
}

/* The layout of Windows of 64 bits; fields that the recorder does not read are 0. */
static void fill(const struct event* event, EVENT_RECORD* record, uint8_t payload[128]) {
  EVENT_DESCRIPTOR* what = &record->EventHeader.EventDescriptor;
  USHORT* bytes = &record->UserDataLength;
  switch (event->kind) {
    case EVENT_SWITCH:
    case EVENT_CUT:
      record->EventHeader.ProviderId = thread_class;
      what->Opcode = 36;
      put(payload, bytes, &event->second, 4);
      put(payload, bytes, &event->first, 4);
      *bytes = event->kind == EVENT_CUT ? 8 : 24;
      break;
    case EVENT_THREAD:
      record->EventHeader.ProviderId = thread_class;
      what->Opcode = 3;
      put(payload, bytes, &event->first, 4);
      put(payload, bytes, &event->second, 4);
      *bytes = 80;
      break;
    case EVENT_UNLOAD:
      record->EventHeader.ProviderId = image_class;
      what->Opcode = 2;
      put(payload, bytes, &event->address, 8);
      put(payload, bytes, &event->bytes, 8);
      put(payload, bytes, &event->first, 4);
      *bytes = 58;
      break;
    default:
      record->EventHeader.ProviderId = loss_class;
      what->Opcode = 32;
      lost += event->first;
      break;
  }
}

static void deliver(const struct event* event) {
  uint8_t payload[128] = {0};
  EVENT_RECORD record;
  memset(&record, 0, sizeof(record));
  record.EventHeader.EventDescriptor.Version = 3;
  record.EventHeader.Flags = EVENT_HEADER_FLAG_64_BIT_HEADER | EVENT_HEADER_FLAG_PROCESSOR_INDEX;
  record.EventHeader.TimeStamp.QuadPart = (LONGLONG)event->tsc;
  record.BufferContext.ProcessorIndex = (USHORT)event->cpu;
  record.UserContext = callback_context;
  record.UserData = payload;
  fill(event, &record, payload);
  callback(&record);
}

/* The traced program opens the file for appending: whole events stand there. */
ULONG WINAPI ProcessTrace(PTRACEHANDLE handles, ULONG count, LPFILETIME from, LPFILETIME to) {
  struct event event;
  long offset = 0;
  const char* ends = getenv("PTKIT_TEST_ENDS");
  (void)from;
  (void)to;
  if (count != 1 || handles[0] != CONSUMER) return ERROR_INVALID_HANDLE;
  for (bool last = false; !last;) {
    last = !is_running || ends != NULL;
    FILE* file = fopen(getenv("PTKIT_TEST_EVENTS"), "rb");
    if (file != NULL && fseek(file, offset, SEEK_SET) == 0)
      for (; fread(&event, sizeof(event), 1, file) == 1; offset += (long)sizeof(event)) deliver(&event);
    if (file != NULL) fclose(file);
    if (!last) Sleep(20);
  }
  if (ends != NULL) {
    FILE* file = fopen(ends, "wb");
    return file != NULL && fclose(file) == 0 ? ERROR_SUCCESS : ERROR_GEN_FAILURE;
  }
  return ERROR_SUCCESS;
}

ULONG WINAPI CloseTrace(TRACEHANDLE handle) {
  return handle == CONSUMER ? ERROR_SUCCESS : ERROR_INVALID_HANDLE;
}
