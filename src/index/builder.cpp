#include "index/builder.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "base/check_sum.h"
#include "flow/checkpoint_fields.h"
#include "packet/scan.h"
#include "time/survey.h"

namespace ptkit::index {
namespace {

constexpr std::size_t kAhead = 3;  // segments for each thread that are decoded and wait for their turn
constexpr std::size_t kRows = std::size_t{1} << 13U;
constexpr auto kPatience = std::chrono::milliseconds(20);

// Rows that follow, or came right before, may name these addresses although no block does. 0 is none, but
// where execution is.
void touch(SegmentSink& sink, const flow::Checkpoint& at) {
  if (at.walk.ip != 0 || at.placed.state == flow::Placer::State::ON) sink.touch(at.walk.ip);
  if (at.walk.anchor_known) sink.touch(at.walk.anchor_ip);
  if (at.placed.abort_known) sink.touch(at.placed.abort_ip);
  if (at.placed.resume_ip != 0) sink.touch(at.placed.resume_ip);
  if (!at.walk.branch) return;
  const flow::Run& run = *at.walk.branch;
  sink.touch(run.last_ip);
  sink.touch(run.next_ip);
  const bool direct =
      run.end == flow::RunEnd::COND || run.end == flow::RunEnd::JUMP || run.end == flow::RunEnd::CALL;
  if (direct) sink.touch(run.target);
}

}  // namespace

StreamBuilder::StreamBuilder(Input input) : input_(std::move(input)), bytes_(input_.stream.data.bytes()) {
  if (!flow::can_begin_ahead(input_.bundle, input_.stream)) input_.threads = 1;
}

void StreamBuilder::find_psbs() {
  const bool cut = input_.make && !flow::changes_with_time(input_.bundle, input_.stream);
  while (cut && psbs_.back() + input_.segment < bytes_.size()) {
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
  for (std::size_t i = 1; i < useful; ++i) threads.emplace_back([this] { work(); });
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

// The next segment is there, or nobody decodes it.
bool StreamBuilder::may_take_turn() const {
  return !turn_taken_ && (next_claim_ <= turn_ || turn_ == 0 || ahead_.find(turn_) != ahead_.end());
}

// What to assume is known once the first segment is decoded.
bool StreamBuilder::may_claim() const {
  return input_.threads > 1 && turn_ > 0 && next_claim_ < turn_ + input_.threads * kAhead &&
         next_claim_ < psbs_.size() && psbs_[next_claim_] != flow::kNoPsb;
}

void StreamBuilder::work_locked(std::unique_lock<std::mutex>& lock) {
  if (may_take_turn()) {
    turn_taken_ = true;
    next_claim_ = std::max(next_claim_, turn_ + 1);
    auto found = ahead_.extract(turn_);
    lock.unlock();
    take_turn(found.empty() ? nullptr : &found.mapped());
    lock.lock();
    turn_taken_ = false;
    ++turn_;
    if (real_) likely_ = *real_;
    ended_ = !real_;
  } else if (may_claim()) {
    const std::size_t number = next_claim_++;
    const flow::Checkpoint likely = likely_;
    lock.unlock();
    Ahead ahead = decode_ahead(number, likely);
    lock.lock();
    ahead_.emplace(number, std::move(ahead));
  } else {
    moved_.wait_for(lock, kPatience);
    return;
  }
  moved_.notify_all();
}

void StreamBuilder::take_turn(Ahead* ahead) {
  Done done;
  if (ahead != nullptr && ahead->result.usable && !ahead->sink->lost_packets() &&
      flow::equivalent(ahead->result.begin, *real_, ahead->result.relied)) {
    done = {real_, ahead->result.end, ahead->result.at_stream_end, std::move(ahead->sink), ahead->bytes_sum};
    flow::complete(done.end, *real_);
  } else {
    done = decode(SegmentSink::Rows::IN_BULK);
    if (done.sink->lost_packets()) done = decode(SegmentSink::Rows::ONE_BY_ONE);
  }
  if (input_.cancelled) return;
  real_.reset();
  if (!done.at_stream_end) real_ = done.end;
  add(std::move(done));
}

StreamBuilder::Ahead StreamBuilder::decode_ahead(std::size_t number, const flow::Checkpoint& likely) const {
  Ahead ahead;
  ahead.sink = std::make_unique<SegmentSink>(SegmentSink::Rows::IN_BULK, input_.cancelled);
  flow::SegmentDecoder decoder(input_.make, input_.stream, *ahead.sink, psbs_[number], psbs_[number + 1],
                               likely);
  while (!input_.cancelled && decoder.run()) {
  }
  ahead.result = decoder.result();
  if (!ahead.result.usable || input_.cancelled) return ahead;
  const std::uint64_t end = ahead.result.at_stream_end ? bytes_.size() : ahead.result.end.packets.position;
  add_packet_ips(*ahead.sink, ahead.result.begin.packets, end);
  ahead.bytes_sum = sum_of(ahead.result.begin.packets.position, end);
  return ahead;
}

// From where the segment before ended.
StreamBuilder::Done StreamBuilder::decode(SegmentSink::Rows rows) const {
  Done done;
  done.begin = real_;
  done.sink = std::make_unique<SegmentSink>(rows, input_.cancelled);
  const auto decoder = input_.make(*done.sink, real_ ? &*real_ : nullptr, false);
  if (psbs_[turn_ + 1] != flow::kNoPsb) decoder->stop_behind_psb_after(psbs_[turn_ + 1]);
  while (!input_.cancelled && decoder->run()) {
  }
  done.end = decoder->checkpoint();
  done.at_stream_end = !decoder->stopped();
  const std::uint64_t end = done.at_stream_end ? bytes_.size() : done.end.packets.position;
  packet::DecoderState begin;
  if (real_) begin = real_->packets;
  if (rows == SegmentSink::Rows::IN_BULK) add_packet_ips(*done.sink, begin, end);
  done.bytes_sum = sum_of(begin.position, end);
  return done;
}

// Targets that no block begins at are those of packets.
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
      // Whether it is of 16 or 32-bit code is not looked at: too many lines do no harm.
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
    const flow::Checkpoint& begin = *done.begin;
    touch(*done.sink, begin);
    segment.psb = begin.events.psb;
    segment.begin = begin.packets.position;
    segment.ip = begin.walk.ip;
    if (begin.placed.state == flow::Placer::State::ON) segment.flags |= Segment::IP_KNOWN;
    psb_end = begin.events.since;
    content.checkpoint = flow::to_bytes(begin);
  }
  const flow::Context context = done.begin ? done.begin->seen.context
                                           : flow::Context{0, input_.stream.space, input_.stream.cpu,
                                                           input_.stream.pid, input_.stream.tid};
  segment.space = context.space;
  segment.pid = context.pid;
  segment.tid = context.tid;
  segment.instructions = std::exchange(instructions_, instructions_ + done.sink->instructions());
  segment.blocks = std::exchange(blocks_, blocks_ + done.sink->blocks());
  segment.order = std::exchange(order_, order_ + done.sink->order());
  segment.troubles = done.sink->troubles();
  segment.bytes_sum = done.bytes_sum;
  touch(*done.sink, done.end);
  content.lines = done.sink->lines().to_bytes();
  built_.index.segments.push_back(segment);
  built_.contents.push_back(std::move(content));
  psb_ends_.push_back(psb_end);
  oldest_.push_back(done.sink->oldest());
  position_ = done.at_stream_end ? bytes_.size() : done.end.packets.position;
}

void StreamBuilder::add_times() {
  time::TimeSurvey survey(bytes_, input_.bundle.configuration.clock, input_.errata, input_.stream.losses);
  std::vector<Segment>& segments = built_.index.segments;
  std::vector<time::TimeSurvey::Limits> limits;
  std::vector<std::vector<std::uint8_t>> states(segments.size());
  for (std::size_t i = 0; i < segments.size() && !input_.cancelled; ++i) {
    if (i > 0 && !survey.needs_all_questions()) states[i] = survey.state_at(segments[i].psb);
    limits.push_back(survey.read_to(i + 1 < segments.size() ? psb_ends_[i + 1] : bytes_.size()));
  }
  if (input_.cancelled) return;
  built_.index.timeless = !limits.back().any;
  // Answers of earlier questions are a lower limit of later ones: where nothing that follows lies below what
  // came before, whoever begins there gets the same answers.
  std::uint64_t least = ~std::uint64_t{0};
  for (std::size_t i = segments.size(); i-- > 0;) {
    Segment& segment = segments[i];
    if (!limits[i].any) continue;
    const bool looks_back = oldest_[i] < psb_ends_[i];  // a row belongs to what precedes the PSB+
    least = std::min(least, limits[i].least_low);
    segment.flags |= Segment::TIMES_KNOWN;
    segment.tsc_least = limits[i].least_tsc;
    segment.tsc_most = limits[i].most_tsc;
    if (i == 0 || !limits[i - 1].any) continue;
    if (looks_back) segment.tsc_least = std::min(segment.tsc_least, limits[i - 1].least_tsc);
    if (!looks_back && least >= limits[i - 1].most_tsc) built_.contents[i].time = std::move(states[i]);
  }
}

}  // namespace ptkit::index
