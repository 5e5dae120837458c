#include "flow/fast/fast_flow.h"

#include <algorithm>
#include <bit>

#include "flow/events/plain_packets.h"

namespace ptkit::flow {

using base::Status;

namespace {

// Drops the paths of `code` unless done() was called: lack of memory may leave them incomplete, and other
// decoders use the same ones.
class PathsInUse {
 public:
  explicit PathsInUse(CachedCode& code) noexcept : code_(&code) {}
  PathsInUse(const PathsInUse&) = delete;
  PathsInUse& operator=(const PathsInUse&) = delete;
  ~PathsInUse() {
    if (code_ != nullptr) code_->paths.reset();
  }
  void done() noexcept { code_ = nullptr; }

 private:
  CachedCode* code_;
};

}  // namespace

FastFlow::FastFlow(packet::PacketDecoder& packets, EventDecoder& events, EventBinder& binder, Walker& walker,
                   CodeCaches& caches, Recovery& recovery, ContextTracker& context,
                   const AddressFilter& filter, BulkSink* bulk, std::size_t most_bytes)
    : packets_(packets),
      events_(events),
      binder_(binder),
      walker_(walker),
      caches_(caches),
      recovery_(recovery),
      context_(context),
      bulk_(bulk),
      most_bytes_(most_bytes),
      loop_(packets.stream(), filter, walker.calls()) {
  if (events_.gives_ticks() || !binder_.has_code()) bulk_ = nullptr;
  if (bulk_ == nullptr) return;
  caches_.before_clear([this](CachedCode& code) {
    const auto found = std::find(counted_.begin(), counted_.end(), &code);
    if (found == counted_.end()) return;
    emit_counts(code);
    counted_.erase(found);
  });
}

FastFlow::~FastFlow() {
  if (bulk_ == nullptr) return;
  caches_.before_clear({});
  // Counts that remain belong to a decode that was stopped early, and nothing reads them. Other decoders use
  // the same path caches, so clear them.
  for (CachedCode* code : counted_) {
    if (code->paths != nullptr) code->paths->clear_counts();
  }
}

// True if nothing is pending, and all state that packets may refer to is known.
bool FastFlow::plain() const noexcept {
  const packet::DecoderState& packets = packets_.state();
  if (packets.in_psb || packets.block_open || !packets.last_ip_known) return false;
  if (packets_.adds_cs_base() || binder_.checks_enable()) return false;
  if (!events_.at_rest() || recovery_.is_open() || !walker_.plain()) return false;
  const BinderState& binder = binder_.state();
  if (binder.tnt_disabled || binder.flow == BinderState::Flow::LOST) return false;
  return binder.flow == BinderState::Flow::OFF || !walker_.at_branch();
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
  room.mode = walker_.code().mode();
  room.position = packets_.position();
  if (!bulk_->open(room)) return false;
  CachedCode& code = caches_.last();
  const ReturnRules returns{walker_.return_compression(), walker_.keeps_calls()};
  PathCache* paths = &code.paths_for(returns);
  if (room.kind == BulkRows::EDGES) {
    if (room.space != counted_space_ || room.phase != counted_phase_) emit_counts();
    counted_space_ = room.space;
    counted_phase_ = room.phase;
    in_order_ = room.in_order;
  }
  if (paths->bytes() > most_bytes_) {
    if (room.kind == BulkRows::EDGES) emit_counts();
    code.paths.reset();
    paths = &code.paths_for(returns);
  }
  if (room.kind == BulkRows::EDGES && std::find(counted_.begin(), counted_.end(), &code) == counted_.end()) {
    counted_.push_back(&code);
  }
  if (room.kind == BulkRows::EDGES) paths->count_blocks(room.count_blocks);
  PathsInUse in_use(code);
  FastState state = load_state();
  state.end = end;
  state.last_psb = last_psb;
  if (state.binder.flow == BinderState::Flow::ON) state.node = paths->node(walker_.ip());
  const std::uint64_t begin = state.packets.position;
  const FastStop stop = loop_.run(*paths, state, room);
  if (state.node != 0) state.end_ip = paths->at(state.node).ip;
  in_use.done();
  store_state(state, room);
  bulk_->close(room);
  if (context_.follows_time()) follow_time(state, begin);
  if (stop == FastStop::REST) finish_tnt(state);
  return packets_.position() != begin;
}

FastState FastFlow::load_state() const {
  FastState state;
  state.packets = packets_.state();
  state.events = events_.state();
  state.binder = binder_.state();
  const EventState& events = state.events;
  state.known.any = events.mode && !events.first_psb && !state.binder.abort_ip;
  state.known.mode = static_cast<std::uint8_t>(events.mode.value_or(0));
  state.known.mode_events = events.event_trace == EventTrace::ON ? 2 : 1;
  if (events_.pip_at()) state.known.pip = packets_.stream().data() + *events_.pip_at();
  return state;
}

void FastFlow::store_state(FastState& state, const BulkRoom& room) {
  if (packets_.position() == state.packets.position && room.instructions == 0) return;  // no packet was used
  packets_.set_state(state.packets);
  if (state.repeats) events_.used_repeats();
  events_.set_state(state.events);
  walker_.add_emitted(room.instructions, state.events.since);
  if (state.moved && (state.last != FastLast::NONE || room.instructions != 0)) walker_.jump_to(state.end_ip);
  if (state.last != FastLast::NONE) {
    state.binder.flow = state.node != 0 ? BinderState::Flow::ON : BinderState::Flow::OFF;
    if (state.node != 0) state.binder.resume_ip = 0;
    state.binder.bits_dropped = false;
    state.binder.after_branch = state.last == FastLast::BRANCH;
    if (state.last != FastLast::DISABLED) {
      walker_.begin_icnt();
    } else {
      walker_.end_icnt();
    }
  }
  binder_.set_state(state.binder);
}

// The simple decoder looks up the time at each packet after a timing packet.
void FastFlow::follow_time(const FastState& state, std::uint64_t begin) {
  const std::uint8_t* const bytes = packets_.stream().data();
  const std::uint64_t last = state.events.tnt_before.value_or(state.events.since);
  if (last < begin || state.last == FastLast::NONE) {
    events_.set_timing_seen(events_.timing_seen() ||
                            any_timing(bytes + begin, bytes + state.packets.position));
    return;
  }
  context_.time_moved(last, state.node != 0);
  events_.set_timing_seen(
      any_timing(bytes + last + plain_size(bytes + last), bytes + state.packets.position));
}

// Applies the rest of the TNT packet at the position after its first bits.
void FastFlow::finish_tnt(const FastState& state) {
  packet::Packet packet;
  if (packets_.next(packet) != Status::OK) return;
  std::uint64_t bits = 0;
  unsigned left = 0;
  for (std::uint64_t next = std::bit_floor(state.rest) >> 1U; next != 0; next >>= 1U, ++left) {
    if ((state.rest & next) != 0) bits |= std::uint64_t{1} << left;
  }
  events_.apply_rest(packet, bits, left);
}

void FastFlow::emit_counts() {
  for (CachedCode* code : counted_) emit_counts(*code);
  counted_.clear();
}

void FastFlow::emit_counts(CachedCode& code) {
  if (code.paths == nullptr) return;
  PathsInUse in_use(code);
  if (in_order_) {
    bulk_->add_edges(code.paths->take_edges(), counted_space_, counted_phase_);
  } else {
    bulk_->add_counts(code.paths->take_counts(), counted_space_, counted_phase_);
  }
  in_use.done();
}

}  // namespace ptkit::flow
