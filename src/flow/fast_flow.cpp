#include "flow/fast_flow.h"

#include <algorithm>
#include <bit>

#include "flow/plain_packets.h"

namespace ptkit::flow {

using base::Status;

FastFlow::FastFlow(packet::PacketDecoder& packets, EventDecoder& events, Placer& placer, Walker& walker,
                   Recovery& recovery, ContextTracker& context, const AddressFilter& filter, BulkSink* bulk,
                   std::size_t most_bytes)
    : packets_(packets),
      events_(events),
      placer_(placer),
      walker_(walker),
      recovery_(recovery),
      context_(context),
      bulk_(bulk),
      most_bytes_(most_bytes),
      loop_(packets.stream(), filter, walker.calls_) {
  if (events_.ticks_.on || placer_.options_.no_code) bulk_ = nullptr;
  if (bulk_ == nullptr) return;
  walker_.caches_.before_clear([this](BlockCache& cache) {
    const auto found = std::find(counted_.begin(), counted_.end(), &cache);
    if (found == counted_.end()) return;
    if (cache.graph() != nullptr) give_counts(*cache.graph());
    counted_.erase(found);
  });
}

FastFlow::~FastFlow() {
  if (bulk_ == nullptr) return;
  walker_.caches_.before_clear({});
  // Whoever stopped the decode early does not want them, but the graphs are lent to others.
  for (BlockCache* cache : counted_) {
    if (cache->graph() != nullptr) static_cast<void>(cache->graph()->take_counts(in_order_));
  }
}

// Is nothing pending, and everything known that packets may refer to?
bool FastFlow::plain() const noexcept {
  const packet::DecoderState& packets = packets_.state();
  if (packets.in_psb || packets.block_open || !packets.last_ip_known) return false;
  if (packets_.adds_cs_base()) return false;
  if (events_.in_header_ || events_.pebs_waits_ || !events_.pending_.empty()) return false;
  if (placer_.state_ == Placer::State::LOST || placer_.wants_psb_ || recovery_.is_open()) return false;
  if (placer_.options_.tnt_disabled) return false;
  if (walker_.in_tx_ || walker_.bits_left_ != 0 || walker_.anchor_known_ || !walker_.budget_.whole())
    return false;
  return placer_.state_ == Placer::State::OFF || !walker_.at_end_;
}

// Where code or threads change with time or place, packets before `end` are taken that change neither.
bool FastFlow::quiet(std::uint64_t& end) {
  constexpr std::uint64_t kLeast = 64;  // bytes that are worth it
  if (!context_.follows_time() && context_.next_switch_at() >= end) return true;
  const std::uint64_t position = packets_.position();
  if (position < look_at_) return false;
  end = std::min(end, context_.next_switch_at());
  if (context_.follows_time()) end = std::min(end, context_.quiet_until(position));
  if (end >= position + kLeast) return true;
  look_at_ = position + kLeast;
  return false;
}

bool FastFlow::work(std::uint64_t end, std::uint64_t last_psb) {
  BulkRoom room;
  room.mode = walker_.cache_->mode();
  if (!bulk_->open(room)) return false;
  DecisionGraph* graph = &walker_.cache_->graph(walker_.return_compression_);
  if (room.kind == BulkRows::EDGES) {
    if (room.space != counted_space_) give_counts();
    counted_space_ = room.space;
    in_order_ = room.in_order;
  }
  if (graph->bytes() > most_bytes_) {
    if (room.kind == BulkRows::EDGES) give_counts();
    walker_.cache_->forget_graph();
    graph = &walker_.cache_->graph(walker_.return_compression_);
  }
  if (room.kind == BulkRows::EDGES &&
      std::find(counted_.begin(), counted_.end(), walker_.cache_) == counted_.end()) {
    counted_.push_back(walker_.cache_);
  }
  FastState state = take_state();
  state.end = end;
  state.last_psb = last_psb;
  if (placer_.state_ == Placer::State::ON) state.node = graph->node(walker_.ip_);
  const std::uint64_t walked = walker_.instructions_;
  const std::uint64_t begin = state.position;
  const FastStop stop = loop_.run(*graph, state, room);
  if (state.node != 0) state.end_ip = graph->at(state.node).ip;
  give_state(state, room);
  bulk_->close(room);
  if (context_.follows_time()) follow_time(state, begin);
  if (stop == FastStop::REST) finish_tnt(state, walked);
  return packets_.position() != begin;
}

FastState FastFlow::take_state() const {
  FastState state;
  const packet::DecoderState& packets = packets_.state();
  state.position = packets.position;
  state.last_ip = packets.last_ip;
  state.since = events_.since_;
  state.tnt_before = events_.tnt_before_.value_or(FastState::kNone);
  state.tip_watch = static_cast<std::uint8_t>(events_.tip_watch_);
  state.tips_deferred = placer_.tips_deferred_;
  state.tip_order = events_.tip_order_;
  state.resume_ip = placer_.resume_ip_;
  state.end_ip = walker_.ip_;
  state.known.any = events_.mode_known_ && !events_.first_psb_ && !placer_.abort_known_;
  state.known.mode = static_cast<std::uint8_t>(events_.mode_bits_);
  state.known.mode_events = events_.event_trace_ == EventTrace::ON ? 2 : 1;
  if (events_.pip_at_) state.known.pip = packets_.stream().data() + *events_.pip_at_;
  return state;
}

void FastFlow::give_state(const FastState& state, const BulkRoom& room) {
  packet::DecoderState packets = packets_.state();
  if (packets.position == state.position && room.instructions == 0) return;  // nothing was used
  packets.position = state.position;
  packets.last_ip = state.last_ip;
  packets_.set_state(packets);
  events_.since_ = state.since;
  if (state.psbs != 0 && events_.event_trace_ == EventTrace::UNKNOWN) events_.relied_on_event_trace_ = true;
  events_.tnt_before_.reset();
  if (state.tnt_before != FastState::kNone) events_.tnt_before_ = state.tnt_before;
  events_.tip_watch_ = static_cast<EventDecoder::TipWatch>(state.tip_watch);
  placer_.tips_deferred_ = state.tips_deferred;
  events_.tip_order_ = state.tip_order;
  walker_.instructions_ += room.instructions;
  // Places never go back: what comes next is not older.
  walker_.place_.since = state.since;
  if (state.last == FastLast::NONE && room.instructions == 0) return;
  if (state.moved) walker_.jump_to(state.end_ip);
  if (state.last == FastLast::NONE) return;
  placer_.state_ = state.node != 0 ? Placer::State::ON : Placer::State::OFF;
  placer_.resume_ip_ = state.resume_ip;
  placer_.bits_dropped_ = false;
  placer_.after_branch_ = state.last == FastLast::BRANCH;
  placer_.trig_anchored_ = state.last != FastLast::DISABLED;
  placer_.trig_anchor_ = walker_.instructions_;
}

// The simple decoder asks for the time at each packet behind one that tells it.
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

// The first bits of the packet at the position were used.
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

void FastFlow::give_counts() {
  for (BlockCache* cache : counted_) {
    if (cache->graph() != nullptr) give_counts(*cache->graph());
  }
  counted_.clear();
}

void FastFlow::give_counts(DecisionGraph& graph) {
  bulk_->add_edges(graph.take_counts(in_order_), counted_space_);
}

}  // namespace ptkit::flow
