#include "flow/record_decoder.h"

#include <algorithm>
#include <cstring>

namespace ptkit::flow {

using base::Status;
using trace::BranchRecord;

namespace {

constexpr std::uint64_t kRecordBytes = sizeof(BranchRecord);

// By the upper half of the address space, as all 64-bit systems have it.
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

insn::ExecMode mode_behind(const BranchRecord& record) noexcept {
  return (record.flags & trace::RECORD_CODE32) != 0 ? insn::ExecMode::BITS32 : insn::ExecMode::BITS64;
}

}  // namespace

RecordDecoder::RecordDecoder(const trace::Stream& stream, const trace::Configuration& configuration,
                             const image::Image& image, FlowSink& sink, time::TimeTrack* track,
                             CodeCachePool* pool)
    : StreamParts(stream, configuration, image, sink, track, pool),
      route_(walker_),
      has_code_(!image.empty()) {}

bool RecordDecoder::run() {
  if (!begun_) context_.start();
  begun_ = true;
  const std::uint64_t walked = walker_.instructions();
  while (!done_) {
    walker_.bound_memory();
    walker_.begin_packet(Place{position_, position_});
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
      close_gap(bytes_.size(), nullptr);
    }
    if (pauses(walked)) return !done_;
  }
  return false;
}

// Those up to here; at the end of the stream, all.
void RecordDecoder::take_losses() {
  const std::uint64_t limit = position_ == bytes_.size() ? trace::kTscMax : position_;
  while (next_loss_ < stream_.losses.size() && stream_.losses[next_loss_].offset <= limit)
    open_gap(GapCause::LOST, stream_.losses[next_loss_++].cause);
}

void RecordDecoder::close_gap(std::uint64_t offset, const std::uint64_t* to_ip) {
  if (!recovery_.is_open()) return;
  recovery_.close(offset, to_ip);
  gap_end_ = offset;
}

// Where execution went behind the last record is not known any more.
void RecordDecoder::open_gap(GapCause cause, Status code) {
  // A gap of missing code ends here: this one has another cause.
  if (recovery_.is_open() && recovery_.gap().cause == GapCause::ERROR) close_gap(position_, nullptr);
  recovery_.open(gap_begin(), known_ ? &ip_ : nullptr, cause, code);
  known_ = false;
}

// `argument`: how many bytes there are, where one is cut. One row for all that follow each other.
void RecordDecoder::bad_record(const std::uint64_t* ip, std::uint64_t argument) {
  if (recovery_.is_open() && recovery_.gap().code == Status::BAD_RECORD) return;
  recovery_.error(Place{position_, position_}, Status::BAD_RECORD, ip, argument, 0, nullptr);
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
  const bool in_tx = (record.flags & trace::RECORD_IN_TX) != 0;
  walker_.set_in_tx(in_tx && in_tx_ && known_);
  follow(record);
  in_tx_ = in_tx;
  known_ = true;
  ip_ = record.to_ip;
  last_offset_ = position_;
  context_.set_mode(mode_behind(record));
}

// User code of somebody else does not go on where the last record led.
void RecordDecoder::follow_context() {
  const Context before = context_.now();
  context_.reach(position_);
  context_.time_moved(position_, false);
  const bool same = context_.now().space == before.space && context_.now().tid == before.tid;
  if (!same && known_ && !is_kernel(ip_)) open_gap(GapCause::FILTERED, Status::OK);
}

// From where the last record led to this one, and over it.
void RecordDecoder::follow(const BranchRecord& record) {
  const bool there = has_code_ && ((known_ && go_on_to(record)) || begin_at(record));
  if (!has_code_) close_gap(position_, &record.from_ip);
  if (!there) return give(record, BranchKind::UNKNOWN);
  const BranchKind kind = kind_of(record);
  route_.has(kind);
  route_.give(kind != BranchKind::ASYNC && kind != BranchKind::TX_ABORT);
  give(record, kind);
}

// False: the way is not known, and what has to be said of that was said.
bool RecordDecoder::go_on_to(const BranchRecord& record) {
  if (is_kernel(ip_) != is_kernel(record.from_ip)) {
    leave(record);
    return false;
  }
  const Status status = route_.find(ip_, record.from_ip);
  if (status == Status::OK) {
    close_gap(last_offset_, &ip_);
    return true;
  }
  if (status != Status::RECORD_MISMATCH) {
    miss_code(status);
    return false;
  }
  close_gap(last_offset_, &ip_);
  recovery_.error(walker_.place(), status, &record.from_ip, ip_, route_.ip(), nullptr);
  open_gap(GapCause::ERROR, status);
  return false;
}

// The level of privilege has changed without a record: one of them is not recorded.
void RecordDecoder::leave(const BranchRecord& record) {
  const Status status = is_kernel(ip_) ? route_.find_exit(ip_) : route_.find_entry(ip_, record.to_ip);
  if (status == Status::RECORD_MISMATCH) return open_gap(GapCause::FILTERED, Status::OK);
  if (status != Status::OK) return miss_code(status);
  close_gap(last_offset_, &ip_);
  route_.give(route_.by_branch());
  const BranchKind kind = route_.by_branch() ? route_.run().branch : BranchKind::ASYNC;
  walker_.give_branch(kind, route_.ip(), 0, FROM_KNOWN | TAKEN);
  known_ = false;
}

// Execution was at the record's branch. False: there is no code.
bool RecordDecoder::begin_at(const BranchRecord& record) {
  if (!known_) context_.set_mode(mode_behind(record));
  const Status status = route_.find(record.from_ip, record.from_ip);
  const bool goes_on = recovery_.is_open() && is_missing(recovery_.gap().code);
  if (status == Status::OK || !goes_on) close_gap(position_, &record.from_ip);
  if (status == Status::OK) return true;
  // Nobody expects code of a level that is not recorded.
  if (goes_on || is_kernel(record.from_ip) == is_kernel(record.to_ip)) miss_code(status);
  return false;
}

// The route leads to where code cannot be decoded. Code that is missing for a while is one gap.
void RecordDecoder::miss_code(Status status) {
  const std::uint64_t ip = route_.ip();
  const bool goes_on = recovery_.is_open() && is_missing(recovery_.gap().code) && route_.empty();
  if (!goes_on) {
    close_gap(last_offset_, &ip_);
    route_.give(false);
  }
  const std::int32_t region = walker_.view().provenance(ip).region;
  if (!goes_on || (region >= 0 && region != missed_))
    recovery_.error(walker_.place(), status, &ip, 0, 0, &walker_.view());
  missed_ = region;
  recovery_.open(gap_begin(), &ip, GapCause::ERROR, status);
  known_ = false;
}

// The instruction at the route's end is that of the record, or it did not run.
BranchKind RecordDecoder::kind_of(const BranchRecord& record) const noexcept {
  if ((record.flags & trace::RECORD_ABORT) != 0) return BranchKind::TX_ABORT;
  if (!route_.at_branch()) return BranchKind::ASYNC;
  const Run& run = route_.run();
  switch (run.end) {
    case RunEnd::COND:
    case RunEnd::JUMP:
    case RunEnd::CALL:
      return record.to_ip == run.target ? run.branch : BranchKind::ASYNC;
    case RunEnd::RETURN:
    case RunEnd::INDIRECT:
      // Near branches do not change the level of privilege.
      return is_kernel(record.to_ip) && !is_kernel(record.from_ip) ? BranchKind::ASYNC : run.branch;
    default:
      return run.branch;
  }
}

void RecordDecoder::give(const BranchRecord& record, BranchKind kind) {
  walker_.set_in_tx((record.flags & trace::RECORD_IN_TX) != 0);
  walker_.give_branch(kind, record.from_ip, record.to_ip, row_flags(record));
}

}  // namespace ptkit::flow
