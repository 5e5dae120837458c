// The plugin for QEMU's user mode emulation. Reports the executed blocks of the guest to the recorder.
//
//   qemu-x86_64 -plugin file=PLUGIN,socket=PATH ...    with LD_PRELOAD=PLUGIN
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "capture/linux/emulator/plugin/process.h"
#include "capture/linux/emulator/plugin/thread.h"

// The part of QEMU's plugin interface (version 1, QEMU 4.2 to 8.2) that the plugin uses. Distributions ship
// no header for it. The emulator resolves these functions when it loads the plugin.
extern "C" {

using qemu_plugin_id_t = uint64_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

struct qemu_info_t {
  const char* target_name;  // "x86_64"
  struct {
    int min;
    int cur;
  } version;
  bool system_emulation;
  union {
    struct {
      int smp_vcpus;
      int max_vcpus;
    } system;
  };
};

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*callback)(qemu_plugin_id_t, qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb* tb, void (*callback)(unsigned vcpu, void* data),
                                          qemu_plugin_cb_flags flags, void* data);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id,
                                          void (*callback)(qemu_plugin_id_t, unsigned vcpu, int64_t number,
                                                           uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                                                           uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t id,
                                              void (*callback)(qemu_plugin_id_t, unsigned vcpu,
                                                               int64_t number, int64_t result));
size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb* tb);
uint64_t qemu_plugin_tb_vaddr(const qemu_plugin_tb* tb);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb* tb, size_t index);
const void* qemu_plugin_insn_data(const qemu_plugin_insn* insn);
size_t qemu_plugin_insn_size(const qemu_plugin_insn* insn);
uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn* insn);
}

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace ptkit::capture::plugin {

namespace {

bool log_block(const qemu_plugin_tb* block, uint64_t pc, size_t insns) {
  size_t size = 0;
  for (size_t i = 0; i < insns; ++i) size += qemu_plugin_insn_size(qemu_plugin_tb_get_insn(block, i));
  auto* const record = static_cast<LogBlock*>(begin_record(LogKind::BLOCK, sizeof(LogBlock) + size));
  if (record == nullptr) return false;
  record->record.count = static_cast<uint16_t>(insns);
  record->pc = pc;
  record->tsc = __rdtsc();
  record->size = static_cast<uint32_t>(size);
  char* at = reinterpret_cast<char*>(record + 1);
  for (size_t i = 0; i < insns; ++i) {
    const qemu_plugin_insn* const insn = qemu_plugin_tb_get_insn(block, i);
    const size_t bytes = qemu_plugin_insn_size(insn);
    memcpy(at, qemu_plugin_insn_data(insn), bytes);
    at += bytes;
  }
  publish_record(record);
  return true;
}

// The block's number; kNoBlock if the recording has ended.
uint32_t add_block(const qemu_plugin_tb* block) {
  if (!attach_process()) return kNoBlock;
  const uint64_t pc = qemu_plugin_tb_vaddr(block);
  log_mapping(pc);
  if (!log_block(block, pc, qemu_plugin_tb_n_insns(block))) return kNoBlock;
  const uint32_t number = process.next_block++;
  mark(MarkKind::TRANSLATED, number, pc);
  return number;
}

auto entry_of_blocks() {
  if (process.shared->block_times != 0) return ptkit_timed_block;
  return process.shared->line_bytes == kLongLineBytes ? ptkit_block : ptkit_short_line_block;
}

void translated(qemu_plugin_id_t, qemu_plugin_tb* block) {
  const uint32_t number = add_block(block);
  if (process.shared == nullptr) return;
  // The recorder reads an unfinished line up to the first block that is not in the log.
  const auto entry = entry_of_blocks();
  qemu_plugin_register_vcpu_tb_exec_cb(block, entry, QEMU_PLUGIN_CB_NO_REGS,
                                       reinterpret_cast<void*>(static_cast<uintptr_t>(number)));
}

void before_syscall(qemu_plugin_id_t, unsigned, int64_t number, uint64_t a0, uint64_t a1, uint64_t a2,
                    uint64_t a3, uint64_t a4, uint64_t, uint64_t, uint64_t) {
  thread.in_syscall = true;
  thread.call[0] = a0;
  thread.call[1] = a1;
  mark(MarkKind::SYSCALL, static_cast<uint64_t>(number), a0, a1, a2, a3, a4);
  switch (number) {
    case SYS_execve:
      return exec_in_emulator(reinterpret_cast<const char*>(a0), reinterpret_cast<char**>(a1),
                              reinterpret_cast<char**>(a2));
    case SYS_execveat:
      return exec_in_emulator(static_cast<int>(a0), reinterpret_cast<const char*>(a1), static_cast<int>(a4),
                              reinterpret_cast<char**>(a2), reinterpret_cast<char**>(a3));
    case SYS_munmap:
      return invalidate_mappings(a0, a0 + a1);
    case SYS_mmap:
      if ((a3 & MAP_FIXED) != 0) invalidate_mappings(a0, a0 + a1);
      return;
    case SYS_mremap:
      return invalidate_mappings(a0, a0 + a1);
    case SYS_exit:
      mark(MarkKind::THREAD_EXIT, a0);
      return leave_thread();
    case SYS_exit_group:
      return mark(MarkKind::PROCESS_EXIT, a0);
    default:
      return;
  }
}

void after_syscall(qemu_plugin_id_t, unsigned, int64_t number, int64_t result) {
  thread.in_syscall = false;
  follow_names(number, result);
  mark(MarkKind::SYSCALL_END, static_cast<uint64_t>(number), static_cast<uint64_t>(result));
}

void in_child() {
  forget_process();
  forget_thread();
}

bool set(const char* argument, const char* name, char* value, size_t size) {
  const size_t length = strlen(name);
  if (strncmp(argument, name, length) != 0 || argument[length] != '=') return false;
  return static_cast<size_t>(snprintf(value, size, "%s", argument + length + 1)) < size;
}

// The emulator's arguments are options with one value each, then the program.
void find_program(char* program, size_t size) {
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  // Only the LD_ variables of the environment can come before the program.
  static char words[16 * PATH_MAX];
  const ssize_t got = read(file, words, sizeof words - 1);
  close(file);
  if (got <= 0) return;
  const char* const end = words + got;
  const char* word = words + strlen(words) + 1;
  for (bool value = false; word < end; word += strlen(word) + 1) {
    if (!value && *word != '-') break;
    value = !value;
  }
  char full[PATH_MAX];
  if (word < end && *word == '/') {
    snprintf(program, size, "%s", word);
  } else if (word < end && realpath(word, full) != nullptr) {
    snprintf(program, size, "%s", full);
  }
}

bool read_settings(int argc, char** argv) {
  Settings& settings = process.settings;
  for (int i = 0; i < argc; ++i) {
    if (!set(argv[i], "socket", settings.socket, sizeof settings.socket)) {
      fprintf(stderr, "ptkit: the emulator's plugin has no option '%s'\n", argv[i]);
      return false;
    }
  }
  Dl_info here{};
  const ssize_t size = readlink("/proc/self/exe", settings.qemu, sizeof settings.qemu - 1);
  if (size <= 0 || dladdr(&process, &here) == 0 || here.dli_fname == nullptr) return false;
  snprintf(settings.plugin, sizeof settings.plugin, "%s", here.dli_fname);
  find_program(settings.program, sizeof settings.program);
  return settings.socket[0] != 0;
}

int install(qemu_plugin_id_t id, const qemu_info_t* info, int argc, char** argv) {
  if (info->system_emulation || strcmp(info->target_name, "x86_64") != 0) {
    fprintf(stderr, "ptkit: the plugin is for qemu-x86_64, this emulates %s\n", info->target_name);
    return 1;
  }
  if (!read_settings(argc, argv)) return 1;
  if (!attach_process()) {
    fprintf(stderr, "ptkit: the recorder cannot be reached at %s; the program runs unrecorded\n",
            process.settings.socket);
    return 0;
  }
  if (pthread_atfork(nullptr, nullptr, in_child) != 0) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_vcpu_syscall_cb(id, before_syscall);
  qemu_plugin_register_vcpu_syscall_ret_cb(id, after_syscall);
  return 0;
}

}  // namespace

}  // namespace ptkit::capture::plugin

EXPORTED int qemu_plugin_version;
int qemu_plugin_version = 1;

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc, char** argv) {
  return ptkit::capture::plugin::install(id, info, argc, argv);
}
