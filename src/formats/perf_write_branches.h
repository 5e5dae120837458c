// Branch records of streams as those of Branch Trace Store, in pieces of perf.data. For .cpp files of this
// folder only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/perf_write_pieces.h"
#include "trace/branch_record.h"

namespace ptkit::formats::perf {

class RecordReader;

// perf gives all branches of a buffer to one thread, so each thread of a stream has a buffer of its own.
class BranchTrace final : public WrittenTrace {
 public:
  // `queues`: by stream; theirs are the records that are nobody else's. `kernel`: the event is said to have
  // traced the kernel, too.
  BranchTrace(const trace::TraceBundle& bundle, const std::vector<Queue>& queues, bool kernel, GoOn go_on);

  [[nodiscard]] bool write_notes(Records& records) const override;
  [[nodiscard]] bool write(Output& out) override;

 private:
  struct Piece {
    std::size_t stream = 0;
    std::size_t queue = 0;  // in queues_
    std::size_t begin = 0;  // records
    std::size_t end = 0;
    std::uint64_t tsc = 0;                     // of the last record; 0: not known
    std::uint64_t lost_flags = 0;              // behind it; 0: nothing is lost
    std::uint64_t offset = 0;                  // in what the kernel would have written
    std::uint64_t reference = trace::kTscMax;  // perf decodes it with what was mapped until then
  };
  void cut_stream(std::size_t number, const Queue& rest, RecordReader& reader);
  void cut_run(std::size_t number, const Queue& owner, std::size_t begin, std::size_t end,
               RecordReader& reader);
  void lose(Piece& piece, std::uint64_t flags, std::uint64_t bytes);
  void add(Piece& piece);
  void set_references();
  [[nodiscard]] std::size_t queue_of(std::size_t stream, const Queue& owner);
  [[nodiscard]] bool may_tell(RecordReader& reader, std::size_t stream, std::size_t number) const;

  bool kernel_;
  std::vector<Queue> queues_;
  std::map<std::pair<std::size_t, std::int64_t>, std::size_t> numbers_;  // of queues, by stream and thread
  std::map<std::int64_t, std::uint64_t> offsets_;                        // behind a thread's pieces
  std::vector<bool> begun_;                                              // by queue: has records
  std::vector<Piece> pieces_;
};

// What branch records tell for which Branch Trace Store has no place.
void note_branch_records(const trace::TraceBundle& bundle, std::vector<std::string>& notes);

}  // namespace ptkit::formats::perf
