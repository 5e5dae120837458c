// A processor that runs processes with the same addresses and different code, traced by the trace unit in
// software, and what perf's records would say of it: too early or too late.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "packet/packet.h"
#include "perf_sample.h"
#include "softpt/unit.h"

namespace ptkit::formats::test {

struct Task {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t cr3 = 0;
  std::uint64_t nops = 0;    // what tells its code from others'
  std::uint64_t resume = 0;  // where it goes on; 0: not begun yet
};

class PerfMachine {
 public:
  static constexpr std::uint64_t kUser = 0x401000;
  static constexpr std::uint64_t kKernel = 0xffffffff81000000;
  static constexpr std::uint64_t kTicksPerUs = 2000;
  static constexpr std::uint64_t kUserTables = 0x1000;  // page-table isolation: this bit of CR3

  struct Options {
    bool isolation = false;  // of page tables
    bool mtc = true;
    std::uint64_t jitter = 0;   // ticks that records of switches are too early or too late at most
    bool traces_tasks = false;  // as perf does without -a: tracing is off while tasks change
    bool tells_out = true;      // who goes out
  };

  PerfMachine(const Options& options, std::uint64_t seed)
      : options_(options),
        random_(seed),
        unit_(config(options), [this](base::Bytes bytes) { stream_.append(bytes.begin(), bytes.end()); }) {}

  // NOPs, JNE to the first, SYSCALL, JMP to the first.
  static std::string user_code(std::uint64_t nops) {
    std::string code(nops, '\x90');
    const auto back = [&] { return static_cast<char>(-static_cast<int>(code.size()) - 2); };
    code += '\x75';
    code.push_back(static_cast<char>(-static_cast<int>(nops) - 2));
    code += "\x0f\x05\xeb";
    code.push_back(static_cast<char>(back() + 1));
    return code;
  }
  static std::string kernel_code() {
    std::string code(64, '\x90');
    code.replace(kEntry, 5, "\x0f\x22\xd8\xff\xe0");     // MOV CR3; JMP RAX
    code.replace(kExit, 6, "\x0f\x22\xd8\x48\x0f\x07");  // MOV CR3; SYSRET
    code.replace(kSwitch, 5, "\x0f\x22\xd8\xff\xe0");
    code.replace(kLoop, 5, "\x90\x75\xfd\xff\xe0");  // NOP; JNE to it; JMP RAX
    return code;
  }

  void start(Task& task) {
    now_ = &task;
    pass(10 * kTicksPerUs);
    loaded_ = options_.isolation ? task.cr3 | kUserTables : task.cr3;
    unit_.set_cr3(loaded_);
    unit_.enable(kUser);
    told_in(task, tsc_ - 1000);
    task.resume = kUser;
  }
  // User code for about so long, up to a SYSCALL, which is executed.
  void run(std::uint64_t microseconds) {
    const std::uint64_t end = tsc_ + microseconds * kTicksPerUs;
    if (now_->resume != kUser) step(now_->resume, now_->pid);
    for (bool more = true; more;) {
      for (std::uint64_t i = 0; i < now_->nops; ++i) step(kUser + i, now_->pid);
      pass(300 + random_() % 200);
      more = tsc_ < end;
      step(kUser + now_->nops, now_->pid);
      unit_.conditional(more, more ? kUser : kUser + now_->nops + 2);
    }
    step(kUser + now_->nops + 2, now_->pid);
    now_->resume = kUser + now_->nops + 4;
    pass(100);
    at_ = kKernel + (options_.isolation ? kEntry : kEntry + 3);
    unit_.far_transfer(at_);
    if (options_.isolation) load_here(now_->cr3);
  }
  // Kernel code for about so long.
  void spin(std::uint64_t microseconds) {
    const std::uint64_t end = tsc_ + microseconds * kTicksPerUs;
    jump(kLoop);
    for (bool more = true; more;) {
      step(kKernel + kLoop, 0);
      pass(200);
      more = tsc_ < end;
      step(kKernel + kLoop + 1, 0);
      unit_.conditional(more, kKernel + (more ? kLoop : kLoop + 3));
    }
    at_ = kKernel + kLoop + 3;
  }
  // The kernel goes on with somebody else. `told`: perf has records of it.
  void change(Task& to, bool told = true) {
    const std::uint64_t off = options_.jitter == 0 ? 0 : random_() % (2 * options_.jitter);
    if (told && options_.tells_out)
      records_ += switched(who(*now_, told_at(tsc_ + off - options_.jitter)), true);
    pass(300);
    if (options_.traces_tasks) {
      step(at_, 0);  // what ends tracing has no IP: code goes on to the next branch, the JMP
      unit_.disable();
      pass(300);
      unit_.set_cr3(loaded_ = to.cr3);
      unit_.enable(at_);
    } else if (to.cr3 != 0 && to.cr3 != loaded_) {
      load(to.cr3);
    }
    pass(300);
    now_ = &to;
    if (told) told_in(to, told_at(tsc_ + off - options_.jitter));
  }
  // Page tables that the process gets by exec().
  void load(std::uint64_t cr3) {
    jump(kSwitch);
    load_here(cr3);
  }
  // Back to user code.
  void leave() {
    pass(1000 + random_() % 2000);
    jump(options_.isolation ? kExit : kExit + 3);
    if (options_.isolation) load_here(now_->cr3 | kUserTables);
    step(at_, 0);
    pass(100);
    if (now_->resume == 0) now_->resume = kUser;
    unit_.far_transfer(now_->resume);
  }
  void add(const std::string& record) { records_ += record; }
  // What was told since the last time.
  [[nodiscard]] std::string take_records() { return std::exchange(records_, {}); }
  [[nodiscard]] Who who(const Task& task) const { return who(task, tsc_); }
  [[nodiscard]] static Who who(const Task& task, std::uint64_t tsc) {
    return {.pid = task.pid, .tid = task.tid, .tsc = tsc};
  }
  // The recording, when it is over.
  [[nodiscard]] std::string file() { return file(take_records()); }
  // With these records instead of its own.
  [[nodiscard]] std::string file(const std::string& records) {
    unit_.disable();
    unit_.flush();
    EXPECT_EQ(unit_.status(), base::Status::OK);
    return perf_file(auxtrace_info() + records + auxtrace(0, kEach, 0, 0, stream_), kOsAndUser);
  }

  std::vector<std::uint64_t> ips;   // that were executed
  std::vector<std::uint32_t> pids;  // whose user code it was; 0: the kernel's

 private:
  static constexpr std::uint64_t kEntry = 0;
  static constexpr std::uint64_t kExit = 16;
  static constexpr std::uint64_t kSwitch = 32;
  static constexpr std::uint64_t kLoop = 48;

  // As auxtrace_info() and Attribute have it.
  static softpt::UnitConfig config(const Options& options) {
    softpt::UnitConfig config;
    config.user_only = false;
    config.mtc = options.mtc;
    config.tsc_ctc_numerator = 84;
    config.tsc_ctc_denominator = 2;
    config.max_nonturbo_ratio = config.core_bus_ratio = 24;
    return config;
  }
  void pass(std::uint64_t ticks) {
    tsc_ += ticks;
    unit_.set_time(tsc_, tsc_);
  }
  void step(std::uint64_t ip, std::uint32_t pid) {
    ips.push_back(ip);
    pids.push_back(pid);
  }
  // JMP RAX where the kernel is.
  void jump(std::uint64_t to) {
    step(at_, 0);
    at_ = kKernel + to;
    unit_.jump_indirect(at_);
  }
  void load_here(std::uint64_t cr3) {
    step(at_, 0);
    unit_.set_cr3(cr3);
    loaded_ = cr3;
    at_ += 3;
  }
  // Records may be early or late, but not in another order than what they tell.
  std::uint64_t told_at(std::uint64_t tsc) { return told_ = std::max(told_ + kTscPerNs, tsc); }
  void told_in(const Task& task, std::uint64_t tsc) { records_ += switched(who(task, tsc), false); }

  Options options_;
  std::mt19937_64 random_;
  std::string stream_;
  softpt::PtUnit unit_;
  std::string records_;
  std::uint64_t tsc_ = 1'000'000;
  std::uint64_t told_ = 0;
  std::uint64_t at_ = 0;  // in the kernel
  std::uint64_t loaded_ = 0;
  Task* now_ = nullptr;
};

}  // namespace ptkit::formats::test
