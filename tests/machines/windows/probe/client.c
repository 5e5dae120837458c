// SPDX-License-Identifier: MIT
/*
 * Loads the probe driver, and prints what it finds: "find NAME PRESENCE" of each name on the command line,
 * "call NUMBER 0|1", "notified COUNT" after a process was begun, "cleaned COUNT" after a client was killed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
#include <winioctl.h>

#include "../service.h"
#include "probe.h"

static ULONG ask(HANDLE device, DWORD code, void* in, DWORD bytes) {
  ULONG answer = ~0U;
  DWORD got = 0;
  if (!DeviceIoControl(device, code, in, bytes, &answer, sizeof(answer), &got, NULL))
    printf("failed %lx error %lu\n", code, GetLastError());
  return answer;
}

static HANDLE begin_again(const char* program, const char* argument) {
  char line[MAX_PATH];
  STARTUPINFOA startup = {.cb = sizeof(startup)};
  PROCESS_INFORMATION begun = {0};
  snprintf(line, sizeof(line), "\"%s\" %s", program, argument);
  if (!CreateProcessA(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &begun)) return NULL;
  CloseHandle(begun.hThread);
  return begun.hProcess;
}

/* A process with a request that pends is killed. */
static void kill_client(const char* program) {
  HANDLE child = begin_again(program, "pend");
  Sleep(500);
  TerminateProcess(child, 9);
  WaitForSingleObject(child, 5000);
  Sleep(200);
}

static int pend(void) {
  HANDLE device = open_named_device(PROBE_NAME);
  ask(device, PROBE_PEND, NULL, 0);
  return 0;
}

static void end_child(HANDLE child) {
  WaitForSingleObject(child, 5000);
  CloseHandle(child);
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "pend") == 0) return pend();
  if (argc < 2) return 0;
  DWORD error = load_driver(PROBE_NAME, argv[1]);
  printf("loads %lu\n", error);
  if (error != 0) return 1;
  HANDLE device = open_named_device(PROBE_NAME);
  printf("opens %lu\n", device == INVALID_HANDLE_VALUE ? GetLastError() : 0);
  for (int i = 2; i < argc; i++)
    printf("find %s %lu\n", argv[i], ask(device, PROBE_FIND, argv[i], (DWORD)strlen(argv[i]) + 1));
  for (ULONG number = 0; number < PROBE_CALLS; number++)
    printf("call %lu %lu\n", number, ask(device, PROBE_CALL, &number, sizeof(number)));
  end_child(begin_again(argv[0], ""));
  printf("notified %lu\n", ask(device, PROBE_NOTIFIED, NULL, 0));
  kill_client(argv[0]);
  printf("cleaned %lu\n", ask(device, PROBE_CLEANED, NULL, 0));
  CloseHandle(device);
  printf("unloads %lu\n", unload_driver(PROBE_NAME));
  device = open_named_device(PROBE_NAME);
  printf("opens %lu\n", device == INVALID_HANDLE_VALUE ? GetLastError() : 0);
  return 0;
}
