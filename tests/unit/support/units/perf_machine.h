// A model CPU that runs processes with equal addresses and different code. The software trace unit traces it.
// perf's SWITCH records of it may be early or late.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "packet/packet.h"
#include "trace_unit/generator/packet_generator.h"
#include "unit/support/makers/perf_sample.h"

namespace ptkit::formats::test {

struct Task {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t cr3 = 0;
  std::uint64_t nops = 0;    // length of its loop, unique per task
  std::uint64_t resume = 0;  // IP at which it resumes; 0: not started
};

class PerfMachine {
 public:
  static constexpr std::uint64_t kUser = 0x401000;
  static constexpr std::uint64_t kKernel = 0xffffffff81000000;
  static constexpr std::uint64_t kTicksPerUs = 2000;
  static constexpr std::uint64_t kUserTables = 0x1000;  // page-table isolation: this bit of CR3

  struct Options {
    bool isolation = false;  // page-table isolation
    bool mtc = true;
    std::uint64_t jitter = 0;        // SWITCH records are early or late by at most these ticks
    bool traces_tasks = false;       // perf without -a: tracing is off during context switches
    bool records_switch_out = true;  // SWITCH records of switches out
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
    unit_.enable(at_ = kUser);
    record_switch_in(task, tsc_ - 1000);
    task.resume = kUser;
  }
  // Runs user code for about this time, then SYSCALL.
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
  // Runs kernel code for about this time.
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
  // Switches to another task. `recorded`: perf has SWITCH records of it.
  void change(Task& to, bool recorded = true) {
    const std::uint64_t off = options_.jitter == 0 ? 0 : random_() % (2 * options_.jitter);
    if (recorded && options_.records_switch_out)
      records_ += switched(id_of(*now_, record_time(tsc_ + off - options_.jitter)), true);
    pass(300);
    if (options_.traces_tasks) {
      disable();
      pass(300);
      unit_.set_cr3(loaded_ = to.cr3);
      unit_.enable(at_);
    } else if (to.cr3 != 0 && to.cr3 != loaded_) {
      load(to.cr3);
    }
    pass(300);
    now_ = &to;
    if (recorded) record_switch_in(to, record_time(tsc_ + off - options_.jitter));
  }
  // Loads the page tables of a process after exec().
  void load(std::uint64_t cr3) {
    jump(kSwitch);
    load_here(cr3);
  }
  // Returns to user code.
  void leave() {
    pass(1000 + random_() % 2000);
    jump(options_.isolation ? kExit : kExit + 3);
    if (options_.isolation) load_here(now_->cr3 | kUserTables);
    step(at_, 0);
    pass(100);
    if (now_->resume == 0) now_->resume = kUser;
    at_ = now_->resume;
    unit_.far_transfer(at_);
  }
  void add(const std::string& record) { records_ += record; }
  // Returns the records since the last call.
  [[nodiscard]] std::string take_records() { return std::exchange(records_, {}); }
  [[nodiscard]] SampleId id_of(const Task& task) const { return id_of(task, tsc_); }
  [[nodiscard]] static SampleId id_of(const Task& task, std::uint64_t tsc) {
    return {.pid = task.pid, .tid = task.tid, .tsc = tsc};
  }
  // Ends the recording and returns its file.
  [[nodiscard]] std::string file() { return file(take_records()); }
  // The same with other records.
  [[nodiscard]] std::string file(const std::string& records) {
    disable();
    unit_.flush();
    EXPECT_EQ(unit_.status(), base::Status::OK);
    return perf_file(auxtrace_info() + records + auxtrace(0, kEach, 0, 0, stream_), kOsAndUser);
  }

  std::vector<std::uint64_t> ips;   // of executed instructions
  std::vector<std::uint32_t> pids;  // by instruction; 0: kernel code

 private:
  static constexpr std::uint64_t kEntry = 0;
  static constexpr std::uint64_t kExit = 16;
  static constexpr std::uint64_t kSwitch = 32;
  static constexpr std::uint64_t kLoop = 48;

  // The same configuration as auxtrace_info() and Attribute.
  static trace_unit::generator::GeneratorConfig config(const Options& options) {
    trace_unit::generator::GeneratorConfig config;
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
  // Executes JMP RAX in the kernel.
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
  // Without address ranges, no near branch disables packets. WRMSR does so with a FUP before the TIP.PGD.
  void disable() {
    unit_.async_out(at_);
    unit_.disable();
  }
  // Records may be early or late, but keep their order.
  std::uint64_t record_time(std::uint64_t tsc) {
    return last_record_time_ = std::max(last_record_time_ + kTscPerNs, tsc);
  }
  void record_switch_in(const Task& task, std::uint64_t tsc) {
    records_ += switched(id_of(task, tsc), false);
  }

  Options options_;
  std::mt19937_64 random_;
  std::string stream_;
  trace_unit::generator::PacketGenerator unit_;
  std::string records_;
  std::uint64_t tsc_ = 1'000'000;
  std::uint64_t last_record_time_ = 0;
  std::uint64_t at_ = 0;  // IP in the kernel, or at which user code goes on
  std::uint64_t loaded_ = 0;
  Task* now_ = nullptr;
};

}  // namespace ptkit::formats::test
