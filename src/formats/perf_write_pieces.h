// Pieces of traces in perf.data, and the table of them. For .cpp files of this folder only.
#pragma once

#include <vector>

#include "formats/perf_write_output.h"
#include "formats/perf_write_packets.h"
#include "formats/perf_write_records.h"
#include "formats/perf_write_tasks.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Of an AUX record behind which something is lost.
[[nodiscard]] std::uint64_t lost_flags(const trace::KnownLoss& loss) noexcept;

// Bytes of streams for somebody who goes through them one after the other, and forwards: what lies before a
// part is forgotten.
class Passage {
 public:
  explicit Passage(const trace::TraceBundle& bundle) : bundle_(bundle) {}
  // Until the next call.
  [[nodiscard]] base::Bytes part(std::size_t stream, std::size_t begin, std::size_t end) {
    data(stream).forget_before(begin);
    return data_.part(begin, end);
  }
  [[nodiscard]] const trace::TraceBuffer& data(std::size_t stream);

 private:
  const trace::TraceBundle& bundle_;
  std::size_t stream_ = ~std::size_t{0};
  trace::TraceBuffer data_;
};

class WrittenTrace {
 public:
  virtual ~WrittenTrace() = default;
  WrittenTrace(const WrittenTrace&) = delete;
  WrittenTrace& operator=(const WrittenTrace&) = delete;

  // Both: false if it was not to go on. AUX: where pieces end, and after which ones something is lost.
  [[nodiscard]] virtual bool write_notes(Records& records) const = 0;
  [[nodiscard]] virtual bool write(Output& out) = 0;
  [[nodiscard]] std::vector<std::uint8_t> index() const;  // of the pieces that were written (AUXTRACE)

 protected:
  WrittenTrace(const trace::TraceBundle& bundle, GoOn go_on);
  [[nodiscard]] bool is_to_go_on() const { return !go_on_ || go_on_(); }
  // The record in front of a piece's bytes. `offset`: in what the kernel would have written; `reference`:
  // when it was read.
  void begin_piece(Output& out, std::size_t number, const Queue& queue, std::uint64_t offset,
                   std::uint64_t size, std::uint64_t reference);

  const trace::TraceBundle& bundle_;

 private:
  GoOn go_on_;
  std::vector<std::uint64_t> places_;  // of records, in the file
};

}  // namespace ptkit::formats::perf
