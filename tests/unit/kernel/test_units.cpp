// kernel/common/pt_units.h: the life of a session's traces, over a driver whose units fail on request.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>

#include "common/pt_units.h"
#include "ptkit/rtit_regs.h"

namespace {

// What a driver keeps of a trace, around what kernel/common has of it.
struct DriverTrace {
  char name = 'a';
  pt_trace pt = {};
  int load_error = 0;
  bool sticks = false;  // it cannot be stopped
  bool taken = false;   // another session has its unit
};

DriverTrace& of(pt_trace* trace) {
  return *reinterpret_cast<DriverTrace*>(reinterpret_cast<char*>(trace) - offsetof(DriverTrace, pt));
}

// Calls of the driver: a letter for the call, then the trace. No call may come without the lock.
std::string calls;
bool locked = false;

void note(char call, pt_trace* trace) {
  EXPECT_TRUE(locked);
  calls += {call, of(trace).name, ' '};
}

void lock() {
  EXPECT_FALSE(locked);
  locked = true;
}

void unlock() {
  EXPECT_TRUE(locked);
  locked = false;
}

int own(pt_trace* trace) {
  note('o', trace);
  return of(trace).taken ? PT_E_OWNED : 0;
}

void disown(pt_trace* trace) { note('d', trace); }

void load(pt_trace* trace) {
  note('l', trace);
  if (!trace->error) trace->error = of(trace).load_error;
  trace->running = trace->error == 0;
}

void unload(pt_trace* trace) {
  note('u', trace);
  trace->running = trace->running && of(trace).sticks;
  if (trace->running) trace->error = PT_E_FAULT;
}

class Units : public testing::Test {
 protected:
  Units() {
    calls.clear();
    locked = false;
    char name = 'a';
    for (DriverTrace& trace : traces_) {
      trace.name = name++;
      trace.pt.memory.single_range = true;
      trace.pt.memory.bytes = trace.pt.memory.used = 4096;
      trace.pt.memory.regions = &region_;
      trace.pt.memory.region_count = 1;
    }
    state_.ctl = 5;
  }

  int start(std::uint32_t* tried = nullptr) { return pt_units_start(&units_, &first(), 3, &state_, tried); }
  int stop() { return pt_units_stop(&units_, &first(), 3); }
  int pause() { return pt_units_pause(&units_, &first(), 3); }
  int resume(bool restarts) { return pt_units_resume(&units_, &first(), 3, restarts); }
  [[nodiscard]] bool any_started() { return pt_units_any_started(&units_, &first(), 3); }
  // Calls since the last time.
  static std::string since() {
    std::string found;
    found.swap(calls);
    return found;
  }
  pt_trace& first() { return traces_[0].pt; }
  pt_trace& second() { return traces_[1].pt; }

  pt_units units_ = {.stride = sizeof(DriverTrace),
                     .lock = lock,
                     .unlock = unlock,
                     .own = own,
                     .disown = disown,
                     .load = load,
                     .unload = unload,
                     .is_shared = nullptr};
  std::array<DriverTrace, 3> traces_;
  pt_region region_ = {.base = 0x200000, .bytes = 4096};
  pt_state state_ = {};
};

TEST_F(Units, StartsAndStopsAllTraces) {
  std::uint32_t tried = 0;
  ASSERT_EQ(start(&tried), 0);
  EXPECT_EQ(tried, 3U);
  EXPECT_EQ(since(), "oa la ob lb oc lc ");
  for (const DriverTrace& trace : traces_) {
    EXPECT_TRUE(trace.pt.started && trace.pt.wanted && trace.pt.running);
    EXPECT_EQ(trace.pt.state.ctl, 5U);
    EXPECT_EQ(trace.pt.state.output_base, region_.base);
  }
  ASSERT_EQ(stop(), 0);
  EXPECT_EQ(since(), "ua da ub db uc dc ");
  EXPECT_FALSE(any_started());
  EXPECT_FALSE(first().wanted || first().running);
  ASSERT_EQ(stop(), 0);
  EXPECT_EQ(since(), "");
}

TEST_F(Units, RefusedStartReleasesWhatWasStarted) {
  traces_[1].taken = true;
  std::uint32_t tried = 0;
  EXPECT_EQ(start(&tried), PT_E_OWNED);
  EXPECT_EQ(tried, 2U);
  EXPECT_EQ(since(), "oa la ob ua da ");
  EXPECT_FALSE(any_started());
}

TEST_F(Units, StartThatFaultsReleasesItsTraceToo) {
  traces_[1].load_error = PT_E_BUSY;
  EXPECT_EQ(start(), PT_E_BUSY);
  EXPECT_EQ(since(), "oa la ob lb ua da ub db ");
  EXPECT_FALSE(any_started());
  traces_[1].load_error = 0;
  region_.base = 1;  // no register can have it
  EXPECT_EQ(start(), PT_E_INVALID);
  EXPECT_EQ(since(), "oa ua da ");
}

TEST_F(Units, TraceThatCannotBeStoppedStaysStarted) {
  ASSERT_EQ(start(), 0);
  traces_[1].sticks = true;
  since();
  EXPECT_EQ(stop(), PT_E_FAULT);
  EXPECT_EQ(since(), "ua da ub uc dc ");
  EXPECT_TRUE(any_started() && second().started && second().running);
  EXPECT_FALSE(first().started || second().wanted);
  pt_units_give_up(&units_, &first(), 3);
  EXPECT_EQ(since(), "ub db ");
  EXPECT_FALSE(any_started());
  EXPECT_TRUE(second().running);
}

TEST_F(Units, PauseGoesOnAfterAnError) {
  ASSERT_EQ(start(), 0);
  since();
  first().error = PT_E_UNIT;
  second().error = PT_E_FOREIGN;
  EXPECT_EQ(pause(), PT_E_UNIT);
  EXPECT_EQ(since(), "ua ub uc ");
  for (const DriverTrace& trace : traces_) EXPECT_FALSE(trace.pt.wanted || trace.pt.running);
  EXPECT_TRUE(any_started());
}

TEST_F(Units, ResumeRestartsTracesWithAnErrorOnRequestOnly) {
  ASSERT_EQ(start(), 0);
  first().error = PT_E_UNIT;
  first().state.status = std::uint64_t{1} << PT_STATUS_ERROR;
  pause();
  since();
  EXPECT_EQ(resume(false), PT_E_UNIT);
  EXPECT_EQ(since(), "la lb lc ");
  EXPECT_FALSE(first().running);
  EXPECT_TRUE(second().running && second().wanted);
  pause();
  since();
  EXPECT_EQ(resume(true), 0);
  EXPECT_EQ(since(), "la lb lc ");
  EXPECT_TRUE(first().running);
  EXPECT_EQ(first().state.status, 0U);
}

TEST_F(Units, RestartStopsATraceThatOthersStartAndStop) {
  ASSERT_EQ(start(), 0);
  since();
  EXPECT_EQ(resume(true), 0);
  EXPECT_EQ(since(), "ua la ub lb uc lc ");
  units_.is_shared = [](const pt_trace* trace) { return of(const_cast<pt_trace*>(trace)).name == 'b'; };
  first().state.status = std::uint64_t{1} << PT_STATUS_STOPPED;
  EXPECT_EQ(resume(true), 0);
  EXPECT_EQ(since(), "la ub lb lc ");
  // It runs: its registers, and what was read from them, are the processor's.
  EXPECT_EQ(first().state.status, std::uint64_t{1} << PT_STATUS_STOPPED);
}

TEST_F(Units, ConsumingRunsATraceThatWaitedForTheReader) {
  ASSERT_EQ(start(), 0);
  since();
  first().wakes_up = true;
  first().head = 100;
  EXPECT_EQ(pt_units_consume(&units_, &first(), 101), PT_E_INVALID);
  EXPECT_EQ(since(), "");
  first().running = false;
  EXPECT_EQ(pt_units_consume(&units_, &first(), 60), 0);
  EXPECT_EQ(first().tail, 60U);
  EXPECT_EQ(since(), "la ");
  EXPECT_TRUE(first().running);
  pause();
  since();
  EXPECT_EQ(pt_units_consume(&units_, &first(), 100), 0);
  EXPECT_EQ(since(), "");
  EXPECT_FALSE(first().running || locked);
}

}  // namespace
