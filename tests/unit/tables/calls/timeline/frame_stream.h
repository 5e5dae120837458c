// Frames of a stream that a test opens and closes by hand, and slices of a timeline as a list.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tables/calls/timeline/frame_timeline.h"

namespace ptkit::tables::calls {

inline constexpr std::uint32_t kFunction = kFirstFunction;  // the first one of a FunctionTable

[[nodiscard]] inline Owner thread_owner(std::int64_t tid) {
  Owner owner;
  owner.pid = 1;
  owner.tid = tid;
  return owner;
}

// A table with this many functions, of which the first one is kFunction.
[[nodiscard]] inline FunctionTable functions_of(std::uint64_t count, std::uint64_t first_entry = 0x1000) {
  FunctionTable functions;
  for (std::uint64_t i = 0; i < count; ++i) {
    Function function;
    function.entry_ip = first_entry + i;
    static_cast<void>(functions.number(function));
  }
  return functions;
}

// Each frame executes as many instructions as it takes ticks, and half as many branches.
class FrameStream {
 public:
  explicit FrameStream(FrameSink& sink) : sink_(sink) {}

  std::uint64_t open(std::uint64_t begin, std::uint32_t function = kFunction, std::int64_t tid = 1,
                     CallKind how = CallKind::CALL) {
    std::vector<Frame>& stack = stacks_[tid];
    Frame frame;
    frame.id = next_++;
    frame.function = function;
    frame.how = stack.empty() ? CallKind::ROOT : how;
    frame.flags = FRAME_EXACT | FRAME_BEGIN_SEEN | FRAME_TIME_KNOWN | FRAME_END_TIME_KNOWN;
    if (!stack.empty()) {
      frame.parent = stack.back().id;
      frame.flags |= std::uint16_t{FRAME_PARENT};
    }
    frame.depth = static_cast<std::int32_t>(stack.size());
    frame.begin = at(begin);
    stack.push_back(frame);
    return frame.id;
  }
  Frame& top(std::int64_t tid = 1) { return stacks_[tid].back(); }
  void close(std::uint64_t end, std::int64_t tid = 1, bool is_hidden = false) {
    Frame frame = stacks_[tid].back();
    stacks_[tid].pop_back();
    frame.end = at(end);
    frame.end.tsc_error = frame.begin.tsc_error;
    frame.instructions = end - frame.begin.tsc;
    frame.branches = frame.end.branches - frame.begin.branches;
    if (is_hidden) return sink_.on_hidden(frame);
    sink_.on_frame(frame, thread_owner(tid));
  }
  void call(std::uint64_t begin, std::uint64_t end, std::uint32_t function = kFunction,
            std::int64_t tid = 1) {
    open(begin, function, tid);
    close(end, tid);
  }
  [[nodiscard]] std::uint64_t frames() const { return next_; }

 private:
  [[nodiscard]] static StreamPosition at(std::uint64_t tsc) {
    StreamPosition position;
    position.tsc = tsc;
    position.instructions = tsc;
    position.branches = tsc / 2;
    position.time_known = true;
    return position;
  }

  FrameSink& sink_;
  std::map<std::int64_t, std::vector<Frame>> stacks_;
  std::uint64_t next_ = 0;
};

// A timeline of streams, one after the other.
class TimelineTest {
 public:
  explicit TimelineTest(std::size_t most = 0, TimelineAxis axis = TimelineAxis::TIME,
                        tables::columns::Selection selection = {})
      : timeline(axis, most), axis_(axis), most_(most), selection_(std::move(selection)) {
    next_stream();
  }
  void next_stream(std::uint64_t functions = 64, std::uint64_t first_entry = 0x1000) {
    end_stream();
    functions_ = functions_of(functions, first_entry);
    sink = std::make_unique<SliceSink>(axis_, selection_, most_);
    frames = std::make_unique<FrameStream>(*sink);
  }
  // After finish().
  [[nodiscard]] std::uint64_t frames_of_all() const { return first_id_; }
  FrameTimeline& finish() {
    end_stream();
    timeline.finish();
    return timeline;
  }

  FrameTimeline timeline;
  FunctionTable all;
  std::unique_ptr<SliceSink> sink;
  std::unique_ptr<FrameStream> frames;

 private:
  void end_stream() {
    if (sink == nullptr) return;
    timeline.add(*sink, streams_++, first_id_, functions_, all);
    first_id_ += sink->ids();
    sink.reset();
  }

  TimelineAxis axis_;
  std::size_t most_;
  tables::columns::Selection selection_;
  FunctionTable functions_;
  std::uint32_t streams_ = 0;
  std::uint64_t first_id_ = 0;
};

struct Shown {
  Slice slice;
  std::uint32_t depth = 0;
};

// Slices of a track by begin. Fails if they do not nest, or if positions descend.
class Slices final : public SliceVisitor {
 public:
  Slices(const FrameTimeline& timeline, std::size_t track) {
    timeline.visit(track, *this);
    EXPECT_TRUE(open_.empty());
  }
  void begin(const Slice& slice, std::uint32_t depth) override {
    go_to(slice.begin);
    EXPECT_EQ(depth, open_.size());
    EXPECT_LE(slice.begin, slice.end);
    EXPECT_LE(slice.end, open_.empty() ? UINT64_MAX : open_.back().end);
    open_.push_back(slice);
    shown.push_back({slice, depth});
  }
  void end(const Slice& slice, std::uint32_t depth) override {
    go_to(slice.end);
    ASSERT_FALSE(open_.empty());
    EXPECT_EQ(depth + 1, open_.size());
    EXPECT_EQ(slice.id, open_.back().id);
    EXPECT_EQ(slice.end, open_.back().end);
    open_.pop_back();
  }
  // "depth:begin-end" of each, and "*calls" of merged ones.
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const Shown& one : shown) {
      text += (text.empty() ? "" : " ") + std::to_string(one.depth) + ":" + std::to_string(one.slice.begin) +
              "-" + std::to_string(one.slice.end);
      if (one.slice.is_merged()) text += "*" + std::to_string(one.slice.calls);
    }
    return text;
  }

  std::vector<Shown> shown;

 private:
  void go_to(std::uint64_t position) {
    EXPECT_GE(position, position_);
    position_ = position;
  }

  std::vector<Slice> open_;
  std::uint64_t position_ = 0;
};

}  // namespace ptkit::tables::calls
