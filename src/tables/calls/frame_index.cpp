#include "tables/calls/frame_index.h"

#include <algorithm>

namespace ptkit::tables::calls {
namespace {

template <typename Note>
[[nodiscard]] const Note* find(const std::vector<Note>& notes, std::uint64_t id) noexcept {
  const auto found =
      std::lower_bound(notes.begin(), notes.end(), id,
                       [](const Note& note, std::uint64_t wanted) { return note.id < wanted; });
  return found != notes.end() && found->id == id ? &*found : nullptr;
}

template <typename Note>
void append_sorted(std::vector<Note>& notes, std::vector<Note>& next, std::uint64_t first_id) {
  std::sort(next.begin(), next.end(), [](const Note& a, const Note& b) { return a.id < b.id; });
  for (Note& note : next) note.id += first_id;
  notes.insert(notes.end(), next.begin(), next.end());
}

}  // namespace

void FrameIndex::add(const Frame& frame) {
  const bool has_parent = (frame.flags & FRAME_PARENT) != 0;
  if (!has_parent || frame.parent > frame.id) bottoms_.push_back({frame.id, frame.segment});
  segments_ = std::max(segments_, frame.segment);
  if (frame.is_far) far_.push_back({frame.id});
  if ((frame.flags & FRAME_RECURSIVE) != 0) return;
  if (frame.new_instructions != frame.instructions || frame.new_branches != frame.branches)
    shares_.push_back({frame.id, frame.new_instructions, frame.new_branches});
}

void FrameIndex::append(FrameIndex&& next, std::uint64_t frames) {
  for (Bottom& bottom : next.bottoms_) bottom.segment += segments_;
  append_sorted(bottoms_, next.bottoms_, frames_);
  append_sorted(shares_, next.shares_, frames_);
  append_sorted(far_, next.far_, frames_);
  segments_ += next.segments_;
  frames_ += frames;
}

FrameIndex::Share FrameIndex::share_of(const Frame& frame) const noexcept {
  if ((frame.flags & FRAME_RECURSIVE) != 0) return {frame.id, 0, 0};
  const Share* const known = find(shares_, frame.id);
  return known != nullptr ? *known : Share{frame.id, frame.instructions, frame.branches};
}

bool FrameIndex::is_far(std::uint64_t id) const noexcept { return find(far_, id) != nullptr; }

const FrameIndex::Bottom* FrameIndex::bottom_of(std::uint64_t id) const noexcept {
  return find(bottoms_, id);
}

}  // namespace ptkit::tables::calls
