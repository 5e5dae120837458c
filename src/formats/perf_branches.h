// Branches that perf recorded one by one: branch stacks of samples (-b), and Branch Trace Store, in the AUX
// area or as samples (tools/perf/util/branch.h, intel-bts.c). For .cpp files of this folder only.
#pragma once

#include <map>
#include <vector>

#include "formats/branch_records.h"
#include "formats/perf_sample.h"
#include "formats/perf_sideband.h"
#include "formats/perf_streams.h"
#include "trace/branch_record.h"

namespace ptkit::formats::perf {

inline constexpr std::size_t kStoreRecordBytes = record_bytes(DsLayout::BITS64);
inline constexpr std::uint64_t kEndOf32BitCode = std::uint64_t{1} << 32U;

// A stream of branch records, and whose they are, by place.
struct BranchStream {
  trace::Stream stream;
  std::vector<Owner> owners;
};

// Branches of samples: a stream for each CPU, or for each thread if samples name no CPU.
class Branches {
 public:
  // False: the sample has none, or they are not branches one after the other (a call stack).
  [[nodiscard]] bool take(const Attr& attr, const Sample& sample);
  void lost() noexcept { ++times_lost_; }  // perf had no room for samples, of whatever CPU or thread
  [[nodiscard]] bool empty() const noexcept { return queues_.empty(); }
  [[nodiscard]] std::vector<BranchStream> make(const trace::Clock& clock);

 private:
  struct Queue {
    std::vector<trace::BranchRecord> records;  // `tsc` has nanoseconds
    std::vector<Owner> owners;                 // here, too
    std::vector<trace::KnownLoss> losses;
    bool first = true;             // what comes before the next branch is not known
    std::uint64_t times_lost = 0;  // of those of all, as of its last branch
  };
  Queue& queue_of(const Trailer& who);
  static void add_stack(const Attr& attr, const Sample& sample, Queue& queue);
  static void add_branch(const Sample& sample, Queue& queue);
  void note_loss(Queue& queue) const;

  std::map<std::pair<std::int64_t, std::int64_t>, Queue> queues_;  // by CPU and thread
  std::uint64_t times_lost_ = 0;
};

// Streams of Branch Trace Store's own records. `running`: who came in when, in the order of time. `kernel`:
// the kernel's branches are stored, too.
[[nodiscard]] std::vector<BranchStream> from_stores(const std::vector<AuxStream>& stores,
                                                    const std::vector<Running>& running,
                                                    const trace::Clock& clock, bool kernel);

}  // namespace ptkit::formats::perf
