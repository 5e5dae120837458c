// Writes trace bytes of streams as AUXTRACE records of perf.data, with the losses between them. For .cpp
// files of this folder only.
#pragma once

#include <optional>
#include <vector>

#include "formats/perf_export/aux_chunks.h"

namespace ptkit::formats::perf {

class PtWriter final : public AuxWriter {
 public:
  // By stream: `queues` are the owners, `packets` the surveys of packets.
  PtWriter(const trace::TraceBundle& bundle, const std::vector<Queue>& queues,
           const std::vector<StreamPackets>& packets, GoOn go_on);

  [[nodiscard]] bool write_aux_records(Records& records) const override;
  [[nodiscard]] bool write(Output& out) override;

 private:
  struct AuxChunk {
    std::size_t stream = 0;
    std::size_t begin = 0;  // offset in the stream
    std::size_t end = 0;
    std::uint64_t offset = 0;  // AUX offset
    std::uint64_t lost_flags =
        0;             // PERF_AUX_FLAG_* of a loss after the chunk; 0: none, or a hole in AUX offsets
    bool cut = false;  // trace is lost after the chunk
  };
  void split_stream(std::size_t number, ForwardReader& reader, std::uint64_t& offset);
  void add_chunks(std::size_t number, std::size_t begin, std::size_t end, ForwardReader& reader,
                  std::uint64_t& offset);
  [[nodiscard]] bool write_chunk(Output& out, const AuxChunk& chunk, ForwardReader& reader);
  // Writes `bytes`, which begin at offset `begin` of the stream.
  void put_trace(Output& out, std::size_t stream, std::size_t begin, base::Bytes bytes) const;

  const std::vector<Queue>& queues_;
  const std::vector<StreamPackets>& packets_;
  const std::uint64_t reference_;  // a TSC value near the trace: TSC packets have 56 bits of it
  std::vector<AuxChunk> chunks_;
  struct Unsynced {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::optional<std::uint64_t> ip;  // IP of the PSB+ at `end`, at which tracing goes on
  };
  // By stream: ranges from a loss to the next PSB, sorted and disjoint.
  std::vector<std::vector<Unsynced>> unsynced_;
};

}  // namespace ptkit::formats::perf
