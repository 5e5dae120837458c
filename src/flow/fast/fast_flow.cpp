#include "flow/fast/fast_flow.h"

#include <algorithm>
#include <bit>

#include "flow/events/plain_packets.h"

namespace ptkit::flow {

using base::Status;

FastFlow::FastFlow(packet::PacketDecoder& packets, EventDecoder& events, EventBinder& binder, Walker& walker,
                   Recovery& recovery, ContextTracker& context, const AddressFilter& filter, BulkSink* bulk,
                   std::size_t most_bytes)
    : packets_(packets),
      events_(events),
      binder_(binder),
      walker_(walker),
      recovery_(recovery),
      context_(context),
      bulk_(bulk),
      most_bytes_(most_bytes),
      loop_(packets.stream(), filter, walker.calls_) {
  if (events_.ticks_.on || binder_.options_.no_code) bulk_ = nullptr;
  if (bulk_ == nullptr) return;
  walker_.caches_.before_clear([this](BlockCache& cache) {
    const auto found = std::find(counted_.begin(), counted_.end(), &cache);
    if (found == counted_.end()) return;
    if (PathCache* const paths = PathCache::find(cache)) emit_counts(*paths);
    counted_.erase(found);
  });
}

FastFlow::~FastFlow() {
  if (bulk_ == nullptr) return;
  walker_.caches_.before_clear({});
  // Counts that remain belong to a decode that was stopped early, and nothing reads them. Other decoders use
  // the same path caches, so clear them.
  for (BlockCache* cache : counted_) {
    if (PathCache* const paths = PathCache::find(*cache)) static_cast<void>(paths->take_counts(in_order_));
  }
}

// True if nothing is pending, and all state that packets may refer to is known.
bool FastFlow::plain() const noexcept {
  const packet::DecoderState& packets = packets_.state();
  if (packets.in_psb || packets.block_open || !packets.last_ip_known) return false;
  if (packets_.adds_cs_base()) return false;
  if (events_.in_header_ || events_.pebs_waits_ || !events_.pending_.empty()) return false;
  if (binder_.state_ == EventBinder::State::LOST || binder_.needs_psb_ || recovery_.is_open()) return false;
  if (binder_.options_.tnt_disabled) return false;
  if (walker_.in_tx_ || walker_.bits_left_ != 0 || walker_.binding_known_ || !walker_.budget_.whole())
    return false;
  return binder_.state_ == EventBinder::State::OFF || !walker_.at_end_;
}

// Where code or threads change with time or offset, limits `end` to packets that change neither.
bool FastFlow::limit_to_unchanged(std::uint64_t& end) {
  constexpr std::uint64_t kLeast = 64;  // bytes that are worth a pass
  if (!context_.follows_time() && context_.next_switch_at() >= end) return true;
  const std::uint64_t position = packets_.position();
  if (position < retry_at_) return false;
  end = std::min(end, context_.next_switch_at());
  if (context_.follows_time()) end = std::min(end, context_.unchanged_until(position));
  if (end >= position + kLeast) return true;
  retry_at_ = position + kLeast;
  return false;
}

bool FastFlow::work(std::uint64_t end, std::uint64_t last_psb) {
  BulkRoom room;
  room.mode = walker_.cache_->mode();
  room.position = packets_.position();
  if (!bulk_->open(room)) return false;
  PathCache* paths = &PathCache::of(*walker_.cache_, walker_.return_compression_);
  if (room.kind == BulkRows::EDGES) {
    if (room.space != counted_space_ || room.phase != counted_phase_) emit_counts();
    counted_space_ = room.space;
    counted_phase_ = room.phase;
    in_order_ = room.in_order;
  }
  if (paths->bytes() > most_bytes_) {
    if (room.kind == BulkRows::EDGES) emit_counts();
    walker_.cache_->set_derived(nullptr);
    paths = &PathCache::of(*walker_.cache_, walker_.return_compression_);
  }
  if (room.kind == BulkRows::EDGES &&
      std::find(counted_.begin(), counted_.end(), walker_.cache_) == counted_.end()) {
    counted_.push_back(walker_.cache_);
  }
  FastState state = load_state();
  state.end = end;
  state.last_psb = last_psb;
  if (binder_.state_ == EventBinder::State::ON) state.node = paths->node(walker_.ip_);
  const std::uint64_t walked = walker_.instructions_;
  const std::uint64_t begin = state.position;
  const FastStop stop = loop_.run(*paths, state, room);
  if (state.node != 0) state.end_ip = paths->at(state.node).ip;
  store_state(state, room);
  bulk_->close(room);
  if (context_.follows_time()) follow_time(state, begin);
  if (stop == FastStop::REST) finish_tnt(state, walked);
  return packets_.position() != begin;
}

FastState FastFlow::load_state() const {
  FastState state;
  const packet::DecoderState& packets = packets_.state();
  state.position = packets.position;
  state.last_ip = packets.last_ip;
  state.since = events_.since_;
  state.tnt_before = events_.tnt_before_.value_or(FastState::kNone);
  state.tip_watch = static_cast<std::uint8_t>(events_.tip_watch_);
  state.tips_deferred = binder_.tips_deferred_;
  state.tip_order = events_.tip_order_;
  state.resume_ip = binder_.resume_ip_;
  state.end_ip = walker_.ip_;
  state.known.any = events_.mode_known_ && !events_.first_psb_ && !binder_.abort_known_;
  state.known.mode = static_cast<std::uint8_t>(events_.mode_bits_);
  state.known.mode_events = events_.event_trace_ == EventTrace::ON ? 2 : 1;
  if (events_.pip_at_) state.known.pip = packets_.stream().data() + *events_.pip_at_;
  return state;
}

void FastFlow::store_state(const FastState& state, const BulkRoom& room) {
  packet::DecoderState packets = packets_.state();
  if (packets.position == state.position && room.instructions == 0) return;  // no packet was used
  packets.position = state.position;
  packets.last_ip = state.last_ip;
  packets_.set_state(packets);
  events_.since_ = state.since;
  if (state.psbs != 0 && events_.event_trace_ == EventTrace::UNKNOWN) events_.depends_on_event_trace_ = true;
  events_.tnt_before_.reset();
  if (state.tnt_before != FastState::kNone) events_.tnt_before_ = state.tnt_before;
  events_.tip_watch_ = static_cast<EventDecoder::TipWatch>(state.tip_watch);
  binder_.tips_deferred_ = state.tips_deferred;
  events_.tip_order_ = state.tip_order;
  walker_.instructions_ += room.instructions;
  // Places never go back: later rows are not older.
  walker_.place_.since = state.since;
  if (state.last == FastLast::NONE && room.instructions == 0) return;
  if (state.moved) walker_.jump_to(state.end_ip);
  if (state.last == FastLast::NONE) return;
  binder_.state_ = state.node != 0 ? EventBinder::State::ON : EventBinder::State::OFF;
  binder_.resume_ip_ = state.resume_ip;
  binder_.bits_dropped_ = false;
  binder_.after_branch_ = state.last == FastLast::BRANCH;
  binder_.trig_base_known_ = state.last != FastLast::DISABLED;
  binder_.trig_base_ = walker_.instructions_;
}

// The simple decoder looks up the time at each packet after a timing packet.
void FastFlow::follow_time(const FastState& state, std::uint64_t begin) {
  const std::uint8_t* const bytes = packets_.stream().data();
  const std::uint64_t last = state.tnt_before != FastState::kNone ? state.tnt_before : state.since;
  if (last < begin || state.last == FastLast::NONE) {
    events_.timing_seen_ = events_.timing_seen_ || any_timing(bytes + begin, bytes + state.position);
    return;
  }
  context_.time_moved(last, state.node != 0);
  events_.timing_seen_ = any_timing(bytes + last + plain_size(bytes + last), bytes + state.position);
}

// Applies the rest of the TNT packet at the position after its first bits.
void FastFlow::finish_tnt(const FastState& state, std::uint64_t walked) {
  packet::Packet packet;
  if (packets_.next(packet) != Status::OK) return;
  std::uint64_t bits = 0;
  unsigned left = 0;
  for (std::uint64_t next = std::bit_floor(state.rest) >> 1U; next != 0; next >>= 1U, ++left) {
    if ((state.rest & next) != 0) bits |= std::uint64_t{1} << left;
  }
  events_.apply_rest(packet, bits, left, walked + state.instructions_before);
}

void FastFlow::emit_counts() {
  for (BlockCache* cache : counted_) {
    if (PathCache* const paths = PathCache::find(*cache)) emit_counts(*paths);
  }
  counted_.clear();
}

void FastFlow::emit_counts(PathCache& paths) {
  bulk_->add_edges(paths.take_counts(in_order_), counted_space_, counted_phase_);
}

}  // namespace ptkit::flow
