// Trace bytes of a perf.data file, put together by the buffer that they come from
// (tools/perf/util/auxtrace.c, intel-pt.c). For .cpp files of this folder only.
#pragma once

#include <map>
#include <vector>

#include "formats/perf_file.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

class Streams {
 public:
  [[nodiscard]] bool add(const Record& auxtrace);  // false: it is malformed
  // An AUX record: what the kernel put into a buffer, and what it lost.
  [[nodiscard]] bool note(const Record& aux, const Trailer& who);
  // `snapshots`: pieces are copies of rings, and may repeat what an earlier one has.
  [[nodiscard]] std::vector<trace::Stream> make(const File& file, bool snapshots);

 private:
  struct Piece {
    base::Bytes bytes;
    std::uint64_t begin = 0;               // in what the kernel has written since the event was opened
    base::Status lost = base::Status::OK;  // before it
    std::uint64_t lost_bytes = 0;
  };
  struct Queue {
    std::int64_t cpu = trace::kNoId;
    std::int64_t tid = trace::kNoId;
    std::vector<Piece> pieces;
  };
  struct Note {
    std::int64_t cpu = trace::kNoId;
    std::int64_t tid = trace::kNoId;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t flags = 0;
  };

  void join(Queue& queue) const;
  static void join_snapshots(Queue& queue);
  [[nodiscard]] std::vector<Note> notes_of(const Queue& queue) const;
  [[nodiscard]] trace::Stream stream_of(const File& file, const Queue& queue, bool snapshots) const;

  std::map<std::uint32_t, Queue> queues_;  // by the number of the ring buffer
  std::vector<Note> notes_;
};

}  // namespace ptkit::formats::perf
