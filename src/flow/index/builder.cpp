#include "flow/index/builder.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check_sum.h"
#include "flow/decoder/state_bytes.h"
#include "flow/events/context.h"
#include "packet/scan.h"
#include "time/survey.h"

namespace ptkit::flow::index {
namespace {

// Decoded segments for each thread that wait for their turn.
constexpr std::size_t kSegmentsPerThread = 3;
constexpr std::size_t kRows = std::size_t{1} << 13U;
constexpr auto kPatience = std::chrono::milliseconds(20);

// Rows after the checkpoint, or right before it, may have these addresses although no block has. 0 means no
// address, except for the IP.
void touch(SegmentSink& sink, const flow::FlowState& at) {
  if (at.walk.ip != 0 || at.binder.flow == flow::BinderState::Flow::ON) sink.touch(at.walk.ip);
  if (at.walk.binding) sink.touch(at.walk.binding->ip);
  if (at.binder.abort_ip) sink.touch(*at.binder.abort_ip);
  if (at.binder.resume_ip != 0) sink.touch(at.binder.resume_ip);
  if (!at.walk.branch) return;
  const flow::BasicBlock& block = *at.walk.branch;
  sink.touch(block.last_ip);
  sink.touch(block.next_ip);
  const bool direct = block.end == flow::Terminator::COND || block.end == flow::Terminator::JUMP ||
                      block.end == flow::Terminator::CALL;
  if (direct) sink.touch(block.target);
}

}  // namespace

StreamBuilder::StreamBuilder(Input input) : input_(std::move(input)), bytes_(input_.stream.data.bytes()) {
  if (!flow::can_speculate(input_.bundle)) input_.threads = 1;
  if (!input_.make || !flow::changes_with_time(input_.bundle, input_.stream)) return;
  like_ = std::make_unique<time::TimeTrack>(bytes_, input_.bundle.configuration.clock, input_.errata,
                                            input_.stream.losses);
  track_ = track_from(0, {});
}

std::unique_ptr<time::TimeTrack> StreamBuilder::track_from(std::uint64_t psb,
                                                           const time::CarriedTime& carried) const {
  if (like_ == nullptr) return nullptr;
  return std::make_unique<time::TimeTrack>(like_->begin_at(psb, carried));
}

void StreamBuilder::find_psbs() {
  while (input_.make && psbs_.back() + input_.segment < bytes_.size()) {
    const std::uint64_t next = packet::find_psb(bytes_, psbs_.back() + input_.segment);
    if (next >= bytes_.size()) break;
    psbs_.push_back(next);
  }
  psbs_.push_back(flow::kNoPsb);
}

std::optional<BuiltStream> StreamBuilder::build() {
  find_psbs();
  built_.index.size = bytes_.size();
  built_.index.sample = sample_of(bytes_);
  if (!input_.make) {
    Done done;
    done.at_stream_end = true;
    done.sink = std::make_unique<SegmentSink>(SegmentSink::Rows::IN_BULK, input_.cancelled);
    done.bytes_sum = sum_of(0, bytes_.size());
    add(std::move(done));
    return std::move(built_);
  }
  std::vector<std::thread> threads;
  const std::size_t useful = std::min(input_.threads, psbs_.size() / 2);
  threads.reserve(useful);
  try {
    for (std::size_t i = 1; i < useful; ++i) threads.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // No more threads, or no address space for a stack: those that were started decode everything.
  }
  work();
  for (std::thread& thread : threads) thread.join();
  if (out_of_memory_) throw std::bad_alloc();
  if (!input_.cancelled) add_times();
  if (input_.cancelled) return std::nullopt;
  return std::move(built_);
}

void StreamBuilder::work() {
  std::unique_lock lock(mutex_);
  while (!ended_ && !out_of_memory_ && !input_.cancelled) {
    try {
      work_locked(lock);
    } catch (const std::bad_alloc&) {
      if (!lock.owns_lock()) lock.lock();
      out_of_memory_ = true;
    }
  }
  moved_.notify_all();
}

// True if no thread has the turn, and the next segment is done speculatively or no thread decodes it.
bool StreamBuilder::may_take_turn() const {
  return !turn_taken_ &&
         (next_claim_ <= turn_ || turn_ == 0 || speculative_.find(turn_) != speculative_.end());
}

// A predicted state exists once the first segment is decoded.
bool StreamBuilder::may_claim() const {
  return input_.threads > 1 && turn_ > 0 && next_claim_ < turn_ + input_.threads * kSegmentsPerThread &&
         next_claim_ < psbs_.size() && psbs_[next_claim_] != flow::kNoPsb;
}

void StreamBuilder::work_locked(std::unique_lock<std::mutex>& lock) {
  if (may_take_turn()) {
    turn_taken_ = true;
    next_claim_ = std::max(next_claim_, turn_ + 1);
    auto found = speculative_.extract(turn_);
    lock.unlock();
    take_turn(found.empty() ? nullptr : &found.mapped());
    lock.lock();
    turn_taken_ = false;
    ++turn_;
    if (actual_) predicted_ = *actual_;
    if (track_ != nullptr) carried_ = track_->carried();
    ended_ = !actual_;
  } else if (may_claim()) {
    const std::size_t number = next_claim_++;
    const flow::FlowState predicted = predicted_;
    auto track = track_from(psbs_[number], carried_);
    lock.unlock();
    Speculative speculative = decode_speculatively(number, predicted, std::move(track));
    lock.lock();
    speculative_.emplace(number, std::move(speculative));
  } else {
    moved_.wait_for(lock, kPatience);
    return;
  }
  moved_.notify_all();
}

void StreamBuilder::take_turn(Speculative* speculative) {
  Done done;
  if (speculative != nullptr && !speculative->sink->lost_packets() &&
      flow::is_valid(speculative->result, *actual_, track_.get())) {
    track_ = std::move(speculative->track);
    done = {actual_, speculative->result.end, speculative->result.at_stream_end, std::move(speculative->sink),
            speculative->bytes_sum};
    flow::complete(done.end, *actual_);
  } else {
    done = decode(SegmentSink::Rows::IN_BULK);
    if (done.sink->lost_packets()) done = decode(SegmentSink::Rows::ONE_BY_ONE);
  }
  if (input_.cancelled) return;
  actual_.reset();
  if (!done.at_stream_end) actual_ = done.end;
  add(std::move(done));
}

StreamBuilder::Speculative StreamBuilder::decode_speculatively(std::size_t number,
                                                               const flow::FlowState& predicted,
                                                               std::unique_ptr<time::TimeTrack> track) const {
  Speculative speculative;
  speculative.sink = std::make_unique<SegmentSink>(SegmentSink::Rows::IN_BULK, input_.cancelled);
  flow::SegmentDecoder decoder(input_.make, input_.stream, *speculative.sink, psbs_[number],
                               psbs_[number + 1], predicted, std::move(track));
  while (!input_.cancelled && decoder.run()) {
  }
  speculative.result = decoder.result();
  speculative.track = decoder.take_track();
  if (!speculative.result.usable || input_.cancelled) return speculative;
  const std::uint64_t end =
      speculative.result.at_stream_end ? bytes_.size() : speculative.result.end.packets.position;
  add_packet_ips(*speculative.sink, speculative.result.begin.packets, end);
  speculative.bytes_sum = sum_of(speculative.result.begin.packets.position, end);
  return speculative;
}

// Decodes from the end of the preceding segment.
StreamBuilder::Done StreamBuilder::decode(SegmentSink::Rows rows) {
  Done done;
  done.begin = actual_;
  done.sink = std::make_unique<SegmentSink>(rows, input_.cancelled);
  if (track_ != nullptr && rows == SegmentSink::Rows::ONE_BY_ONE) {  // once more
    track_ = track_from(0, {});
    if (actual_) track_->not_before(actual_->context.tsc);
  }
  const auto decoder = input_.make(*done.sink, track_.get(), actual_ ? &*actual_ : nullptr, false);
  if (psbs_[turn_ + 1] != flow::kNoPsb) decoder->stop_after_psb_above(psbs_[turn_ + 1]);
  while (!input_.cancelled && decoder->run()) {
  }
  done.end = decoder->checkpoint();
  done.at_stream_end = !decoder->stopped();
  const std::uint64_t end = done.at_stream_end ? bytes_.size() : done.end.packets.position;
  packet::DecoderState begin;
  if (actual_) begin = actual_->packets;
  if (rows == SegmentSink::Rows::IN_BULK) add_packet_ips(*done.sink, begin, end);
  done.bytes_sum = sum_of(begin.position, end);
  return done;
}

// A target at which no block begins comes from a packet.
void StreamBuilder::add_packet_ips(SegmentSink& sink, packet::DecoderState state, std::uint64_t end) const {
  std::vector<std::uint8_t> flags(kRows + packet::kPacketRowSlack);
  std::vector<std::uint64_t> ips(kRows + packet::kPacketRowSlack);
  packet::PacketColumns columns;
  columns.flags = flags.data();
  columns.ip = ips.data();
  const std::uint32_t cs_base = input_.bundle.configuration.cs_base;
  auto status = base::Status::OK;
  while (status == base::Status::OK && state.position < end && !sink.lost_packets()) {
    const auto filled = packet::fill_packets(bytes_, state, input_.errata, columns, kRows, end);
    for (std::size_t i = 0; i < filled.rows; ++i) {
      if ((flags[i] & packet::Packet::IP_KNOWN) == 0) continue;
      sink.touch(ips[i]);
      // The code may be 16 or 32-bit code or not: superfluous lines do no harm.
      if (cs_base != 0) sink.touch(static_cast<std::uint32_t>(ips[i] + cs_base));
    }
    status = filled.status;
  }
}

std::uint64_t StreamBuilder::sum_of(std::uint64_t begin, std::uint64_t end) const {
  return base::check_sum(
      bytes_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
}

void StreamBuilder::add(Done done) {
  Segment segment;
  Content content;
  std::uint64_t psb_end = 0;
  if (done.begin) {
    const flow::FlowState& begin = *done.begin;
    touch(*done.sink, begin);
    segment.psb = begin.events.psb;
    segment.begin = begin.packets.position;
    segment.ip = begin.walk.ip;
    if (begin.binder.flow == flow::BinderState::Flow::ON) segment.flags |= Segment::IP_KNOWN;
    psb_end = begin.events.since;
    content.checkpoint = flow::to_bytes(begin);
  }
  const flow::Context context = done.begin ? done.begin->context.thread
                                           : flow::Context{0, input_.stream.space, input_.stream.cpu,
                                                           input_.stream.pid, input_.stream.tid};
  segment.space = context.space;
  segment.pid = context.pid;
  segment.tid = context.tid;
  RowTotals& rows = built_.index.rows;
  segment.instructions = rows.instructions;
  segment.blocks = rows.blocks;
  segment.order = rows.order();
  rows += done.sink->rows();
  segment.troubles = done.sink->rows().troubles();
  segment.bytes_sum = done.bytes_sum;
  touch(*done.sink, done.end);
  content.lines = done.sink->lines().to_bytes();
  built_.index.segments.push_back(segment);
  built_.contents.push_back(std::move(content));
  psb_ends_.push_back(psb_end);
  oldest_.push_back(done.sink->oldest());
  const std::uint64_t end = done.at_stream_end ? bytes_.size() : done.end.packets.position;
  if (input_.decoded != nullptr)
    input_.decoded->fetch_add(end - std::min(segment.begin, end), std::memory_order_relaxed);
}

void StreamBuilder::add_times() {
  time::TimeSurvey survey(bytes_, input_.bundle.configuration.clock, input_.errata, input_.stream.losses);
  std::vector<Segment>& segments = built_.index.segments;
  std::vector<time::TimeSurvey::Limits> limits;
  std::vector<std::vector<std::uint8_t>> states(segments.size());
  for (std::size_t i = 0; i < segments.size() && !input_.cancelled; ++i) {
    if (i > 0 && !survey.needs_all_queries()) states[i] = survey.state_at(segments[i].psb);
    limits.push_back(survey.read_to(i + 1 < segments.size() ? psb_ends_[i + 1] : bytes_.size()));
  }
  if (input_.cancelled) return;
  built_.index.timeless = !limits.back().any;
  // Answers to earlier queries are a lower limit of later answers. If no limit from a segment on is below
  // an earlier answer, a decoder that begins at the segment gets the same answers.
  std::uint64_t least = ~std::uint64_t{0};
  for (std::size_t i = segments.size(); i-- > 0;) {
    Segment& segment = segments[i];
    if (!limits[i].any) continue;
    const bool looks_back = oldest_[i] < psb_ends_[i];  // a row belongs to the stream before the PSB+
    least = std::min(least, limits[i].least_low);
    segment.flags |= Segment::TIMES_KNOWN;
    segment.tsc_least = limits[i].least_tsc;
    segment.tsc_most = limits[i].most_tsc;
    if (i == 0 || !limits[i - 1].any) continue;
    if (looks_back) segment.tsc_least = std::min(segment.tsc_least, limits[i - 1].least_tsc);
    if (!looks_back && least >= limits[i - 1].most_tsc) built_.contents[i].time = std::move(states[i]);
  }
}

}  // namespace ptkit::flow::index
