#include "flow/decoder/decoder.h"

#include <algorithm>

#include "base/bits.h"
#include "flow/decoder/decoder_context.h"
#include "flow/decoder/flow_state.h"
#include "flow/fast/fast_flow.h"
#include "ptkit/rtit_regs.h"
#include "trace/rtit_ctl.h"

namespace ptkit::flow {

using base::Status;

namespace {

BinderOptions binder_options(const trace::Configuration& configuration, const code::image::Image& image,
                             const FlowOptions& options) {
  BinderOptions out;
  out.to_next_psb = options.resync == Resync::PSB;
  out.no_code = !out.to_next_psb && image.empty();
  out.errata = options.errata;
  out.tnt_disabled =
      configuration.rtit_ctl_known && (configuration.rtit_ctl & base::bit(PT_CTL_DIS_TNT)) != 0;
  out.ptw_disabled = trace::ptw_disabled(configuration);
  return out;
}

TickOptions tick_options(const trace::Clock& clock, const FlowOptions& options) {
  TickOptions out;
  out.on = options.ticks;
  out.over_overflow = options.ticks_over_overflow;
  out.by_mtc = clock.mtc_period_known && clock.tsc_ctc_numerator != 0 && clock.tsc_ctc_denominator != 0;
  out.by_cbr = clock.max_nonturbo_ratio != 0;
  return out;
}

EventTrace event_trace(const trace::Configuration& configuration) noexcept {
  if (!configuration.rtit_ctl_known) return EventTrace::UNKNOWN;
  return (configuration.rtit_ctl & base::bit(PT_CTL_EVENT_EN)) != 0 ? EventTrace::ON : EventTrace::OFF;
}

}  // namespace

class FlowDecoder::Impl : private DecoderContext {
 public:
  Impl(const trace::Stream& stream, const trace::Configuration& configuration,
       const code::image::Image& image, const FlowOptions& options, FlowSink& sink, time::TimeTrack* track,
       CodeCachePool* pool)
      : DecoderContext(stream, configuration, image, sink, track, pool),
        probe_(bytes_),
        binder_(sink, walker_, context_, recovery_, probe_, binder_options(configuration, image, options)),
        packets_(bytes_, {}, options.errata, configuration.cs_base),
        events_(packets_, binder_, walker_, context_, options.errata,
                tick_options(configuration.clock, options), event_trace(configuration)),
        fast_(packets_, events_, binder_, walker_, caches_, recovery_, context_, filter_,
              options.fast ? sink.bulk() : nullptr, options.most_path_bytes),
        pool_(pool),
        sync_(configuration.sync),
        waits_for_psb_(options.resync == Resync::PSB) {
    if (configuration.rtit_ctl_known && (configuration.rtit_ctl & base::bit(PT_CTL_DIS_RETC)) != 0)
      walker_.set_return_compression(false);
    if (options.watch_filter && pool != nullptr) filter_.watch();
    if (!walker_.return_compression() && !filter_.watches()) walker_.leave_out_calls();
  }
  ~Impl() {
    if (!filter_.signs().empty()) pool_->note_filter_signs(bytes_, filter_.signs());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void load(const FlowState& from, bool speculative);
  [[nodiscard]] FlowState checkpoint() const;
  [[nodiscard]] SpeculationDeps speculation_deps() const noexcept {
    return {walker_.calls().used_placeholder(), binder_.depends_on_deferral(),
            events_.depends_on_event_trace()};
  }
  void stop_after_psb_above(std::uint64_t psb) noexcept { stop_after_ = psb; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

  [[nodiscard]] bool run();
  [[nodiscard]] std::uint64_t position() const noexcept { return packets_.position(); }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  [[nodiscard]] bool is_stop(packet::PacketKind kind) const noexcept {
    return kind == packet::PacketKind::PSBEND && stop_after_ != kNever && events_.state().psb > stop_after_ &&
           events_.at_rest();
  }
  void begin();
  void begin_anywhere(GapCause gap, Status cause);
  [[nodiscard]] bool seeks() const noexcept;
  [[nodiscard]] bool is_before_start() const noexcept;
  [[nodiscard]] bool has_later_psb() const noexcept;
  [[nodiscard]] bool goes_on_without_psb() noexcept;
  void pass_loss();
  void pass_damage(Status status, const packet::Packet& packet);
  void skip_byte();
  void synchronize();
  void stop_at_loss();
  [[nodiscard]] bool ends_at_loss(Status status) const noexcept;
  void bad_packet(Status status, const packet::Packet& packet);
  void end();
  void select_part();

  TntProbe probe_;
  EventBinder binder_;
  packet::PacketDecoder packets_;
  EventDecoder events_;
  FastFlow fast_;
  CodeCachePool* pool_;
  bool sync_;
  bool waits_for_psb_;  // after damage and losses
  bool begun_ = false;
  bool done_ = false;
  bool synchronized_ = false;
  bool past_last_psb_ = false;         // damage or a loss behind the last PSB: decoding went on without one
  std::uint64_t stop_after_ = kNever;  // decoding stops at the first PSB+ after this PSB
  bool stopped_ = false;
};

void FlowDecoder::Impl::load(const FlowState& from, bool speculative) {
  begun_ = true;
  synchronized_ = true;
  next_loss_ = from.next_loss;
  packets_.set_state(from.packets);
  select_part();
  context_.set_state(from.context, from.packets.position);
  walker_.set_state(from.walk);
  binder_.set_state(from.binder);
  events_.set_state(from.events);
  recovery_.set_gap(from.gap);
  if (speculative) walker_.calls().fill_with_placeholders();
}

FlowState FlowDecoder::Impl::checkpoint() const {
  return {packets_.state(), next_loss_,       events_.state(), binder_.state(),
          walker_.state(),  context_.state(), recovery_.gap()};
}

// Selects the part of the stream up to the next loss. Packets never span a loss.
void FlowDecoder::Impl::select_part() {
  const packet::DecoderState state = packets_.state();
  packets_ = packet::PacketDecoder(bytes_.first(static_cast<std::size_t>(limit())), state, packets_.errata(),
                                   packets_.cs_base());
}

void FlowDecoder::Impl::begin() {
  begun_ = true;
  context_.start();
  if (bytes_.empty() && stream_.losses.empty()) {  // of a CPU on which nothing was traced
    done_ = true;
    return;
  }
  // Losses at the start of the stream only explain why it may start in the middle of a packet.
  Status cause = Status::OK;
  while (next_loss_ < stream_.losses.size() && stream_.losses[next_loss_].offset == 0) {
    cause = stream_.losses[next_loss_++].cause;
  }
  select_part();
  const GapCause gap = cause == Status::OK ? GapCause::START : GapCause::LOST;
  const bool has_psb = !bytes_.empty() && packet::find_psb(bytes_, 0) == 0;
  if (!sync_ && !has_psb && !bytes_.empty()) return begin_anywhere(gap, cause);
  if (cause != Status::OK || !has_psb) recovery_.open(0, nullptr, gap, cause);
  if (bytes_.empty()) return end();  // everything was lost
  synchronize();
}

// True if packets are enabled by the first packet that depends on it, and that has a full IP: nothing of the
// control flow is missing.
bool begins_with_pge(base::Bytes stream, const packet::PacketDecoder& from) noexcept {
  packet::PacketDecoder packets(stream, {}, from.errata(), from.cs_base());
  for (packet::Packet packet; packets.next(packet) == Status::OK;) {
    if (packet.kind == packet::PacketKind::TIP_PGE) return (packet.flags & packet::Packet::IP_KNOWN) != 0;
    if (packet.kind == packet::PacketKind::FUP || !packet::continues_psb(packet.kind)) return false;
  }
  return false;
}

// Begins at the first byte of a stream without a PSB there.
void FlowDecoder::Impl::begin_anywhere(GapCause gap, Status cause) {
  synchronized_ = true;
  events_.begin_without_psb();
  if (cause == Status::OK && begins_with_pge(packets_.stream(), packets_)) return;
  binder_.lose_start(gap, cause);
}

// True while neither a PSB nor an IP was found: in a stream that began without a PSB, or where no PSB follows
// damage or a loss.
bool FlowDecoder::Impl::seeks() const noexcept {
  return is_before_start() || (past_last_psb_ && binder_.lost());
}

bool FlowDecoder::Impl::is_before_start() const noexcept {
  return !sync_ && binder_.lost() && recovery_.is_open() && recovery_.gap()->begin == 0;
}

// True if a PSB begins at the position or behind it, in any part. One that was begun at the position counts.
bool FlowDecoder::Impl::has_later_psb() const noexcept {
  constexpr std::uint64_t kPsbBytes = 16;
  const std::uint64_t position = packets_.position();
  std::uint64_t from = position - std::min<std::uint64_t>(position, kPsbBytes - 1);
  for (std::size_t loss = next_loss_;; ++loss) {
    const bool is_last = loss >= stream_.losses.size() || stream_.losses[loss].offset >= bytes_.size();
    const std::uint64_t end = is_last ? bytes_.size() : stream_.losses[loss].offset;
    if (packet::find_psb(bytes_.first(static_cast<std::size_t>(end)), from) < end) return true;
    if (is_last) return false;
    from = end;
  }
}

// Without later PSBs, a stream that may begin anywhere goes on anywhere: at the next byte, or in the next
// part. All behind it has no PSB, so no checkpoint is taken there.
bool FlowDecoder::Impl::goes_on_without_psb() noexcept {
  if (sync_ || waits_for_psb_ || !synchronized_) return false;
  past_last_psb_ = past_last_psb_ || !has_later_psb();
  return past_last_psb_;
}

// The stream may begin inside of a packet.
void FlowDecoder::Impl::skip_byte() {
  packet::DecoderState state;
  state.position = packets_.position() + 1;
  state.has_cs_base = packets_.state().has_cs_base;
  packets_.set_state(state);
  events_.restart();
  events_.begin_without_psb();
}

// Advances to the next PSB; at the end of a part, to the first PSB of the next part.
void FlowDecoder::Impl::synchronize() {
  events_.restart();
  binder_.psb_found();
  Status status =
      begun_ && synchronized_ ? packets_.sync_forward() : packets_.sync_forward(packets_.position());
  while (status != Status::OK && next_loss_ < stream_.losses.size()) {
    stop_at_loss();
    status = packets_.sync_forward(packets_.position());
  }
  if (status == Status::OK) {
    synchronized_ = true;
    return;
  }
  if (!synchronized_) recovery_.error(StreamSpan{0, bytes_.size()}, Status::NO_SYNC, nullptr, 0, 0, nullptr);
  end();
}

// Whether a loss explains that a part ended so. A loss at the end of the stream may cut a packet, too.
bool FlowDecoder::Impl::ends_at_loss(Status status) const noexcept {
  if (status == Status::TRUNCATED_PACKET) return next_loss_ < stream_.losses.size();
  return status == Status::END_OF_STREAM && limit() < bytes_.size();
}

// Ends the part at a loss of the recorder.
void FlowDecoder::Impl::stop_at_loss() {
  const trace::KnownLoss& loss = stream_.losses[next_loss_++];
  const std::uint64_t offset = std::min<std::uint64_t>(loss.offset, bytes_.size());
  walker_.begin_packet(StreamSpan{walker_.span().since, offset});
  binder_.lose(GapCause::LOST, loss.cause);
  packet::DecoderState state;
  state.position = offset;
  state.has_cs_base = packets_.state().has_cs_base;
  packets_.set_state(state);
  select_part();
}

void FlowDecoder::Impl::bad_packet(Status status, const packet::Packet& packet) {
  std::uint64_t word = 0;
  const std::uint64_t size = std::min<std::uint64_t>(packet.size, bytes_.size() - packet.offset);
  const auto shown = static_cast<std::size_t>(std::min<std::uint64_t>(size, 8));
  for (std::size_t i = shown; i-- > 0;)
    word = word << 8U | bytes_[static_cast<std::size_t>(packet.offset) + i];
  walker_.begin_packet(StreamSpan{walker_.span().since, packet.offset});
  binder_.contradiction(status, word, shown);
}

void FlowDecoder::Impl::pass_loss() {
  if (!goes_on_without_psb()) return synchronize();
  const Status cause = stream_.losses[next_loss_].cause;
  stop_at_loss();
  events_.restart();
  events_.begin_without_psb();
  binder_.lose_start(GapCause::LOST, cause);
}

void FlowDecoder::Impl::pass_damage(Status status, const packet::Packet& packet) {
  bad_packet(status, packet);
  // The bytes that are left of a cut packet are no packets.
  if (status == Status::TRUNCATED_PACKET || !goes_on_without_psb()) return synchronize();
  binder_.lose_start(GapCause::ERROR, status);
  skip_byte();
}

void FlowDecoder::Impl::end() {
  done_ = true;
  if (is_before_start() && !bytes_.empty())
    recovery_.error(StreamSpan{0, bytes_.size()}, Status::NO_SYNC, nullptr, 0, 0, nullptr);
  while (next_loss_ < stream_.losses.size()) stop_at_loss();  // losses after the last byte
  walker_.begin_packet(StreamSpan{walker_.span().since, bytes_.size()});
  binder_.finish();
  fast_.emit_counts();
}

bool FlowDecoder::Impl::run() {
  if (!begun_) begin();
  stopped_ = false;
  packet::Packet packet;
  const std::uint64_t walked = walker_.instructions();
  while (!done_) {
    if (fast_.run(limit(), stop_after_)) {
      if (binder_.needs_psb()) synchronize();
      if (done_ || pauses(walked)) return !done_;
    }
    const Status status = packets_.next(packet);
    if (status == Status::OK) {
      walker_.bound_memory();
      events_.apply(packet);
      if (is_stop(packet.kind)) {
        stopped_ = true;
        fast_.emit_counts();
        stop_after_ = kNever;
        return false;
      }
      if (binder_.needs_psb()) synchronize();
      if (pauses(walked)) return !done_;
    } else if (ends_at_loss(status)) {
      pass_loss();
    } else if (status == Status::END_OF_STREAM) {
      end();
    } else if (seeks()) {
      skip_byte();
    } else {
      pass_damage(status, packet);
    }
  }
  return false;
}

FlowDecoder::FlowDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
                         const code::image::Image& image, const FlowOptions& options, FlowSink& sink,
                         time::TimeTrack* track, CodeCachePool* pool)
    : impl_(std::make_unique<Impl>(stream, configuration, image, options, sink, track, pool)) {}

FlowDecoder::FlowDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
                         const code::image::Image& image, const FlowOptions& options, FlowSink& sink,
                         time::TimeTrack* track, CodeCachePool* pool, const FlowState& from, bool speculative)
    : FlowDecoder(stream, configuration, image, options, sink, track, pool) {
  impl_->load(from, speculative);
}

FlowDecoder::~FlowDecoder() = default;

void FlowDecoder::stop_after_psb_above(std::uint64_t psb) noexcept { impl_->stop_after_psb_above(psb); }

bool FlowDecoder::stopped() const noexcept { return impl_->stopped(); }

FlowState FlowDecoder::checkpoint() const { return impl_->checkpoint(); }

SpeculationDeps FlowDecoder::speculation_deps() const noexcept { return impl_->speculation_deps(); }

bool FlowDecoder::run() { return impl_->run(); }

std::uint64_t FlowDecoder::position() const noexcept { return impl_->position(); }

}  // namespace ptkit::flow
