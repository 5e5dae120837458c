// Joins the AUXTRACE chunks of a perf.data file to one stream per AUX buffer (tools/perf/util/auxtrace.c,
// intel-pt.c). For .cpp files of this folder only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "formats/common/ring_holes.h"
#include "formats/perf_event/record.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// A PERF_RECORD_AUX: the kernel published the AUX data up to an offset.
struct Flush {
  std::uint64_t offset = 0;         // in the stream
  std::uint64_t ns = 0;             // time of the record, by perf's clock
  std::int64_t pid = trace::kNoId;  // thread that ran at that time
  std::int64_t tid = trace::kNoId;
};

struct AuxStream {
  trace::Stream stream;
  std::vector<Flush> flushes;  // in order; empty for snapshots
  // Offset of the first new byte of each snapshot. Nothing was traced between two snapshots.
  std::vector<std::uint64_t> snapshots;
  bool of_task = false;  // the event counts one task and its children, not all tasks of a CPU
};

// Returns a stream named by its CPU, or by its thread if the CPU is unknown.
[[nodiscard]] trace::Stream stream_named(std::int64_t cpu, std::int64_t tid);

struct AuxLayout {
  bool snapshots = false;        // chunks are snapshots of the AUX buffer, which may overlap
  bool flushes = false;          // AuxStream::flushes is wanted
  std::size_t record_bytes = 1;  // bytes of a BTS record, which is never split; 1 for Processor Trace
};

class AuxStreams {
 public:
  // Adds an AUXTRACE record and the chunk of AUX data that follows it. False: the record is malformed.
  [[nodiscard]] bool add_auxtrace(const Record& auxtrace, trace::TraceBuffer bytes);
  // Adds the AUX data of a sample (PERF_SAMPLE_AUX): the last bytes of a CPU's or a thread's trace.
  void add_sample(trace::TraceBuffer bytes, const Trailer& trailer);
  // Adds a PERF_RECORD_AUX: the range that the kernel wrote into an AUX buffer, and flags of losses.
  [[nodiscard]] bool add_aux_record(const Record& aux, const Trailer& trailer);
  [[nodiscard]] base::Result<std::vector<AuxStream>> build(const AuxLayout& layout);
  // Number of AUX records with PERF_AUX_FLAG_PARTIAL: virtual machines ran (VMX operation).
  [[nodiscard]] std::uint64_t partial() const noexcept { return partial_; }

 private:
  struct AuxChunk {
    trace::TraceBuffer bytes;
    std::uint64_t begin = 0;               // AUX offset since the event was opened (aux_tail); 0 for samples
    std::uint64_t order = 0;               // position in the file
    base::Status lost = base::Status::OK;  // loss before the chunk
    std::uint64_t lost_bytes = 0;
    std::vector<std::uint64_t> holes = {};  // of a snapshot: offsets at which trace is missing
  };
  struct Queue {
    std::int64_t cpu = trace::kNoId;
    std::int64_t pid = trace::kNoId;  // of a per-thread buffer, if known
    std::int64_t tid = trace::kNoId;
    std::vector<AuxChunk> chunks;
  };
  struct AuxRecord {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t flags = 0;
    Trailer trailer;
  };
  struct RingRecord {
    std::uint64_t head = 0;  // ring offset of the next write
    std::uint64_t ring_bytes = 0;
    std::uint64_t order = 0;  // position in the file
    bool hole = false;
  };
  // AUX records of one CPU or thread. Any number of queues may share them, so that they are sorted once.
  struct AuxRecords {
    // In the file's order; after sort(): by `end`, without duplicates.
    std::vector<AuxRecord> all;
    std::set<std::pair<std::uint64_t, base::Status>> losses;  // by AUX offset; filled by sort()
    void sort();

    std::vector<RingRecord> of_rings;  // PERF_AUX_FLAG_OVERWRITE, in the file's order
    std::size_t passed = 0;            // number of of_rings that snapshots have used
    std::optional<RingHoles> holes;
  };

  static void join(Queue& queue, const AuxRecords& records, std::size_t record_bytes);
  static void join_snapshots(Queue& queue, AuxRecords& records, const AuxLayout& layout);
  static void find_holes(AuxChunk& chunk, std::optional<std::uint64_t> padded, AuxRecords& records,
                         bool lost);
  [[nodiscard]] static std::vector<Flush> flushes_of(const Queue& queue, const AuxRecords& records);
  static void add_losses(const Queue& queue, const AuxRecords& records,
                         std::vector<trace::KnownLoss>& losses);
  [[nodiscard]] static base::Result<AuxStream> stream_of(Queue& queue, const AuxRecords& records,
                                                         bool flushes, bool is_snapshot);
  [[nodiscard]] AuxRecords& records_of(const Queue& queue);

  std::map<std::uint32_t, Queue> queues_;                           // by auxtrace_index
  std::map<std::pair<std::int64_t, std::int64_t>, Queue> samples_;  // by CPU and thread
  std::map<std::int64_t, AuxRecords> records_of_cpu_;
  std::map<std::int64_t, AuxRecords> records_of_tid_;
  std::uint64_t partial_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace ptkit::formats::perf
