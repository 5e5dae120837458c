// Trace bytes of a perf.data file, put together by the buffer that they come from
// (tools/perf/util/auxtrace.c, intel-pt.c). For .cpp files of this folder only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "formats/perf_record.h"
#include "formats/ring_holes.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// The kernel handed over what a buffer had up to a place.
struct Flush {
  std::uint64_t offset = 0;         // in the stream
  std::uint64_t ns = 0;             // when, by perf's clock
  std::int64_t pid = trace::kNoId;  // who ran then
  std::int64_t tid = trace::kNoId;
};

struct AuxStream {
  trace::Stream stream;
  std::vector<Flush> flushes;         // in order; of copies none
  std::vector<std::uint64_t> copies;  // where what is new in each begins: nothing was traced meanwhile
  bool of_task = false;               // of one task and its children, not of all that a CPU ran
};

// A stream of a CPU, or of a thread if that is not known.
[[nodiscard]] trace::Stream stream_named(std::int64_t cpu, std::int64_t tid);

struct AuxForm {
  bool copies = false;   // pieces are copies of rings, and may repeat what an earlier one has
  bool flushes = false;  // are asked for
  std::size_t unit = 1;  // bytes of a record, which is never cut
};

class Streams {
 public:
  // An AUXTRACE record, and what follows it. False: it is malformed.
  [[nodiscard]] bool add(const Record& auxtrace, trace::TraceBuffer bytes);
  // The end of a CPU's or a thread's trace, as a sample has it.
  void add_sample(trace::TraceBuffer bytes, const Trailer& who);
  // An AUX record: what the kernel put into a buffer, and what it lost.
  [[nodiscard]] bool note(const Record& aux, const Trailer& who);
  [[nodiscard]] base::Result<std::vector<AuxStream>> make(const AuxForm& form);
  // Pieces with gaps, since virtual machines ran.
  [[nodiscard]] std::uint64_t partial() const noexcept { return partial_; }

 private:
  struct Piece {
    trace::TraceBuffer bytes;
    std::uint64_t begin = 0;  // in what the kernel has written since the event was opened; of samples 0
    std::uint64_t order = 0;  // in the file
    base::Status lost = base::Status::OK;  // before it
    std::uint64_t lost_bytes = 0;
    std::vector<std::uint64_t> holes = {};  // of a copy: places where something was not traced
  };
  struct Queue {
    std::int64_t cpu = trace::kNoId;
    std::int64_t pid = trace::kNoId;  // if it is that of one thread, and that is known
    std::int64_t tid = trace::kNoId;
    std::vector<Piece> pieces;
  };
  struct Note {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t flags = 0;
    Trailer who;
  };
  struct RingNote {
    std::uint64_t place = 0;  // that is written next
    std::uint64_t ring_bytes = 0;
    std::uint64_t order = 0;  // in the file
    bool hole = false;
  };
  // Of one CPU or thread, which may have any number of queues: put into order once for all of them.
  struct Notes {
    std::vector<Note> all;  // in the file's order; settled: by end, one for each
    std::set<std::pair<std::uint64_t, base::Status>> losses;  // settled: by place
    void settle();

    std::vector<RingNote> of_rings;  // in the file's order
    std::size_t taken = 0;           // of them, by copies
    std::optional<RingHoles> holes;
  };

  static void join(Queue& queue, const Notes& notes, std::size_t unit);
  static void join_copies(Queue& queue, Notes& notes, const AuxForm& form);
  static void find_holes(Piece& piece, std::optional<std::uint64_t> padded, Notes& notes, bool lost);
  [[nodiscard]] static std::vector<Flush> flushes_of(const Queue& queue, const Notes& notes);
  static void add_losses(const Queue& queue, const Notes& notes, std::vector<trace::KnownLoss>& losses);
  [[nodiscard]] static base::Result<AuxStream> stream_of(Queue& queue, const Notes& notes, bool flushes,
                                                         bool copies);
  [[nodiscard]] Notes& notes_of(const Queue& queue);

  std::map<std::uint32_t, Queue> queues_;                           // by the number of the ring buffer
  std::map<std::pair<std::int64_t, std::int64_t>, Queue> samples_;  // by CPU and thread
  std::map<std::int64_t, Notes> notes_of_cpu_;
  std::map<std::int64_t, Notes> notes_of_tid_;
  std::uint64_t partial_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace ptkit::formats::perf
