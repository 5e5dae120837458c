#include "capture/filter_places.h"

#include <algorithm>

#include "capture/file_table.h"
#include "capture/refusals.h"
#include "capture/tracee.h"

namespace ptkit::capture {

namespace {

struct Range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  Mapping mapping;
  std::uint64_t file_offset = 0;
};

bool is_kernel_file(const std::string& file) {
  return file == "vmlinux" || file == "kernel" || file.find(".ko") != std::string::npos ||
         (!file.empty() && file.front() == '[');
}

// What `wanted`, offsets in a file, is in the mapping.
std::optional<Range> place(const Mapping& mapping, const Range& wanted) {
  const std::uint64_t first = std::max(wanted.first, mapping.offset);
  const std::uint64_t last = std::min(wanted.last, mapping.offset + (mapping.end - mapping.begin) - 1);
  if (first > last) return {};
  return Range{mapping.begin + (first - mapping.offset), mapping.begin + (last - mapping.offset), mapping,
               first};
}

class Finder {
 public:
  Finder(int pid, bool user, bool kernel_too, const KernelCode& kernel)
      : pid_(pid), kernel_too_(kernel_too), kernel_(kernel) {
    if (!user || pid == 0) return;
    program_ = program_path(pid);
    maps_ = read_maps(pid);
    std::erase_if(maps_, [](const Mapping& one) { return !one.executable || one.path.empty(); });
  }

  std::vector<Range> find(const FilterRequest& filter) {
    if (filter.file.empty() && filter.symbol.empty()) return {at_addresses(filter)};
    std::vector<Range> ranges;
    if (!is_kernel_file(filter.file)) ranges = find_in_files(filter);
    if (ranges.empty() && kernel_too_) ranges = find_in_kernel(filter);
    return ranges;
  }

  // Names like that one.
  std::string similar(const std::string& name) {
    std::vector<std::string> names = symbols_.similar(name);
    for (std::string& one : kernel_.similar(name)) names.push_back(std::move(one));
    std::string text;
    for (const std::string& one : names) text += (text.empty() ? "; there are " : ", ") + one;
    return text;
  }

 private:
  // A range of addresses, and what the process has there.
  Range at_addresses(const FilterRequest& filter) const {
    Range range{filter.first, filter.last, {}, 0};
    for (const Mapping& mapping : maps_) {
      if (filter.first < mapping.begin || filter.last >= mapping.end) continue;
      range.mapping = mapping;
      range.file_offset = mapping.offset + (filter.first - mapping.begin);
    }
    return range;
  }

  std::vector<Range> find_in_files(const FilterRequest& filter) {
    std::vector<Range> ranges;
    for (const Mapping& mapping : maps_) {
      // A symbol of no file is looked for in the program first.
      const bool here =
          filter.file.empty() ? mapping.path == program_ : names_file(filter.file, mapping.path);
      if (!here) continue;
      if (filter.symbol.empty()) {
        if (const auto range = place(mapping, {filter.first, filter.last, {}, 0})) ranges.push_back(*range);
        continue;
      }
      for (const SymbolFinder::Place& one : symbols_.find(pid_, mapping, filter.symbol)) {
        const Range offsets{one.offset, one.offset + std::max<std::uint64_t>(one.size, 1) - 1, {}, 0};
        if (const auto range = place(mapping, offsets)) ranges.push_back(*range);
      }
    }
    return ranges;
  }

  std::vector<Range> find_in_kernel(const FilterRequest& filter) {
    std::vector<Range> ranges;
    if (!filter.symbol.empty()) {
      for (const KernelCode::Function& one : kernel_.find(filter.symbol, filter.file))
        ranges.push_back({one.first, one.last, {}, 0});
      return ranges;
    }
    const KernelCode::Part* part = kernel_.find_part(filter.file);
    if (part == nullptr) return ranges;
    Mapping whole;
    whole.begin = part->begin;
    whole.end = part->end;
    if (const auto range = place(whole, {filter.first, filter.last, {}, 0})) ranges.push_back(*range);
    return ranges;
  }

  int pid_;
  bool kernel_too_;
  const KernelCode& kernel_;
  std::string program_;
  std::vector<Mapping> maps_;
  SymbolFinder symbols_;
};

std::string described(const FilterRequest& filter) {
  if (filter.symbol.empty()) return filter.file;
  return filter.symbol + (filter.file.empty() ? "" : " @ " + filter.file);
}

base::Failure not_found(const char* option, const FilterRequest& request, Finder& finder) {
  const std::string where = request.symbol.empty() ? " is not mapped" : " is no function that is there yet";
  return bad(option + described(request) + where + finder.similar(request.symbol));
}

}  // namespace

std::optional<base::Failure> check_filters(const RecordOptions& options, unsigned most) {
  for (const FilterRequest& filter : options.filters) {
    if (filter.kind == FilterRequest::Kind::START || filter.kind == FilterRequest::Kind::STOP) {
      return base::Failure{
          base::Status::UNSUPPORTED, 0,
          "filters: a processor has no start and stop, only filter and tracestop; use these, "
          "or backend \"emulator\""};
    }
  }
  if (options.filters.size() > most) {
    return base::Failure{base::Status::UNSUPPORTED, 0,
                         "filters: this processor has " + std::to_string(most) + " ranges, found " +
                             std::to_string(options.filters.size())};
  }
  return {};
}

bool needs_libraries(const RecordOptions& options, const std::string& program) {
  const auto is_library = [&](const auto& request) {
    return !request.file.empty() && !is_kernel_file(request.file) && !names_file(request.file, program);
  };
  return std::any_of(options.filters.begin(), options.filters.end(), is_library) ||
         std::any_of(options.triggers.begin(), options.triggers.end(), is_library);
}

base::Result<std::vector<FilterPlace>> find_filters(const RecordOptions& options, int pid,
                                                    const KernelCode& kernel) {
  if (options.filters.empty()) return std::vector<FilterPlace>();
  Finder finder(pid, options.hardware.user, options.hardware.kernel, kernel);
  std::vector<FilterPlace> out;
  for (const FilterRequest& filter : options.filters) {
    const std::vector<Range> ranges = finder.find(filter);
    if (ranges.empty()) return not_found("filters: ", filter, finder);
    for (const Range& range : ranges)
      out.push_back({filter.kind, range.first, range.last, range.mapping, range.file_offset});
  }
  return out;
}

base::Result<std::vector<WatchPlace>> find_triggers(const RecordOptions& options, int pid,
                                                    const KernelCode& kernel) {
  using Event = TriggerRequest::Event;
  Finder finder(pid, true, options.hardware.kernel, kernel);
  std::vector<WatchPlace> out;
  for (std::uint32_t i = 0; i < options.triggers.size(); ++i) {
    const TriggerRequest& trigger = options.triggers[i];
    if (trigger.event == Event::SIGNAL) {
      out.push_back({i, 0, trigger.signal});
      continue;
    }
    const FilterRequest place{FilterRequest::Kind::START, trigger.file, trigger.symbol, trigger.address,
                              trigger.address};
    const std::vector<Range> ranges = finder.find(place);
    if (ranges.empty()) return not_found("triggers: ", place, finder);
    for (const Range& range : ranges) out.push_back({i, range.first, 0});
  }
  return out;
}

base::Failure too_many_filters(std::size_t needed, unsigned most) {
  return {base::Status::UNSUPPORTED, 0,
          "filters: they need " + std::to_string(needed) + " ranges of addresses, and this processor has " +
              std::to_string(most)};
}

}  // namespace ptkit::capture
