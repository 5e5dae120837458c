// Maps CR3 and time to the address space that owns the page tables. Learned from the threads that ran while
// CR3 had the value. For .cpp files of this folder only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::processes {

// CR3 has this value from an offset of the stream on (PIP packet).
struct Cr3Change {
  std::uint64_t offset = 0;  // of the PIP packet
  std::uint64_t cr3 = 0;     // without PCID; 0: not known, or a guest's
  std::uint64_t tsc = 0;     // the write was in [tsc, tsc + error]
  std::uint64_t error = 0;
  std::uint64_t estimate = 0;  // best estimate of the TSC
  bool in_psb = false;         // PIP in PSB+: the write was after the change before, and not after this one
};

// Page tables belong to one process until they are freed. If two processes alternate with one CR3, the
// process with more time is the owner. The other process has context switches that were recorded too early or
// too late, or it borrowed the page tables (vfork(), exit_mm()).
class PageTables {
 public:
  // `has_code`: by space. Spaces without code are never owners: kernel threads run with the page tables of
  // any process. `max_skew`: as max_switch_skew().
  PageTables(std::vector<bool> has_code, std::uint64_t max_skew)
      : has_code_(std::move(has_code)), max_skew_(max_skew), since_(has_code_.size(), trace::kTscMax) {}

  // `changes` of one stream, the last of them its end; `switches`: its context switches in the order of time.
  void learn(const std::vector<Cr3Change>& changes, const std::vector<trace::Switch>& switches);
  // Resolves owners by time. After learn() of all streams, before queries.
  void resolve_owners();

  // The owner of the page tables at a time; kAnySpace: not known.
  [[nodiscard]] trace::SpaceId owner(std::uint64_t cr3, std::uint64_t tsc) const;
  // Whether the owner had the page tables for longer than any skew.
  [[nodiscard]] bool is_certain(std::uint64_t cr3, std::uint64_t tsc) const;
  // The owner right before a time; kAnySpace: the page tables had no owner yet.
  [[nodiscard]] trace::SpaceId owner_before(std::uint64_t cr3, std::uint64_t tsc) const;
  // Whether a space owns page tables, and since when (kTscMax: it owns none).
  [[nodiscard]] bool has_tables(trace::SpaceId space) const { return since_[space] != trace::kTscMax; }
  [[nodiscard]] std::uint64_t since(trace::SpaceId space) const { return since_[space]; }

 private:
  // A space ran with the page tables from a time on.
  struct Use {
    std::uint64_t tsc = 0;
    std::uint64_t ticks = 0;  // duration
    std::uint64_t error = 0;  // of begin and end, at most
    trace::SpaceId space = trace::kAnySpace;
  };
  [[nodiscard]] std::vector<Use> resolved(std::vector<Use> uses) const;
  [[nodiscard]] const Use* use_at(std::uint64_t cr3, std::uint64_t tsc) const;  // nullptr: none

  std::vector<bool> has_code_;
  std::uint64_t max_skew_;
  std::vector<std::uint64_t> since_;                          // by space
  std::unordered_map<std::uint64_t, std::vector<Use>> uses_;  // by CR3
};

}  // namespace ptkit::processes
