#include "capture/block_encoder.h"

#include <csignal>
#include <utility>

#include "capture/block_encoder_state.h"

namespace ptkit::capture {

namespace {

// Signals that an instruction brings on itself.
bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP;
}

}  // namespace

BlockEncoder::BlockEncoder(const softpt::UnitConfig& config, const GuestCode& code,
                           softpt::PtUnit::Output sink, BlockTruth truth, const AddressFilter* filter,
                           Watcher watcher)
    : state_(std::make_unique<State>(config, code, std::move(sink), std::move(truth), filter,
                                     std::move(watcher))) {}
BlockEncoder::~BlockEncoder() = default;
BlockEncoder::BlockEncoder(BlockEncoder&&) noexcept = default;
BlockEncoder& BlockEncoder::operator=(BlockEncoder&&) noexcept = default;

void BlockEncoder::blocks(std::span<const std::uint32_t> numbers, std::uint64_t tsc, std::uint64_t tsc_end,
                          std::span<const std::uint64_t> true_times) {
  if (numbers.empty()) return;
  const std::uint64_t span = tsc_end > tsc ? tsc_end - tsc : 0;
  const auto moment = [&](std::size_t i) {
    const std::uint64_t at = tsc + span / numbers.size() * i;
    return State::Moment{at, i < true_times.size() ? true_times[i] : at};
  };
  state_->look_at_filter();
  if (!state_->cyc) return state_->tell_line(numbers, moment);
  // Every packet tells a time.
  for (std::size_t i = 0; i < numbers.size(); ++i)
    state_->tell_line(numbers.subspan(i, 1), [&](std::size_t) { return moment(i); });
}

void BlockEncoder::block(std::uint32_t number, std::uint64_t tsc) { blocks({&number, 1}, tsc, tsc); }

void BlockEncoder::interrupted(std::uint64_t ip, std::uint64_t tsc) {
  State& state = *state_;
  if (state.interruption) state.interrupt(*std::exchange(state.interruption, std::nullopt), false);
  state.interruption = {ip, tsc};
}

void BlockEncoder::resumed(std::uint64_t ip, std::uint64_t tsc, int signal) {
  State& state = *state_;
  const auto at = std::exchange(state.interruption, std::nullopt);
  if (at && signal == 0 && at->ip == ip) return;
  if (at) state.interrupt(*at, is_fault(signal));
  state.reach(tsc);
}

void BlockEncoder::syscall(std::uint64_t tsc) {
  State& state = *state_;
  state.interruption.reset();
  state.reach(tsc, [&](const State::Moment& ended) {
    const GuestBlock* const block = state.take_last();
    if (block == nullptr) return;
    state.retire_all(*block, block->next, ended);
    if (!state.unit.inside()) return;
    ++state.unexplained;
    state.unit.interrupted(block->next);
  });
}

void BlockEncoder::syscall_end(std::uint64_t tsc) { state_->reach(tsc); }

void BlockEncoder::flush() {
  state_->close_lane();
  state_->unit.unit().flush();
}

void BlockEncoder::end(std::uint64_t tsc) { state_->finish(tsc); }

std::uint64_t BlockEncoder::instructions() const noexcept { return state_->instructions; }
std::uint64_t BlockEncoder::branches() const noexcept { return state_->branches; }
std::uint64_t BlockEncoder::bytes() const noexcept {
  return state_->unit.unit().bytes_written() + (state_->lane_open ? state_->lane.bytes() : 0);
}
std::uint64_t BlockEncoder::unexplained() const noexcept { return state_->unexplained; }
bool BlockEncoder::truth_failed() const noexcept {
  return state_->truth.instructions.failed() || state_->truth.branches.failed();
}

}  // namespace ptkit::capture
