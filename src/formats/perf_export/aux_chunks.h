// Writes AUXTRACE records of perf.data and their index. For .cpp files of this folder only.
#pragma once

#include <vector>

#include "formats/perf_export/output.h"
#include "formats/perf_export/packets.h"
#include "formats/perf_export/records.h"
#include "formats/perf_export/tasks.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Returns the flags of the AUX record before a loss.
[[nodiscard]] std::uint64_t lost_flags(const trace::KnownLoss& loss) noexcept;

// Reads streams forwards, one after the other. Bytes before a part are released.
class ForwardReader {
 public:
  explicit ForwardReader(const trace::TraceBundle& bundle) : bundle_(bundle) {}
  // The result is valid until the next call.
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

class AuxWriter {
 public:
  virtual ~AuxWriter() = default;
  AuxWriter(const AuxWriter&) = delete;
  AuxWriter& operator=(const AuxWriter&) = delete;

  // Both return false if the caller asked to stop. The AUX records give the chunks' ends and losses.
  [[nodiscard]] virtual bool write_aux_records(Records& records) const = 0;
  [[nodiscard]] virtual bool write(Output& out) = 0;
  [[nodiscard]] std::vector<std::uint8_t> index() const;  // the feature AUXTRACE

 protected:
  AuxWriter(const trace::TraceBundle& bundle, GoOn go_on);
  [[nodiscard]] bool is_to_go_on() const { return !go_on_ || go_on_(); }
  // Writes the AUXTRACE record before a chunk's bytes. `offset`: AUX offset. `reference`: time of the read.
  void begin_chunk(Output& out, std::size_t number, const Queue& queue, std::uint64_t offset,
                   std::uint64_t size, std::uint64_t reference);

  const trace::TraceBundle& bundle_;

 private:
  GoOn go_on_;
  std::vector<std::uint64_t> record_offsets_;  // file offsets of AUXTRACE records
};

}  // namespace ptkit::formats::perf
