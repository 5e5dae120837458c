#include "capture/linux/emulator/filter_triggers.h"

#include <algorithm>

#include "capture/linux/files/file_table.h"

namespace ptkit::capture {

namespace {

bool has_address(const TriggerRequest& request) { return request.event != TriggerRequest::Event::SIGNAL; }

}  // namespace

FilterTriggers::FilterTriggers(EmulatorRecording& recording, const CodeStore& executed)
    : recording_(recording),
      executed_(executed),
      needed_(
          !recording.options().filters.empty() ||
          std::any_of(recording.options().triggers.begin(), recording.options().triggers.end(), has_address)),
      filter_(recording.options().filters) {
  const RecordOptions& options = recording_.options();
  for (const FilterRequest& request : options.filters) {
    if (request.file.empty() && request.symbol.empty()) add(request.kind, {request.first, request.last});
  }
  for (std::uint32_t id = 0; id < options.triggers.size(); ++id) {
    const TriggerRequest& request = options.triggers[id];
    if (has_address(request) && request.file.empty() && request.symbol.empty())
      add(request, id, request.address);
  }
}

void FilterTriggers::add(FilterRequest::Kind kind, const Range& range) {
  filter_.add(kind, range.first, range.last);
  if (ranges_.add(kind, range.first, range.last) && kind == FilterRequest::Kind::TRACESTOP)
    ranges_.stops_late |= executed_.has(range.first, range.last);
}

void FilterTriggers::add(const TriggerRequest& request, std::uint32_t id, std::uint64_t address) {
  if (request.action != TriggerRequest::Action::START) return filter_.watch(address, id);
  const std::lock_guard lock(mutex_);
  starts_.push_back({address, id});
}

void FilterTriggers::map(pid_t pid, std::uint64_t begin, std::uint64_t end, std::uint64_t offset,
                         const std::string& path) {
  if (path.empty() || !needed_) return;
  const Mapping mapping{pid, begin, end, offset, path};
  const RecordOptions& options = recording_.options();
  for (std::size_t i = 0; i < options.filters.size(); ++i) {
    const FilterRequest& request = options.filters[i];
    for (const Range& range : resolve(mapping, request.file, request.symbol, {request.first, request.last})) {
      add(request.kind, range);
      recording_.set_filter_found(i);
    }
  }
  for (std::uint32_t id = 0; id < options.triggers.size(); ++id) {
    const TriggerRequest& request = options.triggers[id];
    if (!has_address(request)) continue;
    for (const Range& range :
         resolve(mapping, request.file, request.symbol, {request.address, request.address})) {
      add(request, id, range.first);
      recording_.set_trigger_found(id);
    }
  }
}

// The address ranges of a request in the mapping; none if the request names no file and no symbol.
std::vector<FilterTriggers::Range> FilterTriggers::resolve(const Mapping& mapping, const std::string& file,
                                                           const std::string& symbol, const Range& given) {
  if ((file.empty() && symbol.empty()) || (!file.empty() && !names_file(file, mapping.path))) return {};
  std::vector<Range> in_file{given};
  if (!symbol.empty()) {
    in_file.clear();
    for (const auto& function : recording_.symbols().find(mapping.pid, mapping.path, symbol))
      in_file.push_back({function.offset, function.offset + std::max<std::uint64_t>(function.size, 1) - 1});
  }
  std::vector<Range> ranges;
  const std::uint64_t last_offset = mapping.offset + (mapping.end - mapping.begin - 1);
  for (const Range& range : in_file) {
    const std::uint64_t first = std::max(range.first, mapping.offset);
    const std::uint64_t last = std::min(range.last, last_offset);
    // The mapping must have the beginning of a function.
    if (first > last || (!symbol.empty() && first != range.first)) continue;
    ranges.push_back({mapping.begin + (first - mapping.offset), mapping.begin + (last - mapping.offset)});
  }
  return ranges;
}

std::size_t FilterTriggers::find_start(const GuestCode& code, std::span<const std::uint32_t> blocks) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const GuestBlock& block = code[blocks[i]];
    for (const Start& start : starts_) {
      if (start.address >= block.pc && start.address <= block.last) recording_.count_event(start.trigger);
    }
    if (!recording_.waits_for_start()) return i;
  }
  return blocks.size();
}

}  // namespace ptkit::capture
