// The kind of a program file, and the path and arguments with which the emulator runs it. The recorder and
// the plugin use this file, so it uses no C++ library and allocates nothing.
#pragma once

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ptkit::capture::plugin {

enum class ProgramKind {
  X86_64,       // an ELF file that the emulator can run
  OTHER,        // a file that the kernel might run: 32-bit, another machine, an unknown format
  UNAVAILABLE,  // missing, not permitted, a folder, too many nested scripts: `error` is the errno of execve()
};

// `path` is the ELF file to run. For a script, `prefix` has the words that replace argv[0]: interpreter, its
// argument if any, script; for each nested script.
struct Program {
  static constexpr size_t kMaxScripts = 4;
  ProgramKind kind = ProgramKind::UNAVAILABLE;
  int error = 0;
  char path[PATH_MAX] = {};
  size_t words = 0;
  const char* prefix[2 * kMaxScripts + 1] = {};
  char lines[kMaxScripts][PATH_MAX] = {};  // memory of the words
  char script[PATH_MAX] = {};
};

namespace detail {

template <size_t N>
bool copy(const char* from, char (&to)[N]) {
  const size_t size = strlen(from) + 1;
  if (size > N) return false;
  memcpy(to, from, size);
  return true;
}

inline ProgramKind elf_kind(const unsigned char* head, size_t size) {
  if (size < sizeof(Elf64_Ehdr) || memcmp(head, ELFMAG, SELFMAG) != 0) return ProgramKind::OTHER;
  Elf64_Ehdr header;
  memcpy(&header, head, sizeof header);
  const bool fits = header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64 &&
                    (header.e_type == ET_EXEC || header.e_type == ET_DYN);
  return fits ? ProgramKind::X86_64 : ProgramKind::OTHER;
}

// Splits "#! INTERPRETER [ARGUMENT]" as the kernel does (fs/binfmt_script.c). Returns false if there is no
// interpreter.
inline bool split_script(char* line, const char*& interpreter, const char*& argument) {
  char* at = line + 2;
  char* end = at + strcspn(at, "\n");
  while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) --end;
  *end = 0;
  at += strspn(at, " \t");
  if (*at == 0) return false;
  interpreter = at;
  at += strcspn(at, " \t");
  argument = nullptr;
  if (*at == 0) return true;
  *at++ = 0;
  at += strspn(at, " \t");
  if (*at != 0) argument = at;
  return true;
}

// Reads the beginning of an executable file. Returns its length, or -1 with errno.
inline ssize_t read_head(const char* path, char* head, size_t size) {
  if (access(path, X_OK) != 0) return -1;
  struct stat status;
  if (stat(path, &status) != 0) return -1;
  if (!S_ISREG(status.st_mode)) {
    errno = EACCES;
    return -1;
  }
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t got = read(file, head, size);
  const int error = errno;
  close(file);
  errno = error;
  return got;
}

}  // namespace detail

inline void resolve_program(const char* path, Program& out) {
  out.kind = ProgramKind::UNAVAILABLE;
  out.words = 0;
  out.error = detail::copy(path, out.path) && detail::copy(path, out.script) ? 0 : ENAMETOOLONG;
  if (out.error != 0) return;
  // The innermost interpreter comes first: each script's words go before the words so far.
  for (size_t depth = 0;; ++depth) {
    char spare[256];
    char* line = depth < Program::kMaxScripts ? out.lines[depth] : spare;
    const size_t room = depth < Program::kMaxScripts ? sizeof out.lines[0] : sizeof spare;
    const ssize_t got = detail::read_head(out.path, line, room - 1);
    if (got < 0) {
      out.error = errno;
      return;
    }
    line[got] = 0;
    if (got < 2 || line[0] != '#' || line[1] != '!') {
      out.kind = detail::elf_kind(reinterpret_cast<unsigned char*>(line), static_cast<size_t>(got));
      return;
    }
    const char* interpreter = nullptr;
    const char* argument = nullptr;
    if (depth >= Program::kMaxScripts) {
      out.error = ELOOP;
      return;
    }
    if (!detail::split_script(line, interpreter, argument)) {
      out.kind = ProgramKind::OTHER;
      return;
    }
    // The word for this file: the script's path for the first script. Later scripts are interpreters, and
    // their paths are words already.
    if (out.words == 0) out.prefix[out.words++] = out.script;
    const size_t fresh = argument == nullptr ? 1 : 2;
    memmove(out.prefix + fresh, out.prefix, out.words * sizeof out.prefix[0]);
    out.prefix[0] = interpreter;
    if (argument != nullptr) out.prefix[1] = argument;
    out.words += fresh;
    if (!detail::copy(interpreter, out.path)) {
      out.error = ENAMETOOLONG;
      return;
    }
  }
}

}  // namespace ptkit::capture::plugin
