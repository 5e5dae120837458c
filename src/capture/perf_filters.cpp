// Address filters as the kernel reads them.
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "base/paths.h"
#include "capture/mapped_file.h"
#include "capture/perf_units.h"
#include "capture/refusals.h"
#include "capture/tracee.h"

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kKernelHalf = std::uint64_t{1} << 63U;

std::string hex(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

// "filter 0x1000/0x20@/bin/true,stop 0x2000/0x10@/bin/true".
template <typename NameOf>
std::string filter_text(const std::vector<FilterPlace>& filters, const NameOf& name_of) {
  std::string text;
  for (const FilterPlace& one : filters) {
    const bool stops = one.kind == FilterRequest::Kind::TRACESTOP;
    text += text.empty() ? "" : ",";
    text += stops ? "stop " : "filter ";
    text += hex(one.mapping.path.empty() ? one.first : one.file_offset) + "/" + hex(one.last - one.first + 1);
    if (!one.mapping.path.empty()) text.append(1, '@').append(name_of(one.mapping.path));
  }
  return text;
}

// Files that a process has mapped. The kernel looks for a path where the caller sees it, and takes it to end
// at a blank or a comma; what is open here it finds in any case.
class MappedFiles {
 public:
  explicit MappedFiles(int pid) : pid_(pid) {}

  // 0, or the errno.
  int open(const Mapping& mapping) {
    if (files_.count(mapping.path) != 0) return 0;
    MappedFile file = locate_mapped(pid_, mapping, 0);
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

// What perf cannot name to the kernel: user code that is in no file, or in none that has a path.
std::optional<base::Failure> check_places(const std::vector<FilterPlace>& filters) {
  for (const FilterPlace& one : filters) {
    const std::string range = hex(one.first) + " to " + hex(one.last);
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

PerfUnits::Problem PerfUnits::set_filters(const std::vector<FilterPlace>& filters) {
  if (filters.empty()) return {};
  if (filters.size() > unit_.filters) return too_many_filters(filters.size(), unit_.filters);
  if (auto failure = check_places(filters)) return failure;
  const std::string shown = filter_text(filters, [](const std::string& path) { return path; });
  MappedFiles files(pid_);
  for (const FilterPlace& one : filters) {
    const int error = one.mapping.path.empty() ? 0 : files.open(one.mapping);
    if (error != 0) return filter_refusal(shown, scope(), error).failure();
  }
  const std::string text = filter_text(filters, [&](const std::string& path) { return files.name_of(path); });
  for (const Opened& one : opened_) {
    const int error =
        port_->request(one.event, PERF_EVENT_IOC_SET_FILTER, reinterpret_cast<std::uintptr_t>(text.c_str()));
    if (error != 0) return filter_refusal(shown, scope(), error).failure();
  }
  return {};
}

}  // namespace ptkit::capture
