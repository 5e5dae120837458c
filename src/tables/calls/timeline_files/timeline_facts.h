// Facts that files of timelines have beside the slices: names, times, notes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tables/calls/timeline/call_timeline.h"
#include "trace/bundle.h"

namespace ptkit::tables::calls {

// Names are UTF-8 without control characters.
struct FunctionName {
  std::string shown;  // no two functions have the same
  std::string full;
  std::string file;  // with the code; may be empty
};

struct ThreadName {
  std::string process;
  std::string thread;
};

// Positions of a timeline in nanoseconds.
class Positions {
 public:
  // An instruction is a nanosecond.
  Positions() = default;
  // TSC ticks; `first`: that of the trace's begin.
  Positions(const trace::Clock& clock, std::uint64_t first) noexcept;

  // From the begin of the trace. Ascends with the position.
  [[nodiscard]] std::uint64_t ns(std::uint64_t position) const noexcept;
  // Of a number of ticks.
  [[nodiscard]] std::uint64_t length_ns(std::uint64_t length) const noexcept;
  // The begin of the trace by the recorder's clock; 0 if that is negative.
  [[nodiscard]] std::uint64_t begin_ns() const noexcept {
    return begin_ns_ > 0 ? static_cast<std::uint64_t>(begin_ns_) : 0;
  }
  [[nodiscard]] bool is_time() const noexcept { return is_time_; }

 private:
  trace::Clock clock_;
  std::uint64_t first_ = 0;
  std::int64_t begin_ns_ = 0;
  bool is_time_ = false;
};

struct TimelineFacts {
  std::vector<FunctionName> functions;  // by number
  std::vector<ThreadName> threads;      // of each track
  Positions positions;
  // Names and texts for people: axis, recording, losses, what was merged.
  std::vector<std::pair<std::string, std::string>> notes;

  // "name: text" of all notes.
  [[nodiscard]] std::string joined_notes(std::string_view separator) const {
    std::string all;
    for (const auto& [name, text] : notes) {
      if (!all.empty()) all += separator;
      all.append(name).append(": ").append(text);
    }
    return all;
  }
  std::size_t most_rates = SIZE_MAX;  // of each track
};

// A track in files where a thread has one row of slices. The first track of a thread has its numbers. Others
// have numbers that no thread of the timeline has: stacks that a thread switches to, and streams on an axis
// of instructions.
struct FileTrack {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::size_t first = 0;   // track with the thread's own numbers; may be this one
  bool ids_known = false;  // of the thread
  std::string process;
  std::string name;
};

class FileTracks {
 public:
  FileTracks(const CallTimeline& timeline, const TimelineFacts& facts);

  [[nodiscard]] const FileTrack& at(std::size_t track) const noexcept { return tracks_[track]; }
  // A number that no thread has.
  [[nodiscard]] std::int64_t unused_tid() noexcept;

 private:
  [[nodiscard]] static std::string name_of(const Track& track, const std::string& thread, bool is_first);

  std::vector<FileTrack> tracks_;
  std::int64_t last_unused_;
};

// Bands of one kind in their order; they do not overlap.
inline constexpr std::size_t kBandKinds = 3;
[[nodiscard]] std::string_view band_name(Band::Kind kind) noexcept;
[[nodiscard]] std::array<std::vector<Band>, kBandKinds> bands_by_kind(const Track& track);

// Branches per microsecond, or per 1,000 instructions, from a position on.
struct BranchRate {
  std::uint64_t ns = 0;
  double rate = 0;
};
// At most `most` of them, and one at the end; if there are more, neighbours become one.
[[nodiscard]] std::vector<BranchRate> branch_rates(const Track& track, const Positions& positions,
                                                   std::size_t most = SIZE_MAX);
[[nodiscard]] std::string_view rate_name(const Positions& positions) noexcept;

// As tables have them.
[[nodiscard]] std::string_view text_of(CallKind how) noexcept;
[[nodiscard]] std::string_view text_of(CallEnd end_how) noexcept;

// Of a merged slice: its calls' share of it, at most 1.
[[nodiscard]] double covered_share(const Slice& slice) noexcept;
// Before the name of the longest call of a merged slice.
inline constexpr std::string_view kMerged = "merged: ";

}  // namespace ptkit::tables::calls
