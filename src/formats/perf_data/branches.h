// Branches that perf recorded one by one: branch stacks of samples (-b, LBR), and Branch Trace Store (BTS) in
// the AUX area or as samples (tools/perf/util/branch.h, intel-bts.c). For .cpp files of this folder only.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "formats/perf_data/streams.h"
#include "formats/perf_event/sample.h"
#include "formats/perf_event/sideband.h"
#include "trace/branch_record.h"
#include "trace/branch_records.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

inline constexpr std::size_t kBtsRecordBytes = trace::record_bytes(trace::DsLayout::BITS64);
inline constexpr std::uint64_t kEndOf32BitCode = std::uint64_t{1} << 32U;

// A stream of branch records, and the threads that executed them, by offset.
struct BranchStream {
  trace::Stream stream;
  std::vector<Owner> owners;
};

// Branches of samples. Makes one stream per CPU, or per thread if samples name no CPU.
class SampledBranches {
 public:
  // False: the sample has no branches, or a call stack instead of consecutive branches.
  [[nodiscard]] bool add_sample(const Attr& attr, const Sample& sample);
  void note_loss() noexcept { ++times_lost_; }  // perf lost samples of an unknown CPU or thread
  [[nodiscard]] bool empty() const noexcept { return queues_.empty(); }
  // `depth`: number of the processor's records of last branches; 0: that of the largest stack.
  [[nodiscard]] std::vector<BranchStream> build(const trace::Clock& clock, std::size_t depth);
  // After build(): records with RECORD_MAY_REPEAT.
  [[nodiscard]] std::size_t may_repeat() const noexcept { return may_repeat_; }

 private:
  struct Queue {
    std::vector<trace::BranchRecord> records;  // `tsc` has nanoseconds of perf's clock
    std::vector<Owner> owners;                 // `tsc` has nanoseconds of perf's clock
    std::vector<trace::KnownLoss> losses;
    bool first = true;             // branches before the next one are unknown
    std::uint64_t times_lost = 0;  // times_lost_ at the queue's last branch
    // Newest records that are copies, of stacks with every branch: their number, and that of all records of
    // the stack.
    std::vector<std::pair<std::size_t, std::size_t>> copies;
  };
  Queue& queue_of(const Trailer& trailer);
  void add_stack(const Attr& attr, const Sample& sample, Queue& queue);
  static void add_branch(const Sample& sample, Queue& queue);
  void add_loss(Queue& queue) const;

  std::map<std::pair<std::int64_t, std::int64_t>, Queue> queues_;  // by CPU and thread
  std::uint64_t times_lost_ = 0;
  std::size_t largest_ = 0;  // records of the largest stack
  std::size_t may_repeat_ = 0;
};

// Makes streams of BTS records in the AUX area. `running`: context switches in the order of time. `kernel`:
// the records include branches in kernel code.
[[nodiscard]] std::vector<BranchStream> bts_streams(const std::vector<AuxStream>& aux_streams,
                                                    const std::vector<Running>& running,
                                                    const trace::Clock& clock, bool kernel);

// Sets RECORD_CODE32 in records with a target below 4 GiB in a process that runs a 32-bit program: a 64-bit
// kernel's records do not show 32-bit code, but the ELF class of the program does. The bundle must already
// hold the context switches and the code of all spaces.
void mark_32_bit_code(trace::TraceBundle& bundle);

}  // namespace ptkit::formats::perf
