// One of perf's ring buffers with its trace, and the stream that comes of it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "capture/bundle_output.h"
#include "capture/perf_port.h"
#include "capture/perf_records.h"
#include "capture/perf_ring.h"
#include "capture/perf_store.h"
#include "capture/ring_copies.h"
#include "formats/ring_holes.h"

namespace ptkit::capture {

class PerfBuffer {
 public:
  struct Sizes {
    std::uint64_t records = 0;  // bytes: powers of two, whole pages
    std::uint64_t trace = 0;    // 0: there is none, only records
    bool ring = false;          // trace is overwritten
  };
  // The buffer of an event of intel_pt or intel_bts, of a processor or (`cpu` negative) a thread. Nothing,
  // and the errno.
  [[nodiscard]] static std::optional<PerfBuffer> map(PerfPort& port, int event, int tid, int cpu,
                                                     const Sizes& sizes, int& error);
  void unmap(PerfPort& port);
  // How its records are to be read.
  void set_attr(const formats::perf::Attr& attr, bool switches);
  // Its trace is branches that intel_bts stored.
  void has_stored(bool of_threads, bool kernel);
  // Tracing pauses: what is stored later does not go on where it was.
  void interrupt();
  void forget(std::int32_t pid, std::uint64_t before_tsc);  // as PerfStore

  [[nodiscard]] int event() const noexcept { return event_; }
  [[nodiscard]] int cpu() const noexcept { return cpu_; }
  [[nodiscard]] int tid() const noexcept { return tid_; }
  [[nodiscard]] std::uint32_t stream() const noexcept { return stream_; }
  void set_stream(std::uint32_t stream) noexcept { stream_ = stream; }
  [[nodiscard]] const trace::Clock& clock() const noexcept { return clock_; }

  // What was written since the last time goes to the bundle, and its room back to the kernel; of rings only
  // records.
  [[nodiscard]] std::optional<base::Failure> drain(BundleOutput& output, std::vector<SystemRecord>& records,
                                                   std::vector<PerfHit>& hits);
  // Tracing pauses: what a ring has that is new.
  void collect(BundleOutput& output, std::vector<SystemRecord>& records);
  // What the last drain() found. `moved`: there was trace. `full`: somebody may have found no room, and there
  // is some now. `was_full`: so at any time.
  struct Found {
    bool moved = false;
    bool full = false;
    bool was_full = false;
  };
  [[nodiscard]] const Found& found() const noexcept { return found_; }

  struct Counts {
    std::uint64_t bytes = 0;         // of trace, in the bundle
    std::uint64_t stops = 0;         // a full buffer stopped tracing (TRUNCATED)
    std::uint64_t gaps = 0;          // something is missing in between (PARTIAL)
    std::uint64_t collisions = 0;    // COLLISION
    std::uint64_t lost_records = 0;  // and with them, maybe, notes of losses
    std::uint64_t held_back = 0;     // times that there were more samples than the kernel allows
    std::uint64_t bad_records = 0;
    std::map<std::uint32_t, std::uint64_t> unknown;  // types of records, and how many
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  PerfBuffer(int event, int tid, int cpu, const Sizes& sizes)
      : event_(event), tid_(tid), cpu_(cpu), ring_(sizes.ring), copies_(sizes.trace), holes_(sizes.trace) {}

  struct Loss {
    std::uint64_t place = 0;  // bytes of trace since the buffer began
    base::Status cause = base::Status::OK;
  };

  void attach(std::span<std::uint8_t> first, std::span<std::uint8_t> trace);
  [[nodiscard]] PerfTold read_records();
  void count(const AuxNote& note);
  void note(const AuxNote& note);
  void note_place(const AuxNote& note);
  [[nodiscard]] bool fills_up(std::uint64_t head) const;
  void finish(std::uint64_t head, const PerfTold& told, bool fills_up);
  void tell_up_to(std::uint64_t place);
  void find_latecomers(const PerfTold& told, bool fills_up);
  [[nodiscard]] bool can_be(const AuxNote& note) const noexcept;
  [[nodiscard]] std::optional<base::Failure> drain_stored(BundleOutput& output, std::uint64_t head,
                                                          const PerfTold& told,
                                                          std::vector<SystemRecord>& records);
  [[nodiscard]] std::optional<base::Failure> drain_trace(BundleOutput& output, std::uint64_t head,
                                                         const PerfTold& told);
  void give_stored(BundleOutput& output, std::uint64_t head, std::vector<SystemRecord>& records);
  void give_note(BundleOutput& output, const AuxNote& note, std::vector<SystemRecord>& records);
  void give_piece(BundleOutput& output, const BranchPiece& piece, std::vector<SystemRecord>& records);
  void lose(BundleOutput& output, base::Status cause);
  void give(BundleOutput& output, std::uint64_t from, std::uint64_t to);

  int event_;
  int tid_;
  int cpu_;
  std::uint32_t stream_ = 0;
  bool ring_;
  std::span<std::uint8_t> page_;  // and the records
  std::span<std::uint8_t> memory_;
  PerfRing records_;
  PerfRing trace_;
  trace::Clock clock_;
  std::optional<PerfRecords> reader_;
  std::vector<Loss> losses_;   // that are not written yet
  std::uint64_t told_to_ = 0;  // the kernel told of all trace before that, or its notes were lost
  Found found_;
  bool may_stand_ = false;  // an event that found no room, and its trace may not be shown yet
  std::optional<std::uint64_t> no_room_since_;  // when; until there was some again
  std::uint64_t last_note_ = 0;                 // when
  std::set<std::int32_t> latecomers_;           // threads that came meanwhile: each is traced but once more
  RingCopies copies_;
  formats::RingHoles holes_;
  std::optional<PerfStore> store_;
  std::vector<AuxNote> notes_;  // of what was stored, that are not followed yet
  bool lapped_ = false;
  Counts counts_;
};

}  // namespace ptkit::capture
