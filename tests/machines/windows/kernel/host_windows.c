// SPDX-License-Identifier: MIT
#include <windows.h>

#include "host.h"

static HANDLE memory;
static DWORD cpu_slot = TLS_OUT_OF_INDEXES;

void* host_make_memory(uint64_t bytes) {
  cpu_slot = TlsAlloc();
  memory = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, (DWORD)(bytes >> 32), (DWORD)bytes,
                              NULL);
  return memory == NULL ? NULL : MapViewOfFile(memory, FILE_MAP_WRITE, 0, 0, 0);
}

static uint32_t map_runs(char* address, const uint64_t* offsets, uint32_t count) {
  uint32_t i = 0;
  for (; i < count; i++) {
    char* wanted = address + i * HOST_RUN_BYTES;
    if (MapViewOfFileEx(memory, FILE_MAP_WRITE, (DWORD)(offsets[i] >> 32), (DWORD)offsets[i], HOST_RUN_BYTES,
                        wanted) != wanted)
      break;
  }
  return i;
}

/* Another thread may take the range between its release and its use: then another range is tried. */
void* host_map(const uint64_t* offsets, uint32_t count) {
  for (int tries = 0; tries < 16; tries++) {
    char* address = VirtualAlloc(NULL, count * HOST_RUN_BYTES, MEM_RESERVE, PAGE_NOACCESS);
    if (address == NULL) return NULL;
    VirtualFree(address, 0, MEM_RELEASE);
    uint32_t mapped = map_runs(address, offsets, count);
    if (mapped == count) return address;
    host_unmap(address, mapped);
  }
  return NULL;
}

void host_unmap(void* address, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) UnmapViewOfFile((char*)address + i * HOST_RUN_BYTES);
}

void host_forbid(const void* address, size_t bytes, bool forbidden) {
  (void)address;
  (void)bytes;
  (void)forbidden;
}

void* host_allocate(size_t bytes) { return HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, bytes); }

void host_free(void* address) { HeapFree(GetProcessHeap(), 0, address); }

void* host_make_lock(void) {
  CRITICAL_SECTION* lock = host_allocate(sizeof(*lock));
  InitializeCriticalSection(lock);
  return lock;
}

void host_take(void* lock) { EnterCriticalSection(lock); }

void host_release(void* lock) { LeaveCriticalSection(lock); }

void* host_make_event(void) { return CreateEventW(NULL, FALSE, FALSE, NULL); }

void host_end_event(void* event) { CloseHandle(event); }

void host_set(void* event) { SetEvent(event); }

bool host_wait(void* event, uint32_t most_ms) { return WaitForSingleObject(event, most_ms) == WAIT_OBJECT_0; }

struct start {
  host_function function;
  void* context;
};

static DWORD WINAPI run(void* argument) {
  struct start start = *(struct start*)argument;
  host_free(argument);
  start.function(start.context);
  return 0;
}

void* host_begin_thread(host_function function, void* context) {
  struct start* start = host_allocate(sizeof(*start));
  start->function = function;
  start->context = context;
  return CreateThread(NULL, 0, run, start, 0, NULL);
}

void host_join(void* thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

void host_yield(void) { SwitchToThread(); }

/* The slot's value before host_bind() is 0. */
uint32_t host_cpu(void) { return (uint32_t)(uintptr_t)TlsGetValue(cpu_slot) - 1; }

void host_bind(uint32_t cpu) { TlsSetValue(cpu_slot, (void*)(uintptr_t)(uint32_t)(cpu + 1)); }

uint32_t host_thread(void) { return GetCurrentThreadId(); }

uint64_t host_time_ms(void) { return GetTickCount64(); }

void host_report(const char* line) {
  DWORD written;
  HANDLE file =
      CreateFileW(L"C:\\ptkit-unloaded.txt", FILE_APPEND_DATA, FILE_SHARE_READ, NULL, OPEN_ALWAYS, 0, NULL);
  WriteFile(file, line, (DWORD)lstrlenA(line), &written, NULL);
  CloseHandle(file);
}

#define SETUP_FILE L"C:\\ptkit-setup.bin"

bool host_write_setup(const void* bytes, uint32_t count) {
  DWORD written = 0;
  HANDLE file = CreateFileW(SETUP_FILE, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
  bool done = WriteFile(file, bytes, count, &written, NULL) && written == count;
  CloseHandle(file);
  return done;
}

uint32_t host_read_setup(void* bytes, uint32_t room) {
  DWORD got = 0;
  HANDLE file = CreateFileW(SETUP_FILE, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
  if (file == INVALID_HANDLE_VALUE) return 0;
  ReadFile(file, bytes, room, &got, NULL);
  CloseHandle(file);
  return got;
}
