// Trace bytes of streams as pieces of perf.data, with what was lost between them. For .cpp files of this
// folder only.
#pragma once

#include <optional>
#include <vector>

#include "formats/perf_write_pieces.h"

namespace ptkit::formats::perf {

class Trace final : public WrittenTrace {
 public:
  // By stream: whose it is, and what its packets are.
  Trace(const trace::TraceBundle& bundle, const std::vector<Queue>& queues,
        const std::vector<StreamPackets>& packets, GoOn go_on);

  [[nodiscard]] bool write_notes(Records& records) const override;
  [[nodiscard]] bool write(Output& out) override;

 private:
  struct Piece {
    std::size_t stream = 0;
    std::size_t begin = 0;  // in the stream
    std::size_t end = 0;
    std::uint64_t offset = 0;      // in what the kernel would have written
    std::uint64_t lost_flags = 0;  // behind it; 0: nothing is lost, or the hole in the offsets tells
    bool cut = false;              // something is lost behind it
  };
  void cut_stream(std::size_t number, Passage& passage, std::uint64_t& offset);
  void add_pieces(std::size_t number, std::size_t begin, std::size_t end, std::uint64_t& offset);
  [[nodiscard]] bool write_piece(Output& out, const Piece& piece, Passage& passage);
  // The bytes of a stream from `begin` on.
  void put_trace(Output& out, std::size_t stream, std::size_t begin, base::Bytes bytes) const;

  const std::vector<Queue>& queues_;
  const std::vector<StreamPackets>& packets_;
  const std::uint64_t reference_;  // a TSC near the trace's: packets have 56 bits of it
  std::vector<Piece> pieces_;
  struct Unsynced {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::optional<std::uint64_t> ip;  // where tracing goes on behind it
  };
  // By stream: from a loss to the next PSB; apart, and in order.
  std::vector<std::vector<Unsynced>> unsynced_;
};

}  // namespace ptkit::formats::perf
