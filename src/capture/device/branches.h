// Branch Trace Store of the driver: branches, and the marks between them (struct ptkit_branch_mark).
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "trace/branch_record.h"
#include "trace/branch_records.h"

namespace ptkit::capture {

// Branches between two marks. They belong to one thread.
struct BranchStretch {
  // TSC of the first mark, or of the second one if a ring has overwritten the first; 0: no mark is known.
  std::uint64_t since = 0;
  std::int32_t pid = -1;  // -1: not known
  std::int32_t tid = -1;
  std::int32_t end_pid = -1;  // of the mark that ends it; -1: none does
  std::uint64_t until = 0;    // TSC of that mark; 0: none ends it, or the first mark is not known
  std::vector<trace::BranchRecord> records;
};

class DriverBranches {
 public:
  // `kernel`: kernel branches are stored, too.
  explicit DriverBranches(bool kernel) : kernel_(kernel) {}

  static constexpr std::uint64_t kRecordBytes = trace::record_bytes(trace::DsLayout::BITS64);

  // The next whole records of a buffer. Returns stretches with branches.
  [[nodiscard]] std::vector<BranchStretch> take(base::Bytes bytes);
  // The next branch does not continue at the target of the last one.
  void interrupt() noexcept { new_path_ = true; }

 private:
  void end_stretch(base::Bytes branches, std::uint64_t tsc, std::vector<BranchStretch>& out);

  bool kernel_;
  bool new_path_ = true;
  BranchStretch now_;  // without records
  trace::PredictionInference predictions_;
};

}  // namespace ptkit::capture
