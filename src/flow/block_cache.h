// Decoded code of one view of memory in one execution mode.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "flow/chunks.h"
#include "flow/ip_index.h"
#include "flow/rows.h"
#include "image/code_folder.h"
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
  Run* next_run = nullptr;    // where next_ip and target lead, once known
  Run* target_run = nullptr;
  std::uint32_t first = 0;  // its instructions in the cache's pool
  std::uint16_t count = 0;
  std::uint16_t size = 0;  // bytes
  std::uint16_t number_low = 0;
  std::uint8_t number_high = 0;
  RunEnd end = RunEnd::FALL;
  BranchKind branch = BranchKind::COND;         // of the last instruction, unless FALL or FAIL
  insn::InsnKind kind = insn::InsnKind::OTHER;  // of the last instruction
  bool pushes = false;                          // a near call that return compression counts
  base::Status failure = base::Status::OK;

  // In its cache: less than 2^24.
  [[nodiscard]] std::uint32_t number() const noexcept {
    return std::uint32_t{number_high} << 16U | number_low;
  }
};
static_assert(sizeof(Run) <= 64, "one cache line");

class DecisionGraph;

class BlockCache {
 public:
  static constexpr std::uint32_t kMaxInsns = 512;  // of a run
  // More than the largest programs execute; some 60 MiB where runs are as short as real ones.
  static constexpr std::size_t kMostEntries = std::size_t{1} << 21U;

  // `kept` has what earlier processes decoded; null: nothing. `cs_base`: of 16 and 32-bit code, which is at
  // linear addresses here.
  BlockCache(const image::CodeView& view, insn::ExecMode mode, image::KeptFiles* kept = nullptr,
             std::uint32_t cs_base = 0);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // The run that starts at `ip`. Lives until clear().
  [[nodiscard]] Run& at(std::uint64_t ip) {
    const auto is_there = [this, ip](std::uint32_t number) noexcept { return runs_[number].ip == ip; };
    const std::uint32_t found = runs_by_ip_.find(ip, is_there);
    return found != IpIndex::kNone ? runs_[found] : build(ip);
  }
  [[nodiscard]] Run& next(Run& run) {
    return *(run.next_run ? run.next_run : (run.next_run = &at(run.next_ip)));
  }
  [[nodiscard]] Run& target(Run& run) {
    return *(run.target_run ? run.target_run : (run.target_run = &at(run.target)));
  }

  [[nodiscard]] Run& run(std::uint32_t number) const noexcept { return runs_[number]; }
  [[nodiscard]] std::size_t run_count() const noexcept { return runs_.size(); }
  [[nodiscard]] std::span<const BlockInsn> insns(const Run& run) const noexcept {
    return insns_.part(run.first, run.count);
  }
  [[nodiscard]] const image::CodeView& view() const noexcept { return view_; }
  [[nodiscard]] insn::ExecMode mode() const noexcept { return mode_; }
  [[nodiscard]] std::uint32_t cs_base() const noexcept { return cs_base_; }
  // Instructions that were decoded. Where runs overlap, each has decoded its own.
  [[nodiscard]] std::size_t decoded() const noexcept { return insns_.size(); }
  // Those of them that an earlier process had decoded, and those that it could have, had it been there.
  [[nodiscard]] std::size_t recalled() const noexcept { return recalled_; }
  [[nodiscard]] std::size_t learned() const noexcept { return learned_; }
  void forget_learned() noexcept { learned_ = 0; }
  // Adds what was decoded of files to `lines`, by file.
  void collect(std::map<std::int32_t, image::KeptLines>& lines) const;
  // Did anything fail to decode for which there were not as many bytes as the longest instruction has?
  [[nodiscard]] bool met_missing_code() const noexcept { return met_missing_code_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return arena_.bytes(); }  // of memory
  [[nodiscard]] base::Arena& arena() noexcept { return arena_; }

  // Instructions and runs that take memory.
  [[nodiscard]] std::size_t entries() const noexcept { return insns_.size() + runs_.size(); }
  [[nodiscard]] bool too_big() const noexcept { return entries() >= kMostEntries; }
  void clear();  // forgets all

  // What packets do with this code; made when first asked for. It goes with clear(), or when returns are
  // compressed where they were not.
  [[nodiscard]] DecisionGraph& graph(bool return_compression);
  [[nodiscard]] DecisionGraph* graph() noexcept { return graph_.get(); }
  void forget_graph() noexcept;

 private:
  // Bytes of the view from an address on, kept from one instruction to the next.
  struct Window {
    std::uint64_t begin = 0;
    image::Source source;
  };
  // What is kept of the file that the window shows.
  struct Memory {
    std::int32_t file = -1;
    bool can_keep = false;
    const image::KeptCode* code = nullptr;
    const image::KeptLine* line = nullptr;  // of `code`
    std::uint64_t line_number = ~std::uint64_t{0};
  };

  Run& build(std::uint64_t ip);
  void fill(Run& run, std::span<BlockInsn> out);
  base::Status decode_at(std::uint64_t at, insn::Insn& out);
  void move_window(std::uint64_t at);
  bool recall(std::uint64_t at, base::Bytes rest, insn::Insn& out) noexcept;
  base::Status decode_across(std::uint64_t at, insn::Insn& out);
  void finish(Run& run, const insn::Insn& last) const;

  const image::CodeView& view_;
  insn::ExecMode mode_;
  std::uint32_t cs_base_;
  base::Arena arena_;  // of all that follows
  Chunks<Run, 64> runs_{arena_};
  Chunks<BlockInsn, 4096> insns_{arena_};
  IpIndex runs_by_ip_{arena_};
  Window window_;
  image::KeptFiles* kept_;
  Memory memory_;
  std::size_t recalled_ = 0;
  std::size_t learned_ = 0;
  std::unique_ptr<DecisionGraph> graph_;
  bool met_missing_code_ = false;
};

[[nodiscard]] BranchKind branch_kind(insn::InsnClass cls, insn::InsnKind kind) noexcept;

}  // namespace ptkit::flow
