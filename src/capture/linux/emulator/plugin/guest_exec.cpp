// execve() of the guest.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/linux/emulator/plugin/process.h"
#include "capture/linux/emulator/plugin/program.h"
#include "capture/linux/emulator/plugin/thread.h"

namespace ptkit::capture::plugin {

namespace {

constexpr size_t kMaxProgramPath = PATH_MAX;

// A null-terminated list of words for execve().
struct Words {
  char** words = nullptr;
  size_t count = 0;
  size_t room = 0;
  bool failed = false;

  void push(const char* word) {
    if (failed) return;
    if (count + 1 >= room) {
      const size_t more = room == 0 ? 64 : 2 * room;
      auto** const grown = static_cast<char**>(realloc(words, more * sizeof(char*)));
      failed = grown == nullptr;
      if (failed) return;
      words = grown;
      room = more;
    }
    words[count++] = const_cast<char*>(word);
    words[count] = nullptr;
  }
};

// Whether a guest pointer is readable. Guest addresses are host addresses (guest_base is 0), but guest
// pointers may be invalid. rt_sigprocmask() reads the set (EFAULT) before it checks the operation (EINVAL).
bool readable(const void* pointer) {
  constexpr int kNoOperation = -1;
  const uintptr_t word = reinterpret_cast<uintptr_t>(pointer) & ~uintptr_t{7};
  return syscall(SYS_rt_sigprocmask, kNoOperation, word, nullptr, sizeof(uint64_t)) == 0 || errno != EFAULT;
}

bool readable_words(char* const* words) {
  if (words == nullptr) return true;
  for (size_t i = 0;; ++i) {
    if (!readable(words + i)) return false;
    if (words[i] == nullptr) return true;
    if (!readable(words[i])) return false;
  }
}

// Variables that affect the dynamic linker are passed to the guest only, by QEMU's option -E.
bool is_loader_variable(const char* variable) { return strncmp(variable, "LD_", 3) == 0; }

void add_environment(char* const* envp, Words& argv, Words& environment, char* preload, size_t size) {
  bool preloads = false;
  for (; envp != nullptr && *envp != nullptr; ++envp) {
    if (is_loader_variable(*envp)) {
      preloads |= strncmp(*envp, "LD_PRELOAD=", 11) == 0;
      argv.push("-E");
      argv.push(*envp);
    } else {
      environment.push(*envp);
    }
  }
  snprintf(preload, size, "LD_PRELOAD=%s", process.settings.plugin);
  environment.push(preload);
  if (preloads) return;
  argv.push("-U");
  argv.push("LD_PRELOAD");
}

// Whether the path is a link to the guest's own program: on the host it leads to the emulator.
bool is_this_program(const char* path) {
  char own[32];
  snprintf(own, sizeof own, "/proc/%d/exe", getpid());
  const bool is_link = strcmp(path, "/proc/self/exe") == 0 || strcmp(path, "/proc/thread-self/exe") == 0 ||
                       strcmp(path, own) == 0;
  return is_link && process.settings.program[0] != 0;
}

void run(const Program& program, const char* path, char* const* argv, char* const* envp) {
  char plugin[3 * PATH_MAX];
  char preload[PATH_MAX + 16];
  snprintf(plugin, sizeof plugin, "file=%s,socket=%s", process.settings.plugin, process.settings.socket);
  Words words;
  Words environment;
  words.push(process.settings.qemu);
  words.push("-plugin");
  words.push(plugin);
  add_environment(envp, words, environment, preload, sizeof preload);
  const char* const first = program.words > 0                       ? program.prefix[0]
                            : argv != nullptr && argv[0] != nullptr ? argv[0]
                                                                    : "";
  words.push("-0");
  words.push(first);
  words.push(program.path);
  for (size_t i = 1; i < program.words; ++i) words.push(program.prefix[i]);
  for (size_t i = 1; argv != nullptr && argv[0] != nullptr && argv[i] != nullptr; ++i) words.push(argv[i]);
  if (!words.failed && !environment.failed) {
    mark(MarkKind::EXEC);
    execve(process.settings.qemu, words.words, environment.words);
    const int error = errno;
    mark(MarkKind::EXEC_FAILED, static_cast<uint64_t>(error));
    note(NoteKind::EXEC_FAILED, path, error);
  }
  free(words.words);
  free(environment.words);
}

}  // namespace

void exec_in_emulator(const char* path, char* const* argv, char* const* envp) {
  if (!recording() || process.refused) return;
  if (!readable(path) || !readable_words(argv) || !readable_words(envp)) return;
  if (is_this_program(path)) path = process.settings.program;
  static Program
      program;  // too large for a thread's stack. execve() ends the other threads, or has no effect
  resolve_program(path, program);
  if (program.kind == ProgramKind::OTHER) note(NoteKind::PROGRAM_NATIVE, path);
  if (program.kind == ProgramKind::X86_64) run(program, path, argv, envp);
}

void exec_in_emulator(int folder, const char* path, int flags, char* const* argv, char* const* envp) {
  if (!readable(path)) return;
  char link[64];
  char full[2 * PATH_MAX];
  if (*path == '/' || (folder == AT_FDCWD && *path != 0)) return exec_in_emulator(path, argv, envp);
  if (*path == 0 && (flags & AT_EMPTY_PATH) == 0) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  const ssize_t size = readlink(link, full, PATH_MAX - 1);
  if (size <= 0) return;
  snprintf(full + size, sizeof full - static_cast<size_t>(size), *path == 0 ? "%s" : "/%s", path);
  exec_in_emulator(full, argv, envp);
}

}  // namespace ptkit::capture::plugin
