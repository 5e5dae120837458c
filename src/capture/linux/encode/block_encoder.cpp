#include "capture/linux/encode/block_encoder.h"

#include <csignal>
#include <utility>

#include "capture/linux/encode/block_encoder_state.h"

namespace ptkit::capture {

namespace {

// Signals that an instruction raises by a fault.
bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP;
}

}  // namespace

BlockEncoder::BlockEncoder(const trace_unit::generator::GeneratorConfig& config, const GuestCode& code,
                           trace_unit::generator::PacketGenerator::Output sink, BlockLogs logs,
                           const AddressFilter* filter, Watcher watcher)
    : state_(std::make_unique<State>(config, code, std::move(sink), std::move(logs), filter,
                                     std::move(watcher))) {}
BlockEncoder::~BlockEncoder() = default;
BlockEncoder::BlockEncoder(BlockEncoder&&) noexcept = default;
BlockEncoder& BlockEncoder::operator=(BlockEncoder&&) noexcept = default;

void BlockEncoder::blocks(std::span<const std::uint32_t> numbers, std::uint64_t tsc, std::uint64_t tsc_end,
                          std::span<const std::uint64_t> logged_times,
                          std::span<const std::uint64_t> logged_sps) {
  if (numbers.empty()) return;
  const std::uint64_t span = tsc_end > tsc ? tsc_end - tsc : 0;
  const auto time_of = [&](std::size_t i) {
    const std::uint64_t at = i == 0 ? tsc : tsc + span / numbers.size() * i;
    return State::BlockTime{at, i < logged_times.size() ? logged_times[i] : at,
                            i < logged_sps.size() ? logged_sps[i] : 0};
  };
  state_->update_rules();
  state_->encode_blocks(numbers, time_of);
}

void BlockEncoder::block(std::uint32_t number, std::uint64_t tsc) { blocks({&number, 1}, tsc, tsc); }

void BlockEncoder::interrupted(std::uint64_t ip, std::uint64_t tsc, std::uint64_t sp) {
  State& state = *state_;
  if (state.interruption) state.interrupt(*std::exchange(state.interruption, std::nullopt), false);
  state.interruption = {ip, tsc, sp};
}

void BlockEncoder::resumed(std::uint64_t ip, std::uint64_t tsc, int signal) {
  State& state = *state_;
  const auto at = std::exchange(state.interruption, std::nullopt);
  if (at && signal == 0 && at->ip == ip) return;
  if (at) state.interrupt(*at, is_fault(signal));
  if (at && signal != 0) state.logs.transfers.leave(TransferLog::kSignal, at->ip);
  state.advance_to(tsc);
}

void BlockEncoder::syscall(std::uint64_t tsc) {
  State& state = *state_;
  state.interruption.reset();
  state.advance_to(tsc, [&](const State::BlockTime& ended) {
    const GuestBlock* const block = state.take_last();
    if (block == nullptr) return;
    state.retire_all(*block, block->next, ended);
    state.leave_by_end(*block);
    if (!state.tracer.inside()) return;
    ++state.unexplained;
    state.tracer.interrupted(block->next);
  });
}

void BlockEncoder::syscall_end(std::uint64_t tsc) { state_->advance_to(tsc); }

void BlockEncoder::flush() {
  state_->close_fast_path();
  state_->tracer.generator().flush();
}

void BlockEncoder::end(std::uint64_t tsc) { state_->finish(tsc); }

std::uint64_t BlockEncoder::instructions() const noexcept { return state_->instructions; }
std::uint64_t BlockEncoder::branches() const noexcept { return state_->branches; }
std::uint64_t BlockEncoder::bytes() const noexcept {
  return state_->tracer.generator().bytes_written() +
         (state_->fast_path_open ? state_->fast_encoder.bytes() : 0);
}
std::uint64_t BlockEncoder::unexplained() const noexcept { return state_->unexplained; }
bool BlockEncoder::log_failed() const noexcept {
  const BlockLogs& logs = state_->logs;
  return logs.instructions.failed() || logs.branches.failed() || logs.transfers.failed();
}

}  // namespace ptkit::capture
