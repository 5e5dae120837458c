// Whose page tables a value of CR3 names, and when: learned from who ran while it was in force. For .cpp
// files of this folder only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats {

// From a place of a stream on, CR3 has this value.
struct TableChange {
  std::uint64_t offset = 0;  // of the PIP packet
  std::uint64_t cr3 = 0;     // without PCID; 0: nobody's who is known here (a guest's)
  std::uint64_t tsc = 0;     // it happened in [tsc, tsc + error]
  std::uint64_t error = 0;
  std::uint64_t guess = 0;  // the best one, when
};

// What contradicts itself is decided by time: page tables belong to one process until they are freed, so
// whoever is seen with them in between, and for less long, was told too early or too late, or has borrowed
// them.
class PageTables {
 public:
  // `has_code`: by space; others are never owners (kernel threads run with anybody's tables). `doubt`: by how
  // many ticks switches may be told too early or too late.
  PageTables(std::vector<bool> has_code, std::uint64_t doubt)
      : has_code_(std::move(has_code)), doubt_(doubt), since_(has_code_.size(), trace::kTscMax) {}

  // `changes` of one stream, the last of them its end; `switches`: who ran, in the order of time.
  void learn(const std::vector<TableChange>& changes, const std::vector<trace::Switch>& switches);
  void settle();  // behind the last stream

  // Whose tables these are at a time; kAnySpace: that is not known.
  [[nodiscard]] trace::SpaceId owner(std::uint64_t cr3, std::uint64_t tsc) const;
  // Whether whoever had them then was seen with them for so long that it was no mistake in time.
  [[nodiscard]] bool is_certain(std::uint64_t cr3, std::uint64_t tsc) const;
  // Whose they were right before that time; kAnySpace: they had not been seen.
  [[nodiscard]] trace::SpaceId owner_before(std::uint64_t cr3, std::uint64_t tsc) const;
  // Whether a space has tables that are known, and since when (kTscMax: it has none).
  [[nodiscard]] bool has_tables(trace::SpaceId space) const { return since_[space] != trace::kTscMax; }
  [[nodiscard]] std::uint64_t since(trace::SpaceId space) const { return since_[space]; }

 private:
  // A space was seen with the tables from a time on.
  struct Use {
    std::uint64_t tsc = 0;
    std::uint64_t ticks = 0;  // for so long
    std::uint64_t error = 0;  // in both times, at most
    trace::SpaceId space = trace::kAnySpace;
  };
  [[nodiscard]] std::vector<Use> settled(std::vector<Use> uses) const;
  [[nodiscard]] const Use* use_at(std::uint64_t cr3, std::uint64_t tsc) const;  // nullptr: none

  std::vector<bool> has_code_;
  std::uint64_t doubt_;
  std::vector<std::uint64_t> since_;                          // by space
  std::unordered_map<std::uint64_t, std::vector<Use>> uses_;  // by CR3
};

}  // namespace ptkit::formats
