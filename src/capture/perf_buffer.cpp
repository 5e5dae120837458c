#include "capture/perf_buffer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kPageBytes = 4096;

base::Failure impossible(int cpu, const char* what) {
  return {base::Status::UNSUPPORTED, 0,
          "processor " + std::to_string(cpu) + ": perf's " + what + " has impossible positions"};
}

perf_event_mmap_page& page_of(std::span<std::uint8_t> memory) {
  return *reinterpret_cast<perf_event_mmap_page*>(memory.data());
}

template <typename T>
std::uint64_t* counter(T& member) {  // the kernel's __u64 is another type of the same width
  static_assert(sizeof member == sizeof(std::uint64_t));
  return reinterpret_cast<std::uint64_t*>(&member);
}

}  // namespace

std::optional<PerfBuffer> PerfBuffer::map(PerfPort& port, int event, int tid, int cpu, const Sizes& sizes,
                                          int& error) {
  const PerfPort::Mapped first = port.map(event, 0, kPageBytes + sizes.records, true);
  error = first.error;
  if (first.bytes.empty()) return {};
  page_of(first.bytes).aux_offset = first.bytes.size();
  page_of(first.bytes).aux_size = sizes.trace;
  // Who may not write says that the kernel may overwrite what nobody has read.
  const PerfPort::Mapped trace = port.map(event, first.bytes.size(), sizes.trace, !sizes.ring);
  error = trace.error;
  if (trace.bytes.empty()) {
    port.unmap(first.bytes);
    return {};
  }
  PerfBuffer out(event, tid, cpu, sizes);
  out.attach(first.bytes, trace.bytes);
  return out;
}

void PerfBuffer::attach(std::span<std::uint8_t> first, std::span<std::uint8_t> trace) {
  page_ = first;
  memory_ = trace;
  perf_event_mmap_page& page = page_of(first);
  records_ =
      PerfRing(base::Bytes(first).subspan(kPageBytes), counter(page.data_head), counter(page.data_tail));
  trace_ = PerfRing(trace, counter(page.aux_head), counter(page.aux_tail));
  if (const auto clock = clock_of(page)) clock_ = *clock;
}

void PerfBuffer::unmap(PerfPort& port) {
  port.unmap(memory_);
  port.unmap(page_);
}

void PerfBuffer::set_attr(const formats::perf::Attr& attr, bool switches) {
  reader_.emplace(attr, clock_, switches);
}

PerfTold PerfBuffer::read_records() {
  PerfTold told;
  const std::uint64_t head = records_.head();
  const std::uint64_t tail = records_.tail();
  if (!records_.holds(head)) {
    ++told.bad;
  } else if (head != tail) {
    const std::vector<std::uint8_t> bytes = records_.copy(tail, head);
    // The kernel shows whole records only: what is left over is none.
    if (reader_->take(bytes, told) != bytes.size()) ++told.bad;
  }
  records_.release(head);
  return told;
}

// What is missing after a full buffer is missing behind what was written; other gaps are somewhere within.
void PerfBuffer::note(const AuxNote& note) {
  if ((note.flags & PERF_AUX_FLAG_TRUNCATED) != 0) {
    ++counts_.stops;
    losses_.push_back({note.begin + note.bytes, base::Status::BUFFER_FULL});
  }
  if ((note.flags & PERF_AUX_FLAG_PARTIAL) != 0) ++counts_.gaps;
  if ((note.flags & PERF_AUX_FLAG_COLLISION) != 0) ++counts_.collisions;
  if ((note.flags & (PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION)) != 0)
    losses_.push_back({note.begin, base::Status::NOT_TRACED});
}

void PerfBuffer::give(BundleOutput& output, std::uint64_t from, std::uint64_t to) {
  counts_.bytes += to - from;
  const auto write = [&](std::uint64_t begin, std::uint64_t end) {
    const PerfRing::Pieces pieces = trace_.pieces(begin, end);
    if (!pieces.first.empty()) output.data(stream_, pieces.first);
    if (!pieces.second.empty()) output.data(stream_, pieces.second);
  };
  std::stable_sort(losses_.begin(), losses_.end(),
                   [](const Loss& a, const Loss& b) { return a.place < b.place; });
  auto loss = losses_.begin();
  for (; loss != losses_.end() && loss->place <= to; ++loss) {
    const std::uint64_t place = std::max(loss->place, from);
    write(from, place);
    output.loss(stream_, 0, loss->cause);
    from = place;
  }
  losses_.erase(losses_.begin(), loss);
  write(from, to);
}

std::optional<base::Failure> PerfBuffer::drain(BundleOutput& output, std::vector<SystemRecord>& records,
                                               std::vector<std::uint64_t>& samples) {
  // The kernel writes the record of a piece of trace before it shows the piece.
  const std::uint64_t head = trace_.head();
  PerfTold told = read_records();
  counts_.lost_records += told.lost;
  counts_.bad_records += told.bad;
  for (const auto& [type, count] : told.unknown) counts_.unknown[type] += count;
  std::move(told.records.begin(), told.records.end(), std::back_inserter(records));
  samples.insert(samples.end(), told.samples.begin(), told.samples.end());
  for (const AuxNote& one : told.notes) note(one);
  if (ring_) {
    losses_.clear();  // the places of a ring's records say nothing
    return {};
  }
  if (!trace_.holds(head)) return impossible(cpu_, "buffer of trace");
  give(output, trace_.tail(), head);
  trace_.release(head);
  return {};
}

void PerfBuffer::collect(BundleOutput& output) {
  if (!ring_) return;
  const std::uint64_t position = trace_.head() % trace_.size();
  const std::vector<std::uint8_t> newest = unrolled(memory_, position, lapped_);
  const RingCopies::Fresh fresh = copies_.take(newest, lapped_, position);
  if (fresh.lost) output.loss(stream_, 0, base::Status::RING_WRAPPED);
  output.data(stream_, fresh.bytes);
  counts_.bytes += fresh.bytes.size();
}

}  // namespace ptkit::capture
