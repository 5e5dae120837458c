// SPDX-License-Identifier: MIT
/*
 * Presses Ctrl-C in the console of a program.
 *
 *   press_ctrl_c FILE PROGRAM ARGUMENTS   writes the number of the program's process to FILE.pid, presses
 * Ctrl-C when FILE is there, and exits as the program does
 */
#include <windows.h>
/* It needs <windows.h>. */
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#define MOST_SECONDS 60

static int failed(const char* what) {
  fprintf(stderr, "%s: error %lu\n", what, GetLastError());
  return 99;
}

/* The words from `first` on, which have no quotes and no blanks. */
static void join(wchar_t* line, size_t room, int argc, wchar_t** argv, int first) {
  line[0] = 0;
  for (int i = first; i < argc; i++) {
    if (i != first) wcsncat(line, L" ", room - wcslen(line) - 1);
    wcsncat(line, argv[i], room - wcslen(line) - 1);
  }
}

static BOOL write_pid(const wchar_t* path, DWORD pid) {
  wchar_t name[512];
  swprintf(name, sizeof(name) / sizeof(name[0]), L"%ls.pid", path);
  FILE* file = _wfopen(name, L"w");
  if (file == NULL) return FALSE;
  fprintf(file, "%lu\n", pid);
  return fclose(file) == 0;
}

static BOOL wait_for(const wchar_t* path, HANDLE process) {
  for (int i = 0; i < MOST_SECONDS * 20; i++) {
    if (GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES) return TRUE;
    if (WaitForSingleObject(process, 50) == WAIT_OBJECT_0) return FALSE;
  }
  return FALSE;
}

static BOOL WINAPI ignore(DWORD event) {
  (void)event;
  return TRUE;
}

/* Its output goes to files, not to the console. */
static HANDLE inherited(DWORD which) {
  HANDLE copy = NULL;
  DuplicateHandle(GetCurrentProcess(), GetStdHandle(which), GetCurrentProcess(), &copy, 0, TRUE,
                  DUPLICATE_SAME_ACCESS);
  return copy;
}

int wmain(int argc, wchar_t** argv) {
  static wchar_t line[4096];
  STARTUPINFOW startup = {.cb = sizeof(startup)};
  PROCESS_INFORMATION made;
  DWORD status = 0;
  if (argc < 3) return 2;
  startup.dwFlags = STARTF_USESTDHANDLES;
  startup.hStdOutput = inherited(STD_OUTPUT_HANDLE);
  startup.hStdError = inherited(STD_ERROR_HANDLE);
  FreeConsole();
  if (!AllocConsole()) return failed("AllocConsole");
  join(line, sizeof(line) / sizeof(line[0]), argc, argv, 2);
  if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &made)) return failed("start");
  SetConsoleCtrlHandler(ignore, TRUE);
  if (!write_pid(argv[1], made.dwProcessId)) return failed("FILE.pid");
  if (!wait_for(argv[1], made.hProcess)) return failed("the file");
  if (!GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0)) return failed("press");
  if (WaitForSingleObject(made.hProcess, MOST_SECONDS * 1000) != WAIT_OBJECT_0) return failed("the end");
  return GetExitCodeProcess(made.hProcess, &status) ? (int)status : failed("the exit code");
}
