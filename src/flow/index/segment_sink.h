// Sink that collects the index data of a segment: the number of its rows, and their code addresses.
#pragma once

#include <atomic>

#include "flow/index/index.h"
#include "flow/rows/sink.h"

namespace ptkit::flow::index {

class SegmentSink final : public flow::FlowSink, private flow::BulkSink {
 public:
  // IN_BULK: without addresses that only packets have.
  enum class Rows : std::uint8_t { IN_BULK, ONE_BY_ONE };
  // `cancelled` makes full() true at once; it must outlive the sink.
  SegmentSink(Rows rows, const std::atomic<bool>& cancelled) : rows_(rows), cancelled_(cancelled) {}

  void on_block(const flow::Block& block) override;
  void on_branch(const flow::Branch& branch) override;
  void on_event(const flow::Event& event) override;
  void on_error(const flow::FlowError& error) override;
  void on_gap(const flow::Gap& gap) override;
  [[nodiscard]] bool full() const override {
    return ++calls_ % kPackets == 0 || cancelled_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool cancelled() const override { return cancelled_.load(std::memory_order_relaxed); }
  [[nodiscard]] flow::BulkSink* bulk() override { return rows_ == Rows::IN_BULK ? this : nullptr; }

  void touch(std::uint64_t ip) { lines_.add(ip); }

  [[nodiscard]] const RowTotals& rows() const noexcept { return totals_; }
  // Bytes were skipped, so packets cannot be read one after the other.
  [[nodiscard]] bool lost_packets() const noexcept { return lost_packets_; }
  [[nodiscard]] std::uint64_t oldest() const noexcept {
    return oldest_;
  }  // smallest StreamSpan::since of a row
  [[nodiscard]] const LineSet& lines() const noexcept { return lines_; }

 private:
  static constexpr unsigned kPackets = 8192;
  static constexpr std::size_t kRows = std::size_t{1} << 13U;

  [[nodiscard]] bool open(flow::BulkRoom& room) override;
  void close(const flow::BulkRoom& room) override;
  void add_edges(std::span<const flow::EdgeCount> /*edges*/, std::uint32_t /*space*/,
                 std::uint32_t /*phase*/) override {}
  void note(const flow::StreamSpan& span) noexcept;

  Rows rows_;
  const std::atomic<bool>& cancelled_;
  mutable unsigned calls_ = 0;
  std::vector<std::uint64_t> ips_;
  std::vector<std::uint32_t> sizes_;
  LineSet lines_;
  RowTotals totals_;
  std::uint64_t oldest_ = ~std::uint64_t{0};
  bool lost_packets_ = false;
};

}  // namespace ptkit::flow::index
