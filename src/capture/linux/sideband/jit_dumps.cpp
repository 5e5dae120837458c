#include "capture/linux/sideband/jit_dumps.h"

#include <algorithm>
#include <utility>

#include "base/interval_map.h"
#include "trace/module_names.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

namespace {

// The end of validity of each function. Goes through functions and files backwards in time, so that the
// interval map has the first file after a function at its address.
std::vector<std::uint64_t> ends_of(const std::vector<JitFunction>& loads,
                                   std::vector<JitDumps::Mapped> files) {
  std::vector<std::size_t> order(loads.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t one) { return loads[one].tsc; });
  std::ranges::stable_sort(files, std::ranges::greater(), &JitDumps::Mapped::tsc);
  base::IntervalMap<std::uint64_t> later;
  std::vector<std::uint64_t> ends(loads.size(), trace::kTscMax);
  auto file = files.begin();
  for (const std::size_t one : order) {
    const JitFunction& load = loads[one];
    for (; file != files.end() && file->tsc > load.tsc; ++file)
      later.assign(file->address, file->address + (file->bytes - 1), file->tsc);
    const std::uint64_t last = load.address + (load.size - 1);
    if (last < load.address) continue;
    later.for_each_over(load.address, last, [&](std::uint64_t tsc) { ends[one] = std::min(ends[one], tsc); });
  }
  return ends;
}

void save_functions(BundleOutput& output, trace::SpaceId space, std::int32_t file,
                    const trace::TraceBuffer& dump, const std::vector<JitFunction>& loads,
                    const std::vector<std::uint64_t>& ends) {
  for (std::size_t i = 0; i < loads.size(); ++i) {
    trace::CodeRegion region;
    region.space = space;
    region.address = loads[i].address;
    region.bytes =
        dump.slice(static_cast<std::size_t>(loads[i].file_offset), static_cast<std::size_t>(loads[i].size));
    region.size = loads[i].size;
    region.tsc_from = loads[i].tsc;
    region.tsc_to = ends[i];
    region.file = file;
    region.file_offset = loads[i].file_offset;
    output.code({region});
  }
}

}  // namespace

bool JitDumps::add(std::int64_t pid, trace::SpaceId space, std::uint64_t tsc, const Mapping& file) {
  if (!trace::is_jit_dump(file.path)) return false;
  if (known_.emplace(space, file.path).second) dumps_.push_back({pid, space, tsc, file});
  return true;
}

void JitDumps::save(BundleOutput& output, const MappedBy& mapped_by) {
  for (const Dump& dump : std::exchange(dumps_, {})) {
    const std::string& path = dump.file.path;
    CodeReader& reader = output.reader();
    const MappedFile opened = reader.open(static_cast<pid_t>(dump.pid), dump.file);
    const trace::TraceBuffer contents = reader.read(opened, path);
    ParsedFile parsed;
    if (contents.size() == 0) {
      parsed.problem = warn(trace::WarningCode::JITDUMP_MISSING);
    } else {
      parsed = reader.parse(
          opened, path,
          {.kind = ParseRequest::Kind::JIT_DUMP, .file_bytes = contents.size(), .tsc = dump.tsc});
    }
    if (parsed.problem) warnings_.push_back(parsed.problem->at(path));
    const std::vector<JitFunction>& loads = parsed.functions;
    if (loads.empty()) continue;
    read_.insert(dump.space);
    // A PID may have been reused by a process with another dump, so the space is part of the key.
    const std::int32_t file = output.file(path + '\n' + std::to_string(dump.space), [&] {
      return trace::ImageFile{path, {}, {}, std::move(parsed.symbols)};
    });
    save_functions(output, dump.space, file, contents, loads,
                   ends_of(loads, mapped_by(dump.pid, dump.space)));
  }
}

}  // namespace ptkit::capture
