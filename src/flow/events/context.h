// The running thread and its code. Address space and time select the view of memory, MODE.Exec selects the
// execution mode. Whether a stream's code or thread depends on time.
#pragma once

#include <cstddef>

#include "code/image/image.h"
#include "flow/rows/sink.h"
#include "flow/walk/walker.h"
#include "time/track.h"
#include "trace/bundle.h"

namespace ptkit::flow {

// State of the ContextTracker between two packets.
struct ContextState {
  Context thread;
  code::insn::ExecMode mode = code::insn::ExecMode::BITS64;
  std::uint64_t tsc = trace::kTscMin;  // time of the code
  std::size_t next_switch = 0;         // index in Stream::switches
};

class ContextTracker {
 public:
  ContextTracker(const trace::Stream& stream, const code::image::Image& image, time::TimeTrack* track,
                 FlowSink& sink, Walker& walker);

  void start();  // emits the first context row
  // The state between two packets. set_state() also selects the code, and emits a row at `offset`.
  [[nodiscard]] const ContextState& state() const noexcept { return state_; }
  void set_state(const ContextState& state, std::uint64_t offset);
  void set_mode(code::insn::ExecMode mode);
  void set_cr3(std::uint64_t offset, std::uint64_t cr3);  // PIP
  // The packet at `offset` may have advanced time. `on`: packets are enabled after it.
  void time_moved(std::uint64_t offset, bool on) {
    if (follows_time_) follow_time(offset, on);
  }
  [[nodiscard]] bool follows_time() const noexcept { return follows_time_; }
  // Applies context switches that were recorded for offsets up to `offset`, where the next packet is.
  void apply_switches_up_to(std::uint64_t offset) {
    if (offset >= switch_at_) switch_by_offset(offset);
  }
  [[nodiscard]] std::uint64_t next_switch_at() const noexcept { return switch_at_; }
  [[nodiscard]] const Context& now() const noexcept { return state_.thread; }
  // Returns the largest end such that packets in [offset, end) change neither code nor thread.
  [[nodiscard]] std::uint64_t unchanged_until(std::uint64_t offset);

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  void follow_time(std::uint64_t offset, bool on);
  void switch_by_offset(std::uint64_t offset);
  void find_switch_at() noexcept;
  void switch_by_cr3(std::uint64_t offset, std::uint64_t cr3);
  [[nodiscard]] bool page_tables_known(trace::SpaceId space) const;
  void take_switch(const trace::Switch& to);
  void set_space(std::uint64_t offset, trace::SpaceId space);
  void look_up_code();
  void emit_row(std::uint64_t offset);

  const trace::Stream& stream_;
  const code::image::Image& image_;
  time::TimeTrack* track_;
  FlowSink& sink_;
  Walker& walker_;
  ContextState state_;
  std::uint64_t switch_at_ = kNever;  // offset of the next context switch, if switches have offsets
  bool follows_time_ = false;
  bool has_pips_ = false;  // every change of page tables has a PIP, because the kernel is traced
  bool user_only_ = false;
  bool page_tables_known_ = false;        // the page tables of some process are known
  std::uint64_t stopped_ticks_ = kNever;  // the clocks stopped in an interval of at least this width
  // Cached result of unchanged_until(), and the TSC that it holds for.
  std::uint64_t unchanged_end_ = 0;
  std::uint64_t unchanged_tsc_ = 0;
};

// True if the code or the running thread depends on time. Such a stream can only be decoded from its start.
[[nodiscard]] bool changes_with_time(const trace::TraceBundle& bundle, const trace::Stream& stream) noexcept;

}  // namespace ptkit::flow
