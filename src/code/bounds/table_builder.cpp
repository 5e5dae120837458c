#include "code/bounds/table_builder.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ptkit::code::bounds {
namespace {

std::uint32_t narrow(std::uint64_t offset) noexcept { return static_cast<std::uint32_t>(offset); }

}  // namespace

TableBuilder::TableBuilder(std::uint64_t file_bytes) noexcept : last_(std::min(file_bytes, kMostFileBytes)) {}

void TableBuilder::add_segment(std::uint64_t offset, std::uint64_t size, std::uint64_t rva) {
  if (size == 0 || offset >= last_) return;
  out_.segments_.push_back({narrow(offset), narrow(offset + std::min(size, last_ - offset)), rva});
}

void TableBuilder::add_stubs(std::uint64_t offset, std::uint64_t size, std::uint64_t step) {
  if (offset > kMostFileBytes || size > kMostFileBytes - offset) return;
  out_.stubs_.push_back({narrow(offset), narrow(offset + size)});
  has_new_stubs_ = true;
  for (std::uint64_t stub = 0; stub < size; stub += step)
    found_.push_back({{narrow(offset + stub), narrow(offset + std::min(stub + step, size))}, false});
}

void TableBuilder::sort_stubs() {
  if (!has_new_stubs_) return;
  std::ranges::sort(out_.stubs_, {}, &UnwindTable::Function::begin);
  drop_overlaps(out_.stubs_);
  has_new_stubs_ = false;
}

bool TableBuilder::add_function(std::uint64_t offset, std::uint64_t size, bool is_part) {
  sort_stubs();
  if (size == 0 || offset > kMostFileBytes || size > kMostFileBytes - offset || out_.is_stub(offset))
    return false;
  found_.push_back({{narrow(offset), narrow(offset + size)}, is_part});
  return true;
}

void TableBuilder::add_call_site(std::uint64_t begin, std::uint64_t end, std::uint64_t pad) {
  if (pad < kMostFileBytes) out_.call_sites_.push_back({narrow(begin), narrow(end), narrow(pad)});
}

UnwindTable TableBuilder::finish() {
  std::ranges::sort(out_.segments_, {}, &UnwindTable::Segment::begin);
  drop_overlaps(out_.segments_);
  sort_stubs();
  finish_functions();
  finish_call_sites();
  return std::move(out_);
}

// Of functions that begin at one offset, the longest one; a function ends where the next one begins.
void TableBuilder::finish_functions() {
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

void TableBuilder::finish_call_sites() {
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

}  // namespace ptkit::code::bounds
