// Writes branch records of streams as AUXTRACE chunks of BTS records. For .cpp files of this folder only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/perf_export/aux_chunks.h"
#include "trace/branch_record.h"

namespace ptkit::formats::perf {

class RecordReader;

// perf attributes all branches of a buffer to one thread. Each thread of a stream therefore has its own
// buffer.
class BtsWriter final : public AuxWriter {
 public:
  // `queues`: by stream, the owner of records that no context switch assigns to a thread. `kernel`: the event
  // includes the kernel.
  BtsWriter(const trace::TraceBundle& bundle, const std::vector<Queue>& queues, bool kernel, GoOn go_on);

  [[nodiscard]] bool write_aux_records(Records& records) const override;
  [[nodiscard]] bool write(Output& out) override;

 private:
  struct AuxChunk {
    std::size_t stream = 0;
    std::size_t queue = 0;  // in queues_
    std::size_t begin = 0;  // index of the first record
    std::size_t end = 0;
    std::uint64_t tsc = 0;                     // time of the last record; 0: unknown
    std::uint64_t lost_flags = 0;              // PERF_AUX_FLAG_* of a loss after the chunk; 0: no loss
    std::uint64_t offset = 0;                  // AUX offset
    std::uint64_t reference = trace::kTscMax;  // perf decodes the chunk with the mappings of this time
  };
  void split_stream(std::size_t number, const Queue& rest, RecordReader& reader);
  void split_run(std::size_t number, const Queue& owner, std::size_t begin, std::size_t end,
                 RecordReader& reader);
  void add_loss(AuxChunk& chunk, std::uint64_t flags, std::uint64_t bytes);
  void add(AuxChunk& chunk);
  void set_references();
  [[nodiscard]] std::size_t queue_of(std::size_t stream, const Queue& owner);
  [[nodiscard]] bool may_report(RecordReader& reader, std::size_t stream, std::size_t number) const;

  bool kernel_;
  std::vector<Queue> queues_;
  std::map<std::pair<std::size_t, std::int64_t>, std::size_t> numbers_;  // queue index by stream and thread
  std::map<std::int64_t, std::uint64_t> offsets_;                        // next AUX offset by thread
  std::vector<bool> begun_;                                              // by queue: it has records
  std::vector<AuxChunk> chunks_;
};

// Notes the fields of branch records that BTS records lack.
void note_dropped_fields(const trace::TraceBundle& bundle, std::vector<trace::Warning>& notes);

}  // namespace ptkit::formats::perf
