// What the kernel tells of the system while processors are traced, whoever asked it: ptkit's driver, or perf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptkit::capture {

// One record, whatever its kind; what the kind does not have is zero.
struct SystemRecord {
  enum class Kind : std::uint8_t {
    SWITCH,       // `tid` runs from here on; pid -1: somebody else
    FORK,         // `tid` begins
    EXEC,         // `pid` executes another program; what that has mapped follows
    EXIT,         // `tid` ends
    MAP,          // executable memory
    NAME,         // of `tid`
    MODULE,       // of the kernel: it came
    MODULE_GONE,  // it went
    KERNEL_CODE,  // code that the kernel made is at `address`
    KERNEL_POKE,  // the kernel changed its code at `address`
    LOST,         // `count` records
  };
  Kind kind = Kind::LOST;
  std::uint32_t cpu = 0;
  std::uint64_t tsc = 0;
  std::uint64_t since = 0;  // SWITCH: from then on, if that is another time
  std::uint64_t place = 0;  // SWITCH: from there on in a stream that is told so
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  bool tables_known = false;     // SWITCH, EXEC: the kernel tells the two that follow
  std::uint64_t kernel_cr3 = 0;  // 0: as before, of a thread of the kernel
  std::uint64_t user_cr3 = 0;
  std::int32_t parent_pid = 0;  // FORK
  std::int32_t parent_tid = 0;
  std::int32_t status = 0;    // EXIT: exit status; -1: not told
  std::uint64_t address = 0;  // MAP, MODULE, MODULE_GONE, KERNEL_CODE, KERNEL_POKE
  std::uint64_t bytes = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t count = 0;               // LOST
  std::string text;                      // NAME, MAP, MODULE, KERNEL_CODE
  std::string build_id;                  // MAP: hex; empty: not told
  std::uint64_t device = 0;              // MAP: as makedev() makes it
  std::uint64_t inode = 0;               // MAP: 0: no file, or not recorded
  std::vector<std::uint8_t> old_code{};  // KERNEL_POKE
  std::vector<std::uint8_t> new_code{};
};

}  // namespace ptkit::capture
