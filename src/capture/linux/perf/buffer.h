// One mmap of a perf event: its ring of records, its AUX area, and the stream that is written from them.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "capture/common/snapshot_delta.h"
#include "capture/linux/output/bundle_output.h"
#include "capture/linux/perf/bts_buffer.h"
#include "capture/linux/perf/port.h"
#include "capture/linux/perf/records.h"
#include "formats/common/ring_holes.h"

namespace ptkit::capture {

// One of the kernel's rings in the memory of an event (include/uapi/linux/perf_event.h): that of records, or
// the AUX area.
//
// A single-producer, single-consumer ring. The kernel writes `head`, user space writes `tail`; both count
// bytes from the beginning and never wrap:
//
//   tail            head         tail + size
//     |  unread data  |    free    |
//
// `head` is loaded with acquire order before data is read; `tail` is stored with release order after that.
class PerfRing {
 public:
  PerfRing() = default;
  PerfRing(base::Bytes memory, std::uint64_t* head, std::uint64_t* tail)
      : memory_(memory), head_(head), tail_(tail) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return memory_.size(); }
  [[nodiscard]] std::uint64_t head() const noexcept { return __atomic_load_n(head_, __ATOMIC_ACQUIRE); }
  [[nodiscard]] std::uint64_t tail() const noexcept { return *tail_; }
  // Whether `head` is plausible: [tail, head) fits the ring.
  [[nodiscard]] bool holds(std::uint64_t head) const noexcept {
    return head >= tail() && head - tail() <= size();
  }
  // Bytes [from, to) where they lie in memory: one span, or two if the ring wraps around in between.
  struct Spans {
    base::Bytes first;
    base::Bytes second;
  };
  [[nodiscard]] Spans spans(std::uint64_t from, std::uint64_t to) const noexcept;
  [[nodiscard]] std::vector<std::uint8_t> copy(std::uint64_t from, std::uint64_t to) const;
  // Returns the space before `to` to the kernel.
  void release(std::uint64_t to) noexcept { __atomic_store_n(tail_, to, __ATOMIC_RELEASE); }

 private:
  base::Bytes memory_;
  std::uint64_t* head_ = nullptr;
  std::uint64_t* tail_ = nullptr;
};

// The conversion of perf's time to TSC; nothing if the kernel's clock source is not the TSC.
[[nodiscard]] std::optional<trace::Clock> clock_of(const perf_event_mmap_page& page) noexcept;

// The contents of a stopped ring in overwrite mode, oldest byte first. `position`: of the next byte. Bytes
// that were never written are zero, so a byte that is not zero after `position` sets `lapped`: the ring has
// wrapped.
[[nodiscard]] std::vector<std::uint8_t> unrolled(base::Bytes memory, std::uint64_t position, bool& lapped);

// The protocol of the AUX area without overwrite mode (perf_aux_output_begin() and perf_aux_output_end() in
// kernel/events/ring_buffer.c; PERF_RECORD_AUX in include/uapi/linux/perf_event.h):
//
//   aux_tail                    recorded_to_              aux_head          aux_tail + size
//      |  data with AUX records      |  data without          |      free          |
//
// The kernel writes the AUX record of data before it moves aux_head past the data, but a record can become
// readable later: data_head moves when the outermost record is complete, and the interrupt of the trace unit
// may come while another record of the same ring is being written. So data without a record stay in the
// buffer until the next drain(). If their record is still missing then, or records were lost, it was lost.
//
//   AUX record flag   trace is missing        loss is written
//   TRUNCATED         after the data          at begin + bytes, BUFFER_FULL
//   PARTIAL           somewhere in the data   at begin, NOT_TRACED
//   COLLISION         somewhere in the data   at begin, NOT_TRACED
//
// An event without free space traces no more. The kernel disables the event (`pending_disable`) immediately,
// some time later, at the thread's next switch out, or never. User space does not see which. So a buffer goes
// through these states:
//
//                TRUNCATED, records lost, or free space <= kMinFree
//   EVENTS ON ------------------------------------------------> MAYBE DISABLED  (may_be_disabled_)
//       ^                                                             |
//       |  PerfBackend::restart_if_full():                            |  drain() has written all data and
//       |  PERF_EVENT_IOC_DISABLE, drain(), PERF_EVENT_IOC_ENABLE     |  all losses
//       +---------------------------- FULL <--------------------------+
//                           (last_drain().full)
//
// Disabling and enabling has no effect on an event that the kernel disables at the next switch out.
// Therefore, after the first FULL (last_drain().was_full), the back end enables the events whenever a drain
// finds trace.
class PerfBuffer {
 public:
  struct Sizes {
    std::uint64_t records = 0;  // bytes: a power of two, whole pages
    std::uint64_t trace = 0;    // bytes of the AUX area; 0: none
    bool ring = false;          // overwrite mode
  };
  // Maps the buffer of an event of intel_pt or intel_bts, of a CPU or (`cpu` negative) a thread. Returns
  // nothing, and the errno in `error`, if mmap() fails.
  [[nodiscard]] static std::optional<PerfBuffer> map(PerfPort& port, int event, int tid, int cpu,
                                                     const Sizes& sizes, int& error);
  void unmap(PerfPort& port);
  // `attr`: of the events that write records. `switches`: as in PerfRecords.
  void set_attr(const formats::perf::Attr& attr, bool switches);
  // The AUX area has branch records of intel_bts. Parameters as in BtsBuffer.
  void set_bts(bool per_thread, bool kernel);
  // Tracing is interrupted: the next branch does not continue at the target of the last one.
  void interrupt();
  // As BtsBuffer::forget().
  void forget(std::int32_t pid, std::uint64_t before_tsc);

  [[nodiscard]] int event() const noexcept { return event_; }
  [[nodiscard]] int cpu() const noexcept { return cpu_; }
  [[nodiscard]] int tid() const noexcept { return tid_; }
  [[nodiscard]] std::uint32_t stream() const noexcept { return stream_; }
  void set_stream(std::uint32_t stream) noexcept { stream_ = stream; }
  [[nodiscard]] const trace::Clock& clock() const noexcept { return clock_; }

  // Writes new AUX data to the bundle and new records to `records`, and returns the space to the kernel. In
  // overwrite mode, reads records only.
  [[nodiscard]] std::optional<base::Failure> drain(BundleOutput& output, std::vector<SystemRecord>& records,
                                                   std::vector<FiredEvent>& fired);
  // Overwrite mode, while tracing is paused: writes the new AUX data of the ring.
  void collect(BundleOutput& output, std::vector<SystemRecord>& records);
  // Result of the last drain(); the states are drawn above.
  struct DrainResult {
    bool had_trace = false;
    bool full = false;      // an event may be disabled, and the buffer has space now
    bool was_full = false;  // `full` was set by this or an earlier drain()
  };
  [[nodiscard]] const DrainResult& last_drain() const noexcept { return last_drain_; }

  struct Counts {
    std::uint64_t bytes = 0;         // of trace, in the bundle
    std::uint64_t stops = 0;         // AUX records with TRUNCATED, and full buffers without one
    std::uint64_t gaps = 0;          // AUX records with PARTIAL
    std::uint64_t collisions = 0;    // AUX records with COLLISION
    std::uint64_t lost_records = 0;  // AUX records may be among them
    std::uint64_t throttled = 0;     // THROTTLE and LOST_SAMPLES records
    std::uint64_t bad_records = 0;
    std::map<std::uint32_t, std::uint64_t> unknown;  // by record type
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  PerfBuffer(int event, int tid, int cpu, const Sizes& sizes)
      : event_(event),
        tid_(tid),
        cpu_(cpu),
        ring_(sizes.ring),
        snapshots_(sizes.trace),
        holes_(sizes.trace) {}

  struct Loss {
    std::uint64_t position = 0;  // in AUX data, as aux_head counts
    base::Status cause = base::Status::OK;
  };

  void attach(std::span<std::uint8_t> first, std::span<std::uint8_t> trace);
  [[nodiscard]] ParsedRecords read_records();
  void count_flags(const AuxRecord& aux);
  void on_aux_record(const AuxRecord& aux);
  void add_hole(const AuxRecord& aux);
  [[nodiscard]] bool fills_silently(std::uint64_t head) const;
  [[nodiscard]] std::uint64_t settled_end(std::uint64_t head, std::uint64_t recorded_to, bool lost);
  void release_space(std::uint64_t end, const ParsedRecords& parsed, bool fills_silently);
  void add_unrecorded(std::uint64_t position);
  void find_untraced_threads(const ParsedRecords& parsed, bool fills_silently);
  [[nodiscard]] bool is_plausible(const AuxRecord& aux) const noexcept;
  [[nodiscard]] std::optional<base::Failure> drain_bts(BundleOutput& output, std::uint64_t head,
                                                       const ParsedRecords& parsed,
                                                       std::vector<SystemRecord>& records);
  [[nodiscard]] std::optional<base::Failure> drain_trace(BundleOutput& output, std::uint64_t head,
                                                         const ParsedRecords& parsed);
  [[nodiscard]] std::uint64_t write_bts(BundleOutput& output, std::uint64_t head, bool lost,
                                        std::vector<SystemRecord>& records);
  void write_aux_record(BundleOutput& output, const AuxRecord& aux, std::vector<SystemRecord>& records);
  void write_branches(BundleOutput& output, const BranchChunk& chunk, std::vector<SystemRecord>& records);
  void add_loss(BundleOutput& output, base::Status cause);
  void write_trace(BundleOutput& output, std::uint64_t from, std::uint64_t to);

  int event_;
  int tid_;
  int cpu_;
  std::uint32_t stream_ = 0;
  bool ring_;
  std::span<std::uint8_t> page_;    // perf_event_mmap_page and the ring of records
  std::span<std::uint8_t> memory_;  // the AUX area
  PerfRing records_;
  PerfRing trace_;
  trace::Clock clock_;
  std::optional<PerfRecords> reader_;
  std::vector<Loss> losses_;  // not written yet
  // AUX data before this position has AUX records, or its records are known to be lost.
  std::uint64_t recorded_to_ = 0;
  // aux_head at the last drain(): what has no AUX record at the next one has lost it.
  std::uint64_t awaited_to_ = 0;
  DrainResult last_drain_;
  // The state MAYBE DISABLED.
  bool may_be_disabled_ = false;
  // TSC since when the buffer is full, until a drain() finds no disabled event.
  std::optional<std::uint64_t> full_since_;
  std::uint64_t last_aux_tsc_ = 0;
  // Threads that were switched in while the buffer was full: each one is traced once more, then disabled.
  std::set<std::int32_t> switched_in_while_full_;
  SnapshotDelta snapshots_;
  formats::RingHoles holes_;
  std::optional<BtsBuffer> bts_;
  std::vector<AuxRecord> pending_aux_;  // of BTS: aux_head has not reached their data yet
  bool lapped_ = false;                 // overwrite mode: the AUX area was written to its end once
  Counts counts_;
};

}  // namespace ptkit::capture
