// Sideband records of the kernel while CPUs are traced, in one form for ptkit's driver and perf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::capture {

// A record of any kind. Fields that the kind does not have are zero.
struct SystemRecord {
  enum class Kind : std::uint8_t {
    SWITCH,       // `tid` is switched in; pid -1: a thread that is not recorded or not known
    FORK,         // `tid` begins
    EXEC,         // `pid` called exec(); MMAP records of the new program follow
    PROGRAM,      // exec() of `pid` has mapped the new program
    SPACE,        // page tables of `pid`
    EXIT,         // `tid` ends
    MMAP,         // executable memory was mapped
    COMM,         // the name of `tid`
    MODULE,       // a kernel module was loaded
    MODULE_GONE,  // a kernel module was unloaded
    KSYMBOL,      // the kernel generated code at `address`
    TEXT_POKE,    // the kernel changed its code at `address`
    LOST,         // `count` records were lost
  };
  Kind kind = Kind::LOST;
  std::uint32_t cpu = 0;
  std::uint64_t tsc = 0;
  std::uint64_t since = 0;   // SWITCH: its time, if that is not `tsc`
  std::uint64_t offset = 0;  // SWITCH: its stream offset, in a stream with switches by offset
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  trace::Departure departure = trace::Departure::UNKNOWN;  // SWITCH: of the thread before
  bool cr3_known = false;        // SWITCH, FORK, PROGRAM, SPACE: the two fields that follow are recorded
  std::uint64_t kernel_cr3 = 0;  // 0: a kernel thread, which keeps CR3
  std::uint64_t user_cr3 = 0;
  std::int32_t parent_pid = 0;  // FORK
  std::int32_t parent_tid = 0;
  std::int32_t status = 0;    // EXIT: exit status; -1: not recorded
  std::uint64_t address = 0;  // MMAP, MODULE, MODULE_GONE, KSYMBOL, TEXT_POKE
  std::uint64_t bytes = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t count = 0;               // LOST
  std::string text;                      // COMM, MMAP, MODULE, KSYMBOL
  std::string build_id;                  // MMAP: hex; empty: not recorded
  std::uint64_t device = 0;              // MMAP: as makedev(3) encodes it
  std::uint64_t inode = 0;               // MMAP: 0: no file, or not recorded
  std::vector<std::uint8_t> old_code{};  // TEXT_POKE
  std::vector<std::uint8_t> new_code{};
};

}  // namespace ptkit::capture
