// The packets of one stream as rows: every packet, an error row for what is none, then the next PSB.
#pragma once

#include "columns/row_sink.h"
#include "packet/decoder.h"

namespace ptkit::columns {

class PacketSource final : public flow::RowSource {
 public:
  // `sync`: begin at the first PSB (a gap row tells what lies before it), else at the first byte.
  PacketSource(base::Bytes stream, bool sync, RowSink& sink) noexcept
      : decoder_(stream), sync_(sync), sink_(sink) {}

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override { return decoder_.position(); }

 private:
  [[nodiscard]] bool begin();
  void recover(const packet::Packet& packet, base::Status status);

  packet::PacketDecoder decoder_;
  bool sync_;
  RowSink& sink_;
};

}  // namespace ptkit::columns
