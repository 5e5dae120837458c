#include "flow/decoder/record_decoder.h"

#include <cstring>

namespace ptkit::flow {

using base::Status;
using trace::BranchRecord;

namespace {

constexpr std::uint64_t kRecordBytes = sizeof(BranchRecord);

// Kernel addresses are in the upper half of the address space on all 64-bit systems.
bool is_kernel(std::uint64_t ip) noexcept { return ip >> 63U != 0; }

// Sign-extended from bit 56 (five levels of page tables).
bool is_canonical(std::uint64_t ip) noexcept {
  const auto high = static_cast<std::int64_t>(ip) >> 56U;
  return high == 0 || high == -1;
}

std::uint8_t row_flags(const BranchRecord& record) noexcept {
  unsigned flags = FROM_KNOWN | TO_KNOWN | TAKEN;
  if ((record.flags & trace::RECORD_PREDICTION_KNOWN) != 0) {
    flags |= PREDICTION_KNOWN;
    if ((record.flags & trace::RECORD_PREDICTED) != 0) flags |= PREDICTED;
  }
  return static_cast<std::uint8_t>(flags);
}

bool is_missing(Status status) noexcept { return status == Status::NO_CODE || status == Status::BAD_INSN; }

code::insn::ExecMode mode_after(const BranchRecord& record) noexcept {
  return (record.flags & trace::RECORD_CODE32) != 0 ? code::insn::ExecMode::BITS32
                                                    : code::insn::ExecMode::BITS64;
}

}  // namespace

RecordDecoder::RecordDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
                             const code::image::Image& image, FlowSink& sink, time::TimeTrack* track,
                             CodeCachePool* pool)
    : DecoderContext(stream, configuration, image, sink, track, pool),
      route_(walker_),
      has_code_(!image.empty()) {}

bool RecordDecoder::run() {
  if (!begun_) context_.start();
  begun_ = true;
  const std::uint64_t walked = walker_.instructions();
  while (!done_) {
    walker_.bound_memory();
    walker_.begin_packet(StreamSpan{number(), number()});
    take_losses();
    const std::uint64_t end = limit();
    if (end - position_ >= kRecordBytes) {
      take_record();
      position_ += kRecordBytes;
    } else if (end != position_) {
      bad_record(nullptr, end - position_);
      position_ = end;
    } else {
      done_ = true;
      close_gap(number(), nullptr);
    }
    if (pauses(walked)) return !done_;
  }
  return false;
}

// Applies losses up to the current offset; at the end of the stream, all losses.
void RecordDecoder::take_losses() {
  const std::uint64_t limit = position_ == bytes_.size() ? trace::kTscMax : position_;
  while (next_loss_ < stream_.losses.size() && stream_.losses[next_loss_].offset <= limit)
    open_gap(GapCause::LOST, stream_.losses[next_loss_++].cause);
}

void RecordDecoder::close_gap(std::uint64_t at, const std::uint64_t* to_ip) {
  if (!recovery_.is_open()) return;
  recovery_.close(at, to_ip);
  gap_end_ = at;
}

// Opens a gap. The IP after the last record becomes unknown.
void RecordDecoder::open_gap(GapCause cause, Status code) {
  // Closes a gap of missing code, because the new gap has another cause.
  if (recovery_.is_open() && recovery_.gap()->cause == GapCause::ERROR) close_gap(number(), nullptr);
  recovery_.open(gap_begin(), known_ ? &ip_ : nullptr, cause, code);
  known_ = false;
}

// Reports a bad record. `argument`: number of bytes of a truncated record. Successive bad records give one
// row.
void RecordDecoder::bad_record(const std::uint64_t* ip, std::uint64_t argument) {
  if (recovery_.is_open() && recovery_.gap()->code == Status::BAD_RECORD) return;
  recovery_.error(StreamSpan{number(), number()}, Status::BAD_RECORD, ip, argument, 0, nullptr);
  open_gap(GapCause::ERROR, Status::BAD_RECORD);
}

void RecordDecoder::take_record() {
  BranchRecord record;
  std::memcpy(&record, bytes_.data() + position_, kRecordBytes);
  follow_context();
  if (record.from_ip == 0 && record.to_ip == 0) return bad_record(nullptr, 0);
  if (!is_canonical(record.from_ip)) return bad_record(&record.from_ip, 0);
  if (!is_canonical(record.to_ip)) return bad_record(&record.to_ip, 0);
  if ((record.flags & trace::RECORD_FIRST) != 0) open_gap(GapCause::START, Status::OK);
  if (is_repeated(record)) return;
  const bool in_tx = (record.flags & trace::RECORD_IN_TX) != 0;
  walker_.set_in_tx(in_tx && in_tx_ && known_);
  follow(record);
  in_tx_ = in_tx;
  known_ = true;
  ip_ = record.to_ip;
  last_number_ = number();
  context_.set_mode(mode_after(record));
}

// The processor stored the record before twice: without another taken branch, the code does not lead from the
// branch's target to the branch.
bool RecordDecoder::is_repeated(const BranchRecord& record) {
  if ((record.flags & trace::RECORD_MAY_REPEAT) == 0 || !known_ || !has_code_) return false;
  BranchRecord before;
  std::memcpy(&before, bytes_.data() + position_ - kRecordBytes, kRecordBytes);
  if (record.from_ip != before.from_ip || record.to_ip != before.to_ip) return false;
  if (is_kernel(record.from_ip) != is_kernel(record.to_ip)) return false;
  // The stack has every taken branch.
  route_.has(BranchKind::JUMP);
  route_.has(BranchKind::CALL);
  return route_.find(ip_, record.from_ip) == Status::RECORD_MISMATCH;
}

// User code of another process or thread does not continue at the target of the last record.
void RecordDecoder::follow_context() {
  const Context before = context_.now();
  context_.apply_switches_up_to(number());
  context_.time_moved(number(), false);
  const bool same = context_.now().space == before.space && context_.now().tid == before.tid;
  if (!same && known_ && !is_kernel(ip_)) open_gap(GapCause::FILTERED, Status::OK);
}

// Follows the path from the target of the last record to this record, and over its branch.
void RecordDecoder::follow(const BranchRecord& record) {
  const bool there = has_code_ && ((known_ && follow_path_to(record)) || begin_at(record));
  if (!has_code_) close_gap(number(), &record.from_ip);
  if (!there) return emit(record, BranchKind::UNKNOWN);
  const BranchKind kind = kind_of(record);
  route_.has(kind);
  route_.emit(kind != BranchKind::ASYNC && kind != BranchKind::TX_ABORT);
  emit(record, kind);
}

// False: the path is unknown, and errors and gaps are emitted.
bool RecordDecoder::follow_path_to(const BranchRecord& record) {
  if (is_kernel(ip_) != is_kernel(record.from_ip)) {
    leave(record);
    return false;
  }
  const Status status = route_.find(ip_, record.from_ip);
  if (status == Status::OK) {
    close_gap(last_number_, &ip_);
    return true;
  }
  if (status != Status::RECORD_MISMATCH) {
    miss_code(status);
    return false;
  }
  close_gap(last_number_, &ip_);
  recovery_.error(walker_.span(), status, &record.from_ip, ip_, route_.ip(), nullptr);
  open_gap(GapCause::ERROR, status);
  return false;
}

// The privilege level changed without a record, because one of the levels is not recorded.
void RecordDecoder::leave(const BranchRecord& record) {
  const Status status = is_kernel(ip_) ? route_.find_exit(ip_) : route_.find_entry(ip_, record.to_ip);
  if (status == Status::RECORD_MISMATCH) return open_gap(GapCause::FILTERED, Status::OK);
  if (status != Status::OK) return miss_code(status);
  close_gap(last_number_, &ip_);
  route_.emit(route_.by_branch());
  const BranchKind kind = route_.by_branch() ? route_.block().branch : BranchKind::ASYNC;
  walker_.emit_branch(kind, route_.ip(), 0, FROM_KNOWN | TAKEN);
  known_ = false;
}

// Starts at the record's branch. False: the image has no code there.
bool RecordDecoder::begin_at(const BranchRecord& record) {
  if (!known_) context_.set_mode(mode_after(record));
  const Status status = route_.find(record.from_ip, record.from_ip);
  const bool goes_on = recovery_.is_open() && is_missing(recovery_.gap()->code);
  if (status == Status::OK || !goes_on) close_gap(number(), &record.from_ip);
  if (status == Status::OK) return true;
  // A branch between user and kernel code may come from a privilege level that is not recorded: missing code
  // is no error there.
  if (goes_on || is_kernel(record.from_ip) == is_kernel(record.to_ip)) miss_code(status);
  return false;
}

// The route leads to an instruction that cannot be decoded. Successive missing code gives one gap.
void RecordDecoder::miss_code(Status status) {
  const std::uint64_t ip = route_.ip();
  const bool goes_on = recovery_.is_open() && is_missing(recovery_.gap()->code) && route_.empty();
  if (!goes_on) {
    close_gap(last_number_, &ip_);
    route_.emit(false);
  }
  const std::int32_t region = walker_.view().provenance(ip).region;
  if (!goes_on || (region >= 0 && region != missed_))
    recovery_.error(walker_.span(), status, &ip, 0, 0, &walker_.view());
  missed_ = region;
  recovery_.open(gap_begin(), &ip, GapCause::ERROR, status);
  known_ = false;
}

// The instruction at the route's end is that of the record, or it did not execute.
BranchKind RecordDecoder::kind_of(const BranchRecord& record) const noexcept {
  if ((record.flags & trace::RECORD_ABORT) != 0) return BranchKind::TX_ABORT;
  if (!route_.at_branch()) return BranchKind::ASYNC;
  const BasicBlock& block = route_.block();
  switch (block.end) {
    case Terminator::COND:
    case Terminator::JUMP:
    case Terminator::CALL:
      return record.to_ip == block.target ? block.branch : BranchKind::ASYNC;
    case Terminator::RETURN:
    case Terminator::INDIRECT:
      // Near branches do not change the privilege level.
      return is_kernel(record.to_ip) && !is_kernel(record.from_ip) ? BranchKind::ASYNC : block.branch;
    default:
      return block.branch;
  }
}

void RecordDecoder::emit(const BranchRecord& record, BranchKind kind) {
  walker_.set_in_tx((record.flags & trace::RECORD_IN_TX) != 0);
  walker_.emit_branch(kind, record.from_ip, record.to_ip, row_flags(record));
}

}  // namespace ptkit::flow
