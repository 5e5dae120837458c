// Small streams of branch records by hand: records and code bytes as input, rows as output.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "flow/decoder/record_decoder.h"
#include "trace/branch_records.h"
#include "unit/support/traces/collect.h"

namespace ptkit::flow {

class RecordScene {
 public:
  static constexpr std::uint64_t kCode = 0x1000;
  static constexpr std::uint64_t kKernel = 0xffffffff81000000;

  explicit RecordScene(std::vector<std::uint8_t> code = {})
      : bundle_(std::make_shared<trace::TraceBundle>()) {
    if (!code.empty()) put(kCode, std::move(code));
  }
  RecordScene& put(std::uint64_t address, std::vector<std::uint8_t> code,
                   trace::SpaceId space = trace::kAnySpace) {
    trace::CodeRegion region;
    region.address = address;
    region.size = code.size();
    region.bytes = trace::TraceBuffer::from_vector(std::move(code));
    region.space = space;
    bundle_->code.push_back(region);
    return *this;
  }
  RecordScene& add(std::uint64_t from, std::uint64_t to, std::uint32_t flags = 0, std::uint64_t tsc = 0) {
    records_.push_back({from, to, tsc, flags, 0});
    return *this;
  }
  RecordScene& lose(std::uint64_t bytes = 0) {
    stream.losses.push_back({offset(), base::Status::RING_WRAPPED, bytes});
    return *this;
  }
  [[nodiscard]] std::uint64_t offset() const { return records_.size() * sizeof(trace::BranchRecord); }

  Collect decode() {
    stream.kind = trace::StreamKind::BRANCH_RECORDS;
    if (stream.data.size() == 0) stream.data = trace::to_buffer(records_);
    const code::image::Image image(bundle_);
    std::optional<time::TimeTrack> track;
    if (with_time) track.emplace(time::TimeTrack::of_records(stream.data.bytes()));
    Collect rows;
    RecordDecoder decoder(stream, {}, image, rows, track ? &*track : nullptr);
    while (decoder.run()) {
    }
    EXPECT_FALSE(decoder.run());
    EXPECT_TRUE(rows.spans_in_order);
    EXPECT_EQ(decoder.position(), stream.data.size());
    std::uint64_t end = 0;
    for (const Gap& gap : rows.gaps) {
      EXPECT_GE(gap.begin, end) << "gaps overlap";
      EXPECT_GE(gap.end, gap.begin);
      end = gap.end;
    }
    return rows;
  }

  [[nodiscard]] trace::TraceBundle& bundle() { return *bundle_; }

  trace::Stream stream;
  bool with_time = false;

 private:
  std::shared_ptr<trace::TraceBundle> bundle_;
  std::vector<trace::BranchRecord> records_;
};

}  // namespace ptkit::flow
