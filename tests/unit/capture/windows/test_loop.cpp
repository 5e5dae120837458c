#include <gtest/gtest.h>

#include <deque>

#include "capture/windows/loop.h"
#include "formats/registry.h"
#include "unit/capture/windows/fake_device.h"
#include "unit/capture/windows/fake_events.h"
#include "unit/support/scratch.h"

namespace ptkit::capture {
namespace {

using namespace test;

// Gives events in order, one each step of its clock, and then the end of the process.
class FakeHost final : public LoopHost {
 public:
  std::deque<LoopEvent> events;
  std::uint64_t step_ms = 50;
  std::uint64_t now = 1000;
  std::vector<std::uint64_t> shown;        // what progress() was told
  std::function<void(LoopEvent)> on_wait;  // before the event is handled
  std::optional<base::Failure> failure;    // after all events

  base::Result<LoopEvent> wait() override {
    now += step_ms;
    LoopEvent event = LoopEvent::PROCESS_ENDED;
    if (!events.empty()) {
      event = events.front();
      events.pop_front();
    } else if (failure) {
      return *failure;
    }
    if (on_wait) on_wait(event);
    return event;
  }
  std::uint64_t now_ms() const override { return now; }
  void progress(std::uint64_t trace_bytes) override { shown.push_back(trace_bytes); }
};

class WindowsLoopTest : public testing::Test {
 protected:
  WindowsLoopTest() {
    RecordOptions& record = options_.record;
    record.argv = {"a.exe"};
    record.output = scratch_.at("trace.ptk");
    record.timing.emplace();
    record.mtc_period = 3;
    record.buffer = 65536;
  }

  void begin() {
    session_.emplace(device_, images_, events_, options_, WindowsMachine{"Windows 10", {2}});
    const auto failure = session_->prepare();
    ASSERT_FALSE(failure) << failure->detail;
    const auto refused = session_->begin(4711, {1, 2, 3});
    ASSERT_FALSE(refused) << refused->detail;
    device_.requests.clear();
  }

  // Requests to the driver of these numbers, in order.
  std::vector<std::uint32_t> asked(std::initializer_list<std::uint32_t> codes) const {
    std::vector<std::uint32_t> out;
    for (const std::uint32_t code : device_.requests) {
      if (std::find(codes.begin(), codes.end(), code) != codes.end()) out.push_back(code);
    }
    return out;
  }

  formats::test::Scratch scratch_;
  FakeWindows device_;
  FakeImages images_;
  FakeEvents events_;
  WindowsOptions options_;
  FakeHost host_;
  std::optional<WindowsSession> session_;
};

TEST_F(WindowsLoopTest, EndsWithTheProcessAndWritesWhatIsNew) {
  begin();
  host_.events = {LoopEvent::NOTHING, LoopEvent::NOTHING};
  host_.on_wait = [&](LoopEvent) { device_.write(0, bytes_from(100, 1)); };
  WindowsLoop loop(*session_, host_, 0);
  EXPECT_FALSE(loop.run());
  EXPECT_EQ(session_->trace_bytes(), 300U);  // that of the last wait, too
  EXPECT_FALSE(loop.interrupted());
  EXPECT_FALSE(loop.limited());
}

TEST_F(WindowsLoopTest, OnlyAStopInterrupts) {
  begin();
  host_.events = {LoopEvent::STOP, LoopEvent::SNAPSHOT};
  WindowsLoop stopped(*session_, host_, 0);
  EXPECT_FALSE(stopped.run());
  EXPECT_TRUE(stopped.interrupted());
  EXPECT_EQ(host_.events.size(), 1U);
  host_.events = {LoopEvent::DETACH, LoopEvent::SNAPSHOT};
  WindowsLoop detached(*session_, host_, 0);
  EXPECT_FALSE(detached.run());
  EXPECT_FALSE(detached.interrupted());
  EXPECT_EQ(host_.events.size(), 1U);
}

TEST_F(WindowsLoopTest, PausesAndResumesTheDriver) {
  begin();
  host_.events = {LoopEvent::PAUSE, LoopEvent::NOTHING, LoopEvent::RESUME};
  WindowsLoop loop(*session_, host_, 0);
  EXPECT_FALSE(loop.run());
  const std::vector<std::uint32_t> both{PTKIT_WINDOWS_PAUSE, PTKIT_WINDOWS_RESUME};
  EXPECT_EQ(asked({PTKIT_WINDOWS_PAUSE, PTKIT_WINDOWS_RESUME}), both);
}

TEST_F(WindowsLoopTest, KeepsTheRingAtASnapshot) {
  options_.record.ring = 65536;
  options_.record.buffer = 0;
  begin();
  device_.write(0, bytes_from(500, 3));
  host_.events = {LoopEvent::SNAPSHOT};
  WindowsLoop loop(*session_, host_, 0);
  EXPECT_FALSE(loop.run());
  EXPECT_EQ(session_->trace_bytes(), 500U);
  EXPECT_FALSE(session_->stop({4, 5, 6}));
  const auto result = session_->finish(0);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().snapshots, 1U);
}

TEST_F(WindowsLoopTest, EndsAfterItsTime) {
  begin();
  host_.events.assign(100, LoopEvent::NOTHING);
  WindowsLoop loop(*session_, host_, 500);
  EXPECT_FALSE(loop.run());
  EXPECT_TRUE(loop.limited());
  EXPECT_EQ(host_.now, 1500U);
}

TEST_F(WindowsLoopTest, AStopAtTheLastMomentIsNoLimit) {
  begin();
  host_.events = {LoopEvent::STOP};
  host_.step_ms = 600;
  WindowsLoop loop(*session_, host_, 500);
  EXPECT_FALSE(loop.run());
  EXPECT_TRUE(loop.interrupted());
  EXPECT_FALSE(loop.limited());
}

TEST_F(WindowsLoopTest, TellsOfProgressFourTimesASecond) {
  begin();
  host_.events.assign(39, LoopEvent::NOTHING);  // with the end of the process: 2 s
  host_.on_wait = [&](LoopEvent) { device_.write(0, bytes_from(10, 1)); };
  WindowsLoop loop(*session_, host_, 0);
  EXPECT_FALSE(loop.run());
  ASSERT_EQ(host_.shown.size(), 8U);
  EXPECT_EQ(host_.shown.front(), 10U);
  EXPECT_EQ(host_.shown[1], 60U);
}

TEST_F(WindowsLoopTest, PassesOnWhatMadeAWaitFail) {
  begin();
  host_.events = {LoopEvent::NOTHING};
  host_.failure = base::Failure{base::Status::IO_ERROR, 0, "cannot wait"};
  WindowsLoop loop(*session_, host_, 0);
  const auto failure = loop.run();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->detail, "cannot wait");
}

TEST_F(WindowsLoopTest, SaysThatTheDriverDoesNotPause) {
  begin();
  device_.refusals[PTKIT_WINDOWS_PAUSE].reason = PTKIT_REASON_STATE;
  host_.events = {LoopEvent::PAUSE};
  WindowsLoop loop(*session_, host_, 0);
  const auto failure = loop.run();
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->detail.find("the driver does not pause"), std::string::npos) << failure->detail;
}

}  // namespace
}  // namespace ptkit::capture
