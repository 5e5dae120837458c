#include "capture/linux/session/filter_resolver.h"

#include <algorithm>

#include "capture/common/errors.h"
#include "capture/linux/files/file_table.h"
#include "capture/linux/process/process.h"

namespace ptkit::capture {

namespace {

struct MappedRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  Mapping mapping;
  std::uint64_t file_offset = 0;
};

bool is_kernel_file(const std::string& file) {
  return file == "vmlinux" || file == "kernel" || file.find(".ko") != std::string::npos ||
         (!file.empty() && file.front() == '[');
}

// Maps file offsets to addresses: the part of `wanted` that `mapping` maps, if any.
std::optional<MappedRange> addresses_of(const Mapping& mapping, const MappedRange& wanted) {
  const std::uint64_t first = std::max(wanted.first, mapping.offset);
  const std::uint64_t last = std::min(wanted.last, mapping.offset + (mapping.end - mapping.begin) - 1);
  if (first > last) return {};
  return MappedRange{mapping.begin + (first - mapping.offset), mapping.begin + (last - mapping.offset),
                     mapping, first};
}

class Resolver {
 public:
  Resolver(int pid, bool user, bool kernel_too, const KernelCode& kernel, FileParser& parser)
      : pid_(pid), kernel_too_(kernel_too), kernel_(kernel), symbols_(parser) {
    if (!user || pid == 0) return;
    program_ = program_path(pid);
    maps_ = read_maps(pid);
    std::erase_if(maps_, [](const Mapping& one) { return !one.executable || one.path.empty(); });
  }

  std::vector<MappedRange> find(const FilterRequest& filter) {
    if (filter.file.empty() && filter.symbol.empty()) return {at_addresses(filter)};
    std::vector<MappedRange> ranges;
    if (!is_kernel_file(filter.file)) ranges = find_in_files(filter);
    if (ranges.empty() && kernel_too_) ranges = find_in_kernel(filter);
    return ranges;
  }

  // A hint for a failure: similar symbol names.
  std::string similar(const std::string& name) {
    std::vector<std::string> names = symbols_.similar(name);
    for (std::string& one : kernel_.similar(name)) names.push_back(std::move(one));
    std::string text;
    for (const std::string& one : names) text += (text.empty() ? "; there are " : ", ") + one;
    return text;
  }

 private:
  // A filter of plain addresses, with the mapping that contains them.
  MappedRange at_addresses(const FilterRequest& filter) const {
    MappedRange range{filter.first, filter.last, {}, 0};
    for (const Mapping& mapping : maps_) {
      if (filter.first < mapping.begin || filter.last >= mapping.end) continue;
      range.mapping = mapping;
      range.file_offset = mapping.offset + (filter.first - mapping.begin);
    }
    return range;
  }

  std::vector<MappedRange> find_in_files(const FilterRequest& filter) {
    std::vector<MappedRange> ranges;
    for (const Mapping& mapping : maps_) {
      // A symbol without a file is searched in the program's own file.
      const bool here =
          filter.file.empty() ? mapping.path == program_ : names_file(filter.file, mapping.path);
      if (!here) continue;
      if (filter.symbol.empty()) {
        if (const auto range = addresses_of(mapping, {filter.first, filter.last, {}, 0}))
          ranges.push_back(*range);
        continue;
      }
      for (const FunctionSpan& one : symbols_.find(pid_, mapping, filter.symbol)) {
        const MappedRange offsets{one.offset, one.offset + std::max<std::uint64_t>(one.size, 1) - 1, {}, 0};
        if (const auto range = addresses_of(mapping, offsets)) ranges.push_back(*range);
      }
    }
    return ranges;
  }

  std::vector<MappedRange> find_in_kernel(const FilterRequest& filter) {
    std::vector<MappedRange> ranges;
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
    if (const auto range = addresses_of(whole, {filter.first, filter.last, {}, 0})) ranges.push_back(*range);
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

base::Failure not_found(const char* option, const FilterRequest& request, Resolver& resolver) {
  const std::string where = request.symbol.empty() ? " is not mapped" : " is no function that is there yet";
  return invalid_option(option + described(request) + where + resolver.similar(request.symbol));
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

base::Result<std::vector<ResolvedFilter>> resolve_filters(const RecordOptions& options, int pid,
                                                          const KernelCode& kernel, FileParser& parser) {
  if (options.filters.empty()) return std::vector<ResolvedFilter>();
  Resolver resolver(pid, options.levels.user, options.levels.kernel, kernel, parser);
  std::vector<ResolvedFilter> out;
  for (const FilterRequest& filter : options.filters) {
    const std::vector<MappedRange> ranges = resolver.find(filter);
    if (ranges.empty()) return not_found("filters: ", filter, resolver);
    for (const MappedRange& range : ranges)
      out.push_back({filter.kind, range.first, range.last, range.mapping, range.file_offset});
  }
  return out;
}

base::Result<std::vector<Breakpoint>> resolve_breakpoints(const RecordOptions& options, int pid,
                                                          const KernelCode& kernel, FileParser& parser) {
  using Event = TriggerRequest::Event;
  Resolver resolver(pid, true, options.levels.kernel, kernel, parser);
  std::vector<Breakpoint> out;
  for (std::uint32_t i = 0; i < options.triggers.size(); ++i) {
    const TriggerRequest& trigger = options.triggers[i];
    if (trigger.event == Event::SIGNAL) {
      out.push_back({i, 0, trigger.signal});
      continue;
    }
    const FilterRequest request{FilterRequest::Kind::START, trigger.file, trigger.symbol, trigger.address,
                                trigger.address};
    const std::vector<MappedRange> ranges = resolver.find(request);
    if (ranges.empty()) return not_found("triggers: ", request, resolver);
    for (const MappedRange& range : ranges) out.push_back({i, range.first, 0});
  }
  return out;
}

base::Failure too_many_filters(std::size_t needed, unsigned most) {
  return {base::Status::UNSUPPORTED, 0,
          "filters: they need " + std::to_string(needed) + " ranges of addresses, and this processor has " +
              std::to_string(most)};
}

}  // namespace ptkit::capture
