#include "capture/jit_dumps.h"

#include <algorithm>
#include <utility>

#include "base/interval_map.h"
#include "formats/perf_jit.h"

namespace ptkit::capture {

namespace perf = formats::perf;

namespace {

// Until when functions are there. Goes back in time, so that of all files that came later the first one is
// what lies where a function does.
std::vector<std::uint64_t> ends_of(const std::vector<perf::Event>& loads,
                                   std::vector<JitDumps::Mapped> files) {
  std::vector<std::size_t> order(loads.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t one) { return loads[one].tsc; });
  std::ranges::stable_sort(files, std::ranges::greater(), &JitDumps::Mapped::tsc);
  base::IntervalMap<std::uint64_t> later;
  std::vector<std::uint64_t> ends(loads.size(), trace::kTscMax);
  auto file = files.begin();
  for (const std::size_t one : order) {
    const perf::Event& load = loads[one];
    for (; file != files.end() && file->tsc > load.tsc; ++file)
      later.assign(file->address, file->address + (file->bytes - 1), file->tsc);
    const std::uint64_t last = load.address + (load.size - 1);
    if (last < load.address) continue;
    later.for_each_over(load.address, last, [&](std::uint64_t tsc) { ends[one] = std::min(ends[one], tsc); });
  }
  return ends;
}

void save_functions(BundleOutput& output, trace::SpaceId space, std::int32_t file,
                    const std::vector<perf::Event>& loads, const std::vector<std::uint64_t>& ends) {
  for (std::size_t i = 0; i < loads.size(); ++i) {
    trace::CodeRegion region;
    region.space = space;
    region.address = loads[i].address;
    region.bytes = loads[i].bytes;
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
  if (!perf::is_jit_dump(file.path)) return false;
  if (known_.emplace(space, file.path).second) dumps_.push_back({pid, space, tsc, file});
  return true;
}

void JitDumps::save(BundleOutput& output, const MappedBy& mapped_by) {
  for (const Dump& dump : std::exchange(dumps_, {})) {
    const std::string& path = dump.file.path;
    CodeReader& reader = output.reader();
    const trace::TraceBuffer contents =
        reader.read(reader.open(static_cast<pid_t>(dump.pid), dump.file), path);
    trace::TraceBundle read;
    std::vector<perf::Event> loads;
    perf::Event marker;
    marker.tsc = dump.tsc;
    marker.pid = dump.pid;
    marker.text = path;
    const std::string wrong = contents.size() == 0
                                  ? "is not here any more; code that the program made cannot be decoded"
                                  : perf::read_jit_dump(read, contents, marker, loads);
    if (!wrong.empty()) warnings_.push_back(std::string(path).append(" ").append(wrong).append("."));
    if (loads.empty()) continue;
    read_.insert(dump.space);
    // A number may be another process's by now, with a dump of its own.
    const std::int32_t file =
        output.file(path + '\n' + std::to_string(dump.space), [&] { return std::move(read.files.front()); });
    save_functions(output, dump.space, file, loads, ends_of(loads, mapped_by(dump.pid, dump.space)));
  }
}

}  // namespace ptkit::capture
