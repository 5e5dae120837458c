#include "tables/calls/timeline/frame_timeline.h"

#include <algorithm>

#include "base/node_bytes.h"
#include "tables/calls/timeline/stack_tracks.h"

namespace ptkit::tables::calls {

std::uint32_t FrameTimeline::thread_of(const Owner& owner, std::uint32_t stream) {
  const bool is_of_stream = axis_ == TimelineAxis::INSTRUCTIONS || owner.tid == trace::kNoId;
  const Key key{key_of(owner), is_of_stream ? stream : UINT32_MAX};
  const auto [found, is_new] = numbers_.emplace(key, static_cast<std::uint32_t>(threads_.size()));
  if (is_new) threads_.push_back({owner, {}, false});
  return found->second;
}

// Of nodes from `first` on.
void FrameTimeline::renumber(NodeNumber first, std::uint64_t first_id, const FunctionTable& from,
                             FunctionTable& to) {
  std::vector<std::uint32_t> numbers(from.size());
  for (NodeNumber number = first; number < nodes_.end(); ++number) {
    SliceNode& node = nodes_[number];
    node.id = (node.id + first_id) & SliceNode::kMostShort;
    if (node.function < kFirstFunction) continue;
    std::uint32_t& function = numbers[node.function];
    if (function == 0) function = to.number(from.at(node.function));
    node.function = function;
  }
}

void FrameTimeline::note(const SliceSink& sink) {
  const SliceReducer& reducer = sink.reducer();
  facts_.without_times += sink.counts().without_times;
  reducer_.leave_out(reducer.left_out(), reducer.deepest());
  if (reducer.rules().limits() == MergeLimits{}) return;
  facts_.is_whole = false;
  of_one_ = std::min(of_one_, sink.slowest());
}

void FrameTimeline::add(SliceSink& sink, std::uint32_t stream, std::uint64_t first_id,
                        const FunctionTable& from, FunctionTable& to) {
  sink.finish();
  note(sink);
  const NodeNumber offset = nodes_.take_all(std::move(sink.nodes()));
  renumber(offset + 1, first_id, from, to);
  for (SliceSink::Thread& thread : sink.threads()) {
    Part part{{}, std::move(thread.bands), std::move(thread.branches), stream, UINT64_MAX, 0};
    for (SliceList list : thread.roots.lists()) {
      if (list.nodes == kNoNode) continue;
      list.nodes += offset;
      part.roots.push_back(list);
    }
    if (part.roots.empty()) continue;
    Thread& to_thread = threads_[thread_of(thread.owner, stream)];
    to_thread.has_stacks = to_thread.has_stacks || thread.has_stacks;
    to_thread.parts.push_back(std::move(part));
  }
  sink.threads().clear();
  if (most_ != 0 && nodes_.size() >= 2 * most_) static_cast<void>(reduce_to(most_, most_ + most_ / 4, {}));
}

std::vector<SliceList*> FrameTimeline::lists() {
  std::vector<SliceList*> found;
  for (SliceList& list : lists_) found.push_back(&list);
  for (Thread& thread : threads_) {
    for (Part& part : thread.parts) {
      for (SliceList& list : part.roots) found.push_back(&list);
    }
  }
  return found;
}

void FrameTimeline::compact() {
  if (nodes_.free_count() == 0) return;
  const std::vector<NodeNumber> moved = nodes_.compact();
  for (SliceList* const list : lists()) list->nodes = moved[list->nodes];
}

// Calls that stayed whole so far are all in the tree, and no others can become so.
void FrameTimeline::find_slowest(std::size_t most) {
  slowest_ = SlowestCalls(most / 2);
  slowest_.limit(of_one_);
  for (NodeNumber number = 1; number < nodes_.end(); ++number) {
    const SliceNode& node = nodes_[number];
    if (node.calls == 1) slowest_.add(node.function, node.length(), node.id);
  }
}

bool FrameTimeline::finish(const SliceReducer::GoOn& go_on) {
  for (Thread& thread : threads_) {
    lay_out(thread);
    thread = {};
  }
  threads_.clear();
  numbers_.clear();
  return most_ == 0 || reduce(most_, go_on);
}

// Puts the roots of a thread on tracks, one for each stack that is needed.
void FrameTimeline::lay_out(Thread& thread) {
  std::vector<Root> roots;
  for (Part& part : thread.parts) {
    for (SliceList& list : part.roots) {
      while (list.nodes != kNoNode) {
        const NodeNumber node = nodes_.take_first(list.nodes);
        part.begin = std::min(part.begin, nodes_[node].begin);
        part.end = std::max(part.end, nodes_[node].end);
        roots.push_back({nodes_[node].begin, node, part.stream});
      }
    }
  }
  std::ranges::stable_sort(roots, {}, &Root::begin);
  const std::size_t first = tracks_.size();
  StackTracks stacks;
  for (const Root& root : roots) {
    const SliceNode& node = nodes_[root.node];
    const std::uint32_t stack = stacks.track_of(node.begin, node.begin_error, node.end);
    if (first + stack == tracks_.size()) {
      tracks_.push_back({thread.owner, root.stream, stack, {}, {}});
      lists_.emplace_back();
    }
    NodeNumber& list = lists_[first + stack].nodes;
    list = nodes_.append(list, nodes_.alone(root.node));
  }
  if (first < tracks_.size()) add_sides(thread, tracks_[first]);
}

void FrameTimeline::add_sides(Thread& thread, Track& track) {
  std::vector<BandLists::Part> bands;
  std::vector<const BranchPoints*> branches;
  for (Part& part : thread.parts) {
    bands.push_back({&part.bands, part.begin, part.end});
    branches.push_back(&part.branches);
  }
  BandLists& only = thread.parts.front().bands;
  BandLists joined = bands.size() == 1 ? std::move(only) : BandLists::joined(bands);
  track.bands = joined.all();
  facts_.merged_bands += joined.merged();
  if (thread.has_stacks) {
    ++facts_.without_counts;
  } else {
    track.counts = BranchPoints::joined(branches).points();
  }
}

void FrameTimeline::visit(std::size_t track, SliceVisitor& visitor) const {
  SliceWalk slices = walk(track);
  while (slices.next()) {
    if (slices.is_begin()) {
      visitor.begin(slices.slice(), slices.depth());
    } else {
      visitor.end(slices.slice(), slices.depth());
    }
  }
}

std::size_t FrameTimeline::slices(std::size_t first, std::size_t last) const {
  if (first == 0 && last == tracks_.size()) return nodes_.size();
  std::size_t sum = 0;
  for (std::size_t track = first; track < last; ++track) {
    SliceWalk slices = walk(track);
    while (slices.next()) sum += slices.is_begin() ? 1U : 0U;
  }
  return sum;
}

// Of `most` slices, half are for the slowest calls.
bool FrameTimeline::reduce_to(std::size_t most, std::size_t slices, const SliceReducer::GoOn& go_on) {
  const std::size_t before = nodes_.size();
  if (before <= slices) return true;
  find_slowest(most);
  const std::vector<SliceList*> found = lists();
  const bool is_done = reducer_.reduce(found, slices, go_on);
  of_one_ = slowest_.of_one();
  if (nodes_.size() < before) facts_.is_whole = false;
  compact();
  return is_done;
}

FrameTimeline::Facts FrameTimeline::facts() const {
  Facts facts = facts_;
  facts.slowest = facts.is_whole ? 0 : of_one_;
  facts.deepest = reducer_.deepest().whole();
  facts.too_deep = reducer_.left_out();
  for (std::size_t track = 0; track < tracks_.size(); ++track) {
    SliceWalk slices = walk(track);
    while (slices.next()) {
      const Slice& slice = slices.slice();
      if (!slices.is_begin()) continue;
      ++facts.slices;
      facts.calls += slice.calls;
      if (!slice.is_merged()) continue;
      ++facts.merged_slices;
      facts.merged_calls += slice.calls;
      facts.longest_merged = std::max(facts.longest_merged, slice.end - slice.begin);
    }
    facts.clamped += slices.clamped();
  }
  return facts;
}

std::uint64_t FrameTimeline::bytes() const noexcept {
  std::uint64_t sum = nodes_.bytes() + slowest_.bytes() + lists_.capacity() * sizeof(SliceList) +
                      numbers_.size() * base::node_bytes<decltype(numbers_)::value_type>();
  for (const Thread& thread : threads_) {
    for (const Part& part : thread.parts)
      sum += sizeof(Part) + part.roots.capacity() * sizeof(SliceList) + part.bands.bytes() +
             part.branches.bytes();
  }
  for (const Track& track : tracks_)
    sum +=
        sizeof(Track) + track.bands.capacity() * sizeof(Band) + track.counts.capacity() * sizeof(BranchCount);
  return sum;
}

}  // namespace ptkit::tables::calls
