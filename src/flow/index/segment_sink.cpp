#include "flow/index/segment_sink.h"

#include <algorithm>

namespace ptkit::flow::index {

void SegmentSink::note(const flow::StreamSpan& span) noexcept { oldest_ = std::min(oldest_, span.since); }

void SegmentSink::on_block(const flow::Block& block) {
  note(block.span);
  lines_.add(block.ip, block.ip + (block.size == 0 ? 0 : block.size - 1));
  totals_.instructions += block.insns.size();
  ++totals_.blocks;
}

void SegmentSink::on_branch(const flow::Branch& branch) {
  note(branch.span);
  ++totals_.branches;
  if ((branch.flags & flow::FROM_KNOWN) != 0) lines_.add(branch.from_ip);
  if ((branch.flags & flow::TO_KNOWN) != 0) lines_.add(branch.to_ip);
}

void SegmentSink::on_event(const flow::Event& event) {
  note(event.span);
  if ((event.flags & flow::EV_IP_KNOWN) != 0) lines_.add(event.ip);
  ++totals_.events;
}

void SegmentSink::on_error(const flow::FlowError& error) {
  note(error.span);
  if (error.ip_known) lines_.add(error.ip);
  lost_packets_ = true;
  ++totals_.errors;
}

void SegmentSink::on_gap(const flow::Gap& gap) {
  note({gap.end, gap.end});
  lost_packets_ = lost_packets_ || gap.cause == flow::GapCause::ERROR || gap.cause == flow::GapCause::LOST ||
                  gap.cause == flow::GapCause::START;
  if ((gap.flags & flow::FROM_KNOWN) != 0) lines_.add(gap.from_ip);
  if ((gap.flags & flow::TO_KNOWN) != 0) lines_.add(gap.to_ip);
  ++totals_.gaps;
}

// Blocks have the addresses of all rows in bulk, except for targets at which no block begins. A packet, or
// the end of a segment, has such a target.
bool SegmentSink::open(flow::BulkRoom& room) {
  ips_.resize(kRows + flow::BulkRoom::kSlack);
  sizes_.resize(kRows + flow::BulkRoom::kSlack);
  room.kind = flow::BulkRows::BLOCKS;
  room.ip = ips_.data();
  room.bytes = sizes_.data();
  room.count_branches = true;
  room.row = 0;
  room.limit = kRows;
  return true;
}

void SegmentSink::close(const flow::BulkRoom& room) {
  totals_.instructions += room.instructions;
  totals_.events += room.events;
  totals_.blocks += room.row;
  totals_.branches += room.branches;
  for (std::size_t i = 0; i < room.row; ++i)
    lines_.add(ips_[i], ips_[i] + (sizes_[i] == 0 ? 0 : sizes_[i] - 1));
}

}  // namespace ptkit::flow::index
