// Who runs, and which code is seen: address space and time choose the view, MODE.Exec the execution mode.
#pragma once

#include <cstddef>

#include "flow/sink.h"
#include "flow/walker.h"
#include "image/image.h"
#include "time/track.h"

namespace ptkit::flow {

class ContextTracker {
 public:
  ContextTracker(const trace::Stream& stream, const image::Image& image, time::TimeTrack* track,
                 FlowSink& sink, Walker& walker);

  void start();  // gives the first context row
  void set_mode(insn::ExecMode mode);
  void set_cr3(std::uint64_t offset, std::uint64_t cr3);  // PIP
  // Time may have moved with the packet at `offset`, behind which packets are on or off.
  void time_moved(std::uint64_t offset, bool on) {
    if (follows_time_) follow_time(offset, on);
  }
  [[nodiscard]] bool follows_time() const noexcept { return follows_time_; }
  // The packet at `offset` is next: who ran from there on may have been told by places.
  void reach(std::uint64_t offset) {
    if (offset >= switch_at_) switch_by_offset(offset);
  }
  [[nodiscard]] std::uint64_t next_switch_at() const noexcept { return switch_at_; }
  [[nodiscard]] const Context& now() const noexcept { return context_; }
  // Packets at offsets from `offset` up to the returned one move nothing but the time.
  [[nodiscard]] std::uint64_t quiet_until(std::uint64_t offset);

 private:
  friend struct CheckpointAccess;
  friend class FastFlow;

  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  void follow_time(std::uint64_t offset, bool on);
  void switch_by_offset(std::uint64_t offset);
  void find_switch_at() noexcept;
  void switch_by_cr3(std::uint64_t offset, std::uint64_t cr3);
  [[nodiscard]] bool tables_are_known(trace::SpaceId space) const;
  void take_switch(const trace::Switch& to);
  void set_space(std::uint64_t offset, trace::SpaceId space);
  void see();
  void give(std::uint64_t offset);

  const trace::Stream& stream_;
  const image::Image& image_;
  time::TimeTrack* track_;
  FlowSink& sink_;
  Walker& walker_;
  Context context_;
  insn::ExecMode mode_ = insn::ExecMode::BITS64;
  std::uint64_t tsc_ = trace::kTscMin;
  std::size_t next_switch_ = 0;
  std::uint64_t switch_at_ = kNever;  // offset of the next switch, where they are told by offset
  bool follows_time_ = false;
  bool has_pips_ = false;  // every change of page tables has a PIP: the kernel is traced
  bool user_only_ = false;
  bool knows_tables_ = false;             // of some process
  std::uint64_t stopped_ticks_ = kNever;  // an interval of this width has a stop of the clocks in it
  // What quiet_until() said, and until which time.
  std::uint64_t quiet_end_ = 0;
  std::uint64_t quiet_tsc_ = 0;
};

}  // namespace ptkit::flow
