// Decoded code of one view of memory in one execution mode: each instruction is decoded once.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "flow/ip_map.h"
#include "flow/rows.h"
#include "image/image.h"

namespace ptkit::flow {

// What happens at the end of a run, as far as packets are concerned.
enum class RunEnd : std::uint8_t {
  COND,      // one TNT bit
  JUMP,      // direct: no packet
  CALL,      // direct near call: no packet
  RETURN,    // TIP, or a taken TNT bit
  INDIRECT,  // TIP (near)
  FAR,       // TIP, or TIP.PGD
  FALL,      // the run is full, or what follows cannot be decoded: go on at next_ip
  FAIL,      // no instruction could be decoded at `ip`: see `failure`; count is 0
};

// Consecutive instructions up to and including the next control transfer.
struct Run {
  std::uint64_t ip = 0;
  std::uint64_t last_ip = 0;  // of the last instruction
  std::uint64_t next_ip = 0;  // behind it
  std::uint64_t target = 0;   // direct branches
  std::uint32_t first = 0;    // its instructions in the cache's pool
  std::uint32_t count = 0;
  std::uint32_t size = 0;   // bytes
  Run* next_run = nullptr;  // where next_ip and target lead, once known
  Run* target_run = nullptr;
  RunEnd end = RunEnd::FALL;
  BranchKind branch = BranchKind::COND;         // of the last instruction, unless FALL or FAIL
  insn::InsnKind kind = insn::InsnKind::OTHER;  // of the last instruction
  bool pushes = false;                          // a near call that return compression counts
  base::Status failure = base::Status::OK;
};

class BlockCache {
 public:
  static constexpr std::uint32_t kMaxInsns = 512;  // of a run
  // More than the largest programs execute; some 200 MiB.
  static constexpr std::size_t kMostEntries = std::size_t{1} << 21U;

  BlockCache(const image::CodeView& view, insn::ExecMode mode) : view_(view), mode_(mode) {}
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // The run that starts at `ip`. Lives until clear().
  [[nodiscard]] Run& at(std::uint64_t ip) {
    if (const RunRef* hit = runs_by_ip_.find(ip)) return *hit->run;
    return build(ip);
  }
  [[nodiscard]] Run& next(Run& run) {
    return *(run.next_run ? run.next_run : (run.next_run = &at(run.next_ip)));
  }
  [[nodiscard]] Run& target(Run& run) {
    return *(run.target_run ? run.target_run : (run.target_run = &at(run.target)));
  }

  [[nodiscard]] std::span<const BlockInsn> insns(const Run& run) const noexcept {
    return {pool_.data() + run.first, run.count};
  }
  [[nodiscard]] const image::CodeView& view() const noexcept { return view_; }
  [[nodiscard]] insn::ExecMode mode() const noexcept { return mode_; }
  [[nodiscard]] std::size_t decoded() const noexcept {
    return decoded_;
  }  // calls of the disassembler that gave an instruction
  // Did anything fail to decode for which there were not as many bytes as the longest instruction has?
  [[nodiscard]] bool met_missing_code() const noexcept { return met_missing_code_; }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return runs_.size() * sizeof(Run) + pool_.capacity() * sizeof(BlockInsn) + runs_by_ip_.bytes() +
           insns_by_ip_.bytes();
  }  // of memory

  // Instructions and runs that take memory.
  [[nodiscard]] std::size_t entries() const noexcept { return pool_.size() + runs_.size(); }
  [[nodiscard]] bool too_big() const noexcept { return entries() >= kMostEntries; }
  void clear();  // forgets all

 private:
  struct RunRef {
    Run* run = nullptr;
    [[nodiscard]] bool used() const noexcept { return run != nullptr; }
  };
  struct InsnRef {
    const Run* run = nullptr;
    std::uint32_t index = 0;
    [[nodiscard]] bool used() const noexcept { return run != nullptr; }
  };

  Run& build(std::uint64_t ip);
  void fill(Run& run);
  bool copy_known(Run& run, const InsnRef& known, std::uint64_t& at);
  base::Status decode_at(std::uint64_t at, insn::Insn& out);
  void finish(Run& run, const insn::Insn& last) const;

  const image::CodeView& view_;
  insn::ExecMode mode_;
  std::deque<Run> runs_;
  std::vector<BlockInsn> pool_;
  IpMap<RunRef> runs_by_ip_;
  IpMap<InsnRef> insns_by_ip_;
  std::size_t decoded_ = 0;
  bool met_missing_code_ = false;
};

[[nodiscard]] BranchKind branch_kind(insn::InsnClass cls, insn::InsnKind kind) noexcept;

}  // namespace ptkit::flow
