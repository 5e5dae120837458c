// The open frames of one thread, innermost last. Gives frames to a FrameSink as they end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calls/code_facts.h"
#include "calls/frame.h"
#include "calls/frame_groups.h"

namespace ptkit::calls {

// Bits of an open frame beside those of FrameFlag.
enum OpenFlag : std::uint16_t {
  OPEN_STUB = 1,       // in a stub: the next jump leads to the function
  OPEN_RESOLVER = 2,   // the dynamic linker looks up the function
  OPEN_INNER = 4,      // called within its own function, as retpolines do
  OPEN_SETJMP = 8,     // setjmp(): where it returns to can be reached again
  OPEN_RESTORER = 16,  // a signal handler that has returned
  OPEN_KERNEL = 32,    // entered from user code
  OPEN_SWITCH = 64,    // continues on another stack
  OPEN_LEAVE = 128,    // the same, and leaves this one for good
};

struct OpenFrame {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
  std::uint64_t entry_ip = 0;
  std::uint64_t call_ip = 0;
  std::uint64_t return_ip = 0;
  std::uint64_t restart_ip = 0;  // signals within a system call: where it may be repeated
  std::uint64_t continues = 0;
  std::uint64_t inner_instructions = 0;  // of the frames above that have ended
  std::uint64_t known_instructions = 0;  // of those of the same function
  std::uint64_t known_branches = 0;
  Place begin;  // with counts of the thread
  std::uint32_t function = kUnknownFunction;
  std::uint32_t group = kUnknownFunction;
  std::int32_t depth = 0;
  std::uint32_t tails = 0;  // tail frames below that share the return address
  How how = How::ROOT;
  std::uint16_t flags = 0;  // FrameFlag
  std::uint16_t open = 0;   // OpenFlag

  [[nodiscard]] bool returns_to(std::uint64_t ip) const noexcept {
    return return_ip == ip && (flags & FRAME_RETURN) != 0;
  }
};

// Numbers of frames, which the threads of a stream share.
struct FrameIds {
  std::uint64_t next = 0;
};

class ThreadStack {
 public:
  ThreadStack(FrameIds& ids, FrameGroups* groups, FrameSink& sink, const Owner& owner)
      : ids_(ids), groups_(groups), sink_(sink), owner_(owner) {}

  [[nodiscard]] bool empty() const noexcept { return frames_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }
  [[nodiscard]] OpenFrame& top() noexcept { return frames_.back(); }
  [[nodiscard]] OpenFrame& at(std::size_t index) noexcept { return frames_[index]; }
  [[nodiscard]] const Owner& owner() const noexcept { return owner_; }
  void set_owner(const Owner& owner) noexcept { owner_ = owner; }

  // Opens a frame at the top. Its id, parent and depth are set here.
  OpenFrame& push(const OpenFrame& frame);
  // Ends the frame at the top.
  void pop(EndHow how, const Place& end);
  // Ends the frame at the top and those that jumped to it: all share the return address.
  void pop_chain(EndHow how, const Place& end);
  // Ends the frames from the top down to `size` frames. Frames are not exact any more unless `exact`.
  void pop_to(std::size_t size, EndHow how, const Place& end, bool exact);
  // Removes the frame at the top as if it never was. False: other frames came after it.
  [[nodiscard]] bool cancel();
  // Ends the last frames, which share a return address. They return to `caller`, which began before the
  // segment.
  void return_below(const OpenFrame& caller, const Place& end);
  // The following frames are of other executions: nothing is known of what is below them.
  void begin_segment(const Place& begin) noexcept;

  // Notes an address in the top frame that longjmp() may go to.
  void mark(std::uint64_t ip);
  struct Marked {
    std::size_t frame = 0;
    bool is_unique = true;
  };
  // The innermost frame with this mark.
  [[nodiscard]] bool find_mark(std::uint64_t ip, Marked& found) const noexcept;

  // Changes the function of the top frame, which has just begun.
  void set_function(std::uint64_t entry_ip, std::uint32_t function);
  // Where the next frame at the bottom begins: at the end of the frames before it.
  [[nodiscard]] const Place& bare_since() const noexcept { return bare_since_; }

 private:
  struct Mark {
    std::uint64_t ip = 0;
    std::size_t frame = 0;
  };
  struct Use {
    std::uint64_t instructions = 0;  // of frames that ended in the segment, each counted once
    std::uint64_t branches = 0;
    std::uint32_t segment = 0;
    std::uint32_t open = 0;  // frames
  };
  [[nodiscard]] Use& use_of(std::uint32_t group);
  [[nodiscard]] std::uint32_t group_of(const OpenFrame& frame);
  void push_below(OpenFrame frame);
  void emit(const OpenFrame& open, EndHow how, const Place& end);

  FrameIds& ids_;
  FrameGroups* groups_;  // null: by function
  FrameSink& sink_;
  Owner owner_;
  std::vector<OpenFrame> frames_;
  std::vector<Mark> marks_;  // by frame, innermost last
  std::vector<Use> uses_;    // by group
  std::uint32_t segment_ = 0;
  Place segment_begin_;
  Place bare_since_;
  std::int32_t bottom_depth_ = 0;
};

}  // namespace ptkit::calls
