// Address filters in the syntax of PERF_EVENT_IOC_SET_FILTER (perf_event_parse_addr_filter() in
// kernel/events/core.c).
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "base/addresses.h"
#include "base/hexadecimal.h"
#include "base/paths.h"
#include "capture/common/errors.h"
#include "capture/linux/files/mapped_file.h"
#include "capture/linux/perf/backend.h"
#include "capture/linux/process/process.h"

namespace ptkit::capture {

namespace {

using base::kKernelHalf;

// "filter 0x1000/0x20@/bin/true,stop 0x2000/0x10@/bin/true".
template <typename NameOf>
std::string filter_text(const std::vector<ResolvedFilter>& filters, const NameOf& name_of) {
  std::string text;
  for (const ResolvedFilter& one : filters) {
    const bool stops = one.kind == FilterRequest::Kind::TRACESTOP;
    text += text.empty() ? "" : ",";
    text += stops ? "stop " : "filter ";
    text += base::hexadecimal(one.mapping.path.empty() ? one.first : one.file_offset) + "/" +
            base::hexadecimal(one.last - one.first + 1);
    if (!one.mapping.path.empty()) text.append(1, '@').append(name_of(one.mapping.path));
  }
  return text;
}

// Files that a process has mapped. The kernel resolves a path in the caller's namespace, and a path ends at a
// blank or comma. A path /proc/self/fd/N of a file that is open here is always valid.
class MappedFiles {
 public:
  explicit MappedFiles(int pid) : pid_(pid) {}

  // 0, or the errno.
  int open(const Mapping& mapping) {
    if (files_.count(mapping.path) != 0) return 0;
    // The mapping comes from /proc/PID/maps, which has the inode.
    MappedFile file = locate_mapped(pid_, mapping, 0, [](const Fd&) { return std::string(); });
    if (file.found != MappedFile::Found::FILE) return file.error;
    files_.emplace(mapping.path, std::move(file.file));
    return 0;
  }
  [[nodiscard]] std::string name_of(const std::string& path) const {
    return "/proc/self/fd/" + std::to_string(files_.at(path).get());
  }

 private:
  int pid_;
  std::map<std::string, Fd> files_;
};

// perf filters user code by file: fails for ranges without a file, or with a file that has no path.
std::optional<base::Failure> check_files(const std::vector<ResolvedFilter>& filters) {
  for (const ResolvedFilter& one : filters) {
    const std::string range = base::hexadecimal(one.first) + " to " + base::hexadecimal(one.last);
    if (one.mapping.path.empty() && one.first < kKernelHalf) {
      return unsupported("filters: no file is mapped at all of " + range +
                         ", and perf filters user code by files; name a function, or a range in one file");
    }
    const bool named = one.mapping.path.empty() || one.mapping.path.front() == '/';
    if (!named || one.mapping.path.rfind("/memfd:", 0) == 0 || base::is_deleted(one.mapping.path)) {
      return unsupported("filters: " + range + " is in " + one.mapping.path +
                         ", which perf cannot find by a path; filter by other files");
    }
  }
  return {};
}

}  // namespace

PerfBackend::Problem PerfBackend::set_filters(const std::vector<ResolvedFilter>& filters) {
  if (filters.empty()) return {};
  if (filters.size() > pmu_.filters) return too_many_filters(filters.size(), pmu_.filters);
  if (auto failure = check_files(filters)) return failure;
  const std::string shown = filter_text(filters, [](const std::string& path) { return path; });
  MappedFiles files(pid_);
  for (const ResolvedFilter& one : filters) {
    const int error = one.mapping.path.empty() ? 0 : files.open(one.mapping);
    if (error != 0) return filter_error(shown, scope(), error).failure();
  }
  const std::string text = filter_text(filters, [&](const std::string& path) { return files.name_of(path); });
  for (const Opened& one : opened_) {
    const int error =
        port_->request(one.event, PERF_EVENT_IOC_SET_FILTER, reinterpret_cast<std::uintptr_t>(text.c_str()));
    if (error != 0) return filter_error(shown, scope(), error).failure();
  }
  return {};
}

}  // namespace ptkit::capture
