#include "flow/libipt/decoder.h"

#include <algorithm>
#include <new>
#include <optional>

#include "base/bits.h"
#include "flow/code/loop_guard.h"
#include "flow/libipt/events.h"
#include "flow/libipt/memory.h"
#include "flow/libipt/rows.h"
#include "packet/decoder.h"
#include "ptkit/rtit_regs.h"

namespace ptkit::flow::libipt {
namespace {

[[maybe_unused]] constexpr unsigned kMaxResumes = 16;

// Classifies an instruction that ptkit's decoder does not know by libipt's class.
code::insn::InsnClass class_of(pt_insn_class iclass) noexcept {
  using code::insn::InsnClass;
  switch (iclass) {
    case ptic_call:
      return InsnClass::CALL;
    case ptic_return:
      return InsnClass::RETURN;
    case ptic_jump:
      return InsnClass::JUMP;
    case ptic_cond_jump:
      return InsnClass::COND_JUMP;
    case ptic_far_call:
      return InsnClass::FAR_CALL;
    case ptic_far_return:
      return InsnClass::FAR_RETURN;
    case ptic_far_jump:
      return InsnClass::FAR_JUMP;
    case ptic_ptwrite:
      return InsnClass::PTWRITE;
    default:
      return InsnClass::OTHER;
  }
}

code::insn::ExecMode mode_of(pt_exec_mode mode) noexcept {
  switch (mode) {
    case ptem_16bit:
      return code::insn::ExecMode::BITS16;
    case ptem_32bit:
      return code::insn::ExecMode::BITS32;
    case ptem_64bit:
      return code::insn::ExecMode::BITS64;
    default:
      return code::insn::ExecMode::UNKNOWN;
  }
}

ExecutedInsn to_step(const pt_insn& from) noexcept {
  ExecutedInsn step;
  step.ip = from.ip;
  step.mode = mode_of(from.mode);
  if (from.speculative) step.flags = flow::IN_TX;
  step.insn.size = from.size;
  step.insn.cls = class_of(from.iclass);
  if (from.iclass == ptic_other || from.iclass == ptic_ptwrite) return step;
  code::insn::Insn decoded;
  if (code::insn::decode(step.mode, {from.raw, from.size}, decoded) == base::Status::OK) {
    step.insn.cls = decoded.cls;
    step.insn.kind = decoded.kind;
  }
  return step;
}

bool consumes_trace(code::insn::InsnClass cls) noexcept {
  using code::insn::InsnClass;
  return cls != InsnClass::OTHER && cls != InsnClass::JUMP && cls != InsnClass::CALL;
}

class ReferenceDecoder final : public flow::RowSource {
 public:
  ReferenceDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
                   const code::image::Image& image, const flow::FlowOptions& options, flow::FlowSink& sink,
                   time::TimeTrack* track);

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override { return span_.offset; }

 private:
  enum class Phase : std::uint8_t { START, SYNC, FLOW, DONE };

  void step();
  void start();
  void sync();
  void take_event();
  void take_instruction();
  void fail(int status, std::optional<std::uint64_t> ip) { fail(to_status(status), ip); }
  void fail(base::Status code, std::optional<std::uint64_t> ip);
  [[nodiscard]] bool resume();
  void finish();

  void update_span() noexcept;
  void update_time(bool switches);
  void switch_by_offset();
  template <typename Has>
  void take_switches(const Has& has_come);
  void close_gap(std::optional<std::uint64_t> ip);
  void open_gap(flow::GapCause cause, base::Status code);
  void describe(flow::FlowError& error) const;
  void emit_context();

  const trace::Stream& stream_;
  flow::FlowOptions options_;
  flow::FlowSink& sink_;
  time::TimeTrack* track_;
  Memory memory_;
  InsnDecoderPtr decoder_;
  RowBuilder rows_;
  std::optional<flow::LoopGuard> loops_;  // since the last instruction that consumed trace
  flow::StreamSpan span_;
  std::uint64_t previous_offset_ = 0;
  std::uint64_t sync_offset_ = 0;
  std::optional<flow::Gap> gap_;
  flow::Context context_;
  std::size_t next_switch_ = 0;
  [[maybe_unused]] std::uint64_t resumed_at_ = 0;
  [[maybe_unused]] unsigned resumed_in_vain_ = 0;
  int status_ = 0;
  bool synced_once_ = false;
  Phase phase_ = Phase::START;
};

ReferenceDecoder::ReferenceDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
                                   const code::image::Image& image, const flow::FlowOptions& options,
                                   flow::FlowSink& sink, time::TimeTrack* track)
    : stream_(stream),
      options_(options),
      sink_(sink),
      track_(track),
      memory_(image, stream.space),
      rows_(sink) {
  context_ = {0, stream.space, stream.cpu, stream.pid, stream.tid};
  pt_config config = make_config(stream.data.bytes(), configuration);
  config.flags.variant.insn.enable_tick_events = options.ticks ? 1U : 0U;
#if LIBIPT_VERSION >= 0x201
  const bool event_trace =
      configuration.rtit_ctl_known && (configuration.rtit_ctl & base::bit(PT_CTL_EVENT_EN)) != 0;
  config.flags.variant.insn.enable_iflags_events = event_trace ? 1U : 0U;
#endif
  decoder_.reset(pt_insn_alloc_decoder(&config));
}

bool ReferenceDecoder::run() {
  while (phase_ != Phase::DONE) {
    if (sink_.full()) return true;
    step();
    memory_.rethrow();
  }
  return false;
}

void ReferenceDecoder::step() {
  switch (phase_) {
    case Phase::START:
      start();
      return;
    case Phase::SYNC:
      sync();
      return;
    case Phase::DONE:
      return;
    case Phase::FLOW:
      break;
  }
  if ((status_ & pts_event_pending) != 0) {
    take_event();
  } else if ((status_ & pts_eos) != 0) {
    finish();
  } else {
    take_instruction();
  }
}

void ReferenceDecoder::start() {
  emit_context();
  const base::Bytes bytes = stream_.data.bytes();
  if (bytes.empty()) {
    phase_ = Phase::DONE;
    return;
  }
  if (decoder_ == nullptr || !memory_.attach(*decoder_)) throw std::bad_alloc();
  const std::uint64_t first = packet::find_psb(bytes, 0);
  if (first > 0) open_gap(flow::GapCause::START, base::Status::OK);
  if (first == bytes.size()) {
    fail(base::Status::NO_SYNC, std::nullopt);
    finish();
    return;
  }
  phase_ = Phase::SYNC;
}

void ReferenceDecoder::sync() {
  status_ = pt_insn_sync_forward(decoder_.get());
  update_span();
  if (status_ == -pte_eos) {
    finish();
    return;
  }
  std::uint64_t offset = 0;
  const bool located = pt_insn_get_sync_offset(decoder_.get(), &offset) >= 0;
  const bool moved = located && (!synced_once_ || offset > sync_offset_);
  if (moved) {
    sync_offset_ = offset;
    synced_once_ = true;
  }
  if (status_ < 0) {
    // An error in the PSB+ header: libipt gives only the offset of the PSB.
    if (located) span_.offset = std::max(span_.offset, offset);
    fail(status_, std::nullopt);
  } else {
    loops_.reset();
    phase_ = Phase::FLOW;
  }
  if (!moved) finish();
}

void ReferenceDecoder::take_event() {
  pt_event raw{};
  const int status = pt_insn_event(decoder_.get(), &raw, sizeof(raw));
  update_span();
  if (status == -pte_eos) {
    finish();
    return;
  }
  if (status < 0) {
    fail(status, rows_.last_ip());
    return;
  }
  status_ = status;
  loops_.reset();
  flow::Event event;
  if (!to_event(raw, event)) return;
  event.span = span_;
  const bool goes_on = event.kind == flow::EventKind::ENABLED || event.kind == flow::EventKind::OVERFLOW;
  update_time(goes_on);
  // libipt may have read past a switch that is not due yet.
  if (goes_on || event.kind == flow::EventKind::PTWRITE) switch_by_offset();
  const bool ip_known = (event.flags & flow::EV_IP_KNOWN) != 0;
  if (event.kind == flow::EventKind::OVERFLOW)
    open_gap(flow::GapCause::OVERFLOW, base::Status::OVERFLOW_LOST);
  if (goes_on && ip_known) close_gap(event.ip);
  rows_.on_event(event);
}

void ReferenceDecoder::take_instruction() {
  pt_insn insn{};
  const int status = pt_insn_next(decoder_.get(), &insn, sizeof(insn));
  update_span();
  // An event without pts_event_pending: fetch it, then continue.
  if (status == -pte_event_ignored) {
    status_ = pts_event_pending;
    return;
  }
  if (status == -pte_eos && insn.iclass == ptic_error) {
    finish();
    return;
  }
  // libipt may return an instruction together with an error: its successor was not found.
  const bool given = insn.iclass != ptic_error && insn.size != 0;
  if (!given && (status == -pte_nomap || status == -pte_bad_insn)) rows_.arrive(insn.ip);
  if (given) {
    const ExecutedInsn step = to_step(insn);
    close_gap(step.ip);
    rows_.on_instruction(step, span_);
    if (consumes_trace(step.insn.cls)) {
      loops_.reset();
    } else if (!loops_) {
      loops_.emplace(step.ip);
    } else if (loops_->loops(step.ip)) {
      fail(base::Status::INFINITE_LOOP, step.ip);
      return;
    }
  }
  if (status == -pte_eos) {
    rows_.drop();
    finish();
  } else if (status < 0) {
    if (given) rows_.drop();
    fail(status, insn.ip);
  } else {
    status_ = status;
  }
}

void ReferenceDecoder::fail(base::Status code, std::optional<std::uint64_t> ip) {
  rows_.leave();
  flow::FlowError error;
  error.span = span_;
  error.code = code;
  error.ip_known = ip.has_value();
  error.ip = ip.value_or(0);
  describe(error);
  sink_.on_error(error);
  open_gap(flow::GapCause::ERROR, code);
  phase_ = Phase::SYNC;
  if (resume()) phase_ = Phase::FLOW;
}

// Resumes before the next PSB, if libipt can and Resync::IP is set.
bool ReferenceDecoder::resume() {
#if LIBIPT_VERSION >= 0x202
  if (options_.resync != flow::Resync::IP || !synced_once_) return false;
  // Without progress, libipt would return the same error again.
  if (span_.offset == resumed_at_ && ++resumed_in_vain_ > kMaxResumes) return false;
  if (span_.offset != resumed_at_) resumed_in_vain_ = 0;
  resumed_at_ = span_.offset;
  const int status = pt_insn_resync(decoder_.get());
  update_span();
  if (status == -pte_event_ignored) {
    status_ = pts_event_pending;
  } else if (status < 0) {
    return false;
  } else {
    status_ = status;
  }
  loops_.reset();
  return true;
#else
  return false;
#endif
}

void ReferenceDecoder::finish() {
  rows_.leave();
  span_.offset = stream_.data.size();
  close_gap(std::nullopt);
  phase_ = Phase::DONE;
}

// libipt gives the offset of the packet that it reads next. The last item came from the packet before that
// offset or, at the earliest, from the packet before the previous offset: `since` is the offset before that
// one.
void ReferenceDecoder::update_span() noexcept {
  std::uint64_t offset = 0;
  if (pt_insn_get_offset(decoder_.get(), &offset) < 0 || offset <= span_.offset) return;
  span_.since = std::max(span_.since, previous_offset_);
  previous_offset_ = span_.offset;
  span_.offset = offset;
  if (memory_.varies()) update_time(false);
}

void ReferenceDecoder::update_time(bool switches) {
  if (track_ == nullptr) return;
  const bool pending = switches && !stream_.switches_by_offset && next_switch_ < stream_.switches.size();
  if (!pending && !memory_.varies()) return;
  const time::TimeRange now = track_->at(span_.since, span_.offset);
  if (!now.known) return;
  memory_.set_time(now.tsc);
  if (!pending) return;
  const std::uint64_t latest = now.tsc + now.error;
  take_switches([latest](const trace::Switch& next) { return next.tsc <= latest; });
}

void ReferenceDecoder::switch_by_offset() {
  if (!stream_.switches_by_offset) return;
  take_switches([this](const trace::Switch& next) { return next.offset < span_.offset; });
}

template <typename Has>
void ReferenceDecoder::take_switches(const Has& has_come) {
  bool switched = false;
  for (; next_switch_ < stream_.switches.size() && has_come(stream_.switches[next_switch_]); ++next_switch_) {
    const trace::Switch& next = stream_.switches[next_switch_];
    context_.pid = next.pid;
    context_.tid = next.tid;
    context_.space = next.space;
    switched = true;
  }
  if (!switched) return;
  memory_.set_space(context_.space);
  emit_context();
}

void ReferenceDecoder::emit_context() {
  context_.offset = span_.offset;
  sink_.on_context(context_);
}

void ReferenceDecoder::open_gap(flow::GapCause cause, base::Status code) {
  if (gap_) return;
  gap_ = flow::Gap{};
  gap_->begin = cause == flow::GapCause::START ? 0 : span_.offset;
  gap_->cause = cause;
  gap_->code = code;
  if (const auto ip = rows_.last_ip(); ip && cause != flow::GapCause::START) {
    gap_->from_ip = *ip;
    gap_->flags |= flow::FROM_KNOWN;
  }
}

void ReferenceDecoder::close_gap(std::optional<std::uint64_t> ip) {
  if (!gap_) return;
  gap_->end = span_.offset;
  if (ip) {
    gap_->to_ip = *ip;
    gap_->flags |= flow::TO_KNOWN;
  }
  sink_.on_gap(*gap_);
  gap_.reset();
}

// Details of the error for its sentence, see flow::FlowError.
void ReferenceDecoder::describe(flow::FlowError& error) const {
  if (error.code == base::Status::BAD_OPCODE) {
    const base::Bytes bytes = stream_.data.bytes();
    const std::uint64_t count =
        std::min<std::uint64_t>(bytes.size() - std::min(error.span.offset, bytes.size()), 3);
    for (std::uint64_t i = 0; i < count; ++i)
      error.argument |= std::uint64_t{bytes[error.span.offset + i]} << (8 * i);
    error.argument2 = count;
    return;
  }
  const bool about_code = error.code == base::Status::NO_CODE || error.code == base::Status::BAD_INSN;
  if (!about_code || !error.ip_known) return;
  constexpr std::uint64_t kPage = 4096;
  error.argument = error.ip & ~(kPage - 1);
  error.argument2 = kPage;
  if (memory_.view() == nullptr) return;
  const code::image::Provenance origin = memory_.view()->provenance(error.ip);
  if (origin.region < 0) return;
  error.argument = origin.region_address;
  error.argument2 = origin.region_size;
  error.file = origin.file;
}

}  // namespace

std::unique_ptr<flow::RowSource> make_reference(const trace::Stream& stream,
                                                const trace::Configuration& configuration,
                                                const code::image::Image& image,
                                                const flow::FlowOptions& options, flow::FlowSink& sink,
                                                time::TimeTrack* track) {
  return std::make_unique<ReferenceDecoder>(stream, configuration, image, options, sink, track);
}

}  // namespace ptkit::flow::libipt
