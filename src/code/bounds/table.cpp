#include "code/bounds/table.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "code/bounds/call_sites.h"
#include "code/bounds/eh_frame.h"
#include "code/bounds/places.h"
#include "code/image/elf/elf_file.h"
#include "code/image/files/segments.h"

namespace ptkit::code::bounds {
namespace {

constexpr std::uint64_t kEnd = std::numeric_limits<std::uint32_t>::max();

// The range that contains a place, of sorted ranges without overlaps; the end of `ranges` if none does.
template <typename Ranges>
auto range_at(const Ranges& ranges, std::uint64_t place) noexcept {
  const auto above =
      std::ranges::upper_bound(ranges, place, {}, [](const auto& one) { return std::uint64_t{one.begin}; });
  if (above == ranges.begin()) return ranges.end();
  const auto found = std::prev(above);
  return place < found->end ? found : ranges.end();
}

}  // namespace

class TableBuilder {
 public:
  TableBuilder(const code::image::ElfFile& file, UnwindTable& out) : file_(file), places_(file), out_(out) {}

  void build() {
    add_segments();
    add_stubs();
    CallSiteReader sites(file_, places_);
    for (const FrameEntry& frame : read_frame_entries(file_)) add(frame, sites);
    finish_functions();
    finish_call_sites();
  }

 private:
  struct Found {
    UnwindTable::Function function;
    bool is_part = false;
  };

  void add_segments() {
    const std::uint64_t last = std::min<std::uint64_t>(file_.bytes().size(), kEnd);
    for (const code::image::FileSegment& one : code::image::file_segments(file_.bytes())) {
      if (!one.executable || one.size == 0 || one.file_offset >= last) continue;
      const std::uint64_t end = one.file_offset + std::min(one.size, last - one.file_offset);
      out_.segments_.push_back({place(one.file_offset), place(end), one.rva});
    }
    std::ranges::sort(out_.segments_, {}, &UnwindTable::Segment::begin);
    drop_overlaps(out_.segments_);
  }

  // A PLT has one frame entry for all of its stubs.
  void add_stubs() {
    for (const code::image::ElfFile::Section& section : file_.sections()) {
      const std::uint64_t step = code::image::ElfFile::stub_bytes(section);
      const std::uint64_t size = step == 0 ? 0 : file_.contents(section).size();
      const auto at = size == 0 ? std::nullopt : places_.find(section.header.sh_addr);
      if (!at || !at->executable || size > at->left || at->offset + size > kEnd) continue;
      out_.stubs_.push_back({place(at->offset), place(at->offset + size)});
      for (std::uint64_t stub = 0; stub < size; stub += step) {
        const std::uint64_t end = at->offset + std::min(stub + step, size);
        found_.push_back({{place(at->offset + stub), place(end)}, false});
      }
    }
    std::ranges::sort(out_.stubs_, {}, &UnwindTable::Function::begin);
    drop_overlaps(out_.stubs_);
  }

  void add(const FrameEntry& frame, CallSiteReader& reader) {
    const auto at = places_.find(frame.begin);
    if (!at || !at->executable || frame.size > at->left || at->offset + frame.size > kEnd) return;
    if (out_.is_stub(at->offset)) return;
    found_.push_back({{place(at->offset), place(at->offset + frame.size)}, frame.is_part});
    for (const CallSite& site : reader.read(frame)) {
      const auto pad = places_.find(site.pad);
      if (!pad || !pad->executable || pad->offset >= kEnd) continue;
      const std::uint64_t begin = at->offset + (site.begin - frame.begin);
      out_.call_sites_.push_back({place(begin), place(begin + (site.end - site.begin)), place(pad->offset)});
    }
  }

  // Of functions that begin at one place, the longest one; a function ends where the next one begins.
  void finish_functions() {
    std::ranges::sort(found_, {}, [](const Found& one) {
      return std::tuple(one.function.begin, ~one.function.end, one.is_part);
    });
    for (const Found& one : found_) {
      auto& all = out_.functions_;
      if (!all.empty() && all.back().begin == one.function.begin) continue;
      if (!all.empty()) all.back().end = std::min(all.back().end, one.function.begin);
      all.push_back(one.function);
      out_.is_part_.push_back(one.is_part);
    }
    out_.functions_.shrink_to_fit();
  }

  void finish_call_sites() {
    auto& all = out_.call_sites_;
    std::ranges::sort(all, {}, [](const auto& one) { return std::tuple(one.begin, one.end, one.pad); });
    drop_overlaps(all);
    std::vector<UnwindTable::CallSite> joined;
    for (const auto& one : all) {
      if (!joined.empty() && joined.back().end == one.begin && joined.back().pad == one.pad) {
        joined.back().end = one.end;
      } else {
        joined.push_back(one);
      }
    }
    all = std::move(joined);
    all.shrink_to_fit();
    out_.collect_pads();
  }

  template <typename Range>
  static void drop_overlaps(std::vector<Range>& ranges) {
    std::uint32_t end = 0;
    std::erase_if(ranges, [&](const Range& one) {
      if (one.begin < end) return true;
      end = one.end;
      return false;
    });
  }

  static std::uint32_t place(std::uint64_t offset) noexcept { return static_cast<std::uint32_t>(offset); }

  const code::image::ElfFile& file_;
  Places places_;
  UnwindTable& out_;
  std::vector<Found> found_;
};

UnwindTable::UnwindTable(base::Bytes bytes) {
  const auto file = code::image::ElfFile::open(bytes);
  if (file.ok()) TableBuilder(file.value(), *this).build();
}

UnwindTable UnwindTable::of(const trace::ImageFile& file) {
  if (file.contents.size() != 0) return UnwindTable(file.contents.bytes());
  return decode(file.unwind, kEnd).value_or(UnwindTable());
}

void UnwindTable::collect_pads() {
  for (const CallSite& site : call_sites_) pads_.push_back(site.pad);
  std::ranges::sort(pads_);
  pads_.erase(std::unique(pads_.begin(), pads_.end()), pads_.end());
  pads_.shrink_to_fit();
}

std::optional<Extent> UnwindTable::function_at(std::uint64_t offset) const noexcept {
  const auto found = range_at(functions_, offset);
  return found == functions_.end() ? std::nullopt : std::optional(Extent{found->begin, found->end});
}

bool UnwindTable::is_entry(std::uint64_t offset) const noexcept {
  const auto found = range_at(functions_, offset);
  return found != functions_.end() && found->begin == offset &&
         !is_part_[static_cast<std::size_t>(found - functions_.begin())];
}

std::optional<std::uint64_t> UnwindTable::landing_pad_of(std::uint64_t call) const noexcept {
  const auto found = range_at(call_sites_, call);
  return found == call_sites_.end() ? std::nullopt : std::optional<std::uint64_t>(found->pad);
}

bool UnwindTable::is_landing_pad(std::uint64_t offset) const noexcept {
  return std::ranges::binary_search(pads_, offset);
}

bool UnwindTable::is_stub(std::uint64_t offset) const noexcept {
  return range_at(stubs_, offset) != stubs_.end();
}

std::optional<std::uint64_t> UnwindTable::rva_of(std::uint64_t offset) const noexcept {
  const auto found = range_at(segments_, offset);
  return found == segments_.end() ? std::nullopt : std::optional(found->rva + (offset - found->begin));
}

std::size_t UnwindTable::memory_bytes() const noexcept {
  return functions_.capacity() * sizeof(Function) + is_part_.capacity() / 8 +
         call_sites_.capacity() * sizeof(CallSite) + pads_.capacity() * sizeof(Place) +
         stubs_.capacity() * sizeof(Function) + segments_.capacity() * sizeof(Segment);
}

}  // namespace ptkit::code::bounds
