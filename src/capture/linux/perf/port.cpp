#include "capture/linux/perf/port.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <set>

#include "base/posix/map_memory.h"
#include "capture/linux/process/process.h"

namespace ptkit::capture {

namespace {

constexpr rlim_t kSpareFiles = 32;  // for code that is saved: maps, images, memory

// How many files may be open: as many as the hard limit permits while this lives, once it was needed.
class FileLimit {
 public:
  FileLimit() { static_cast<void>(::getrlimit(RLIMIT_NOFILE, &before_)); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() {
    if (raised_) static_cast<void>(::setrlimit(RLIMIT_NOFILE, &before_));
  }
  bool raise() {
    if (raised_ || before_.rlim_cur >= before_.rlim_max) return false;
    const rlimit most{before_.rlim_max, before_.rlim_max};
    raised_ = ::setrlimit(RLIMIT_NOFILE, &most) == 0;
    return raised_;
  }
  // Files get the lowest number that is free.
  [[nodiscard]] bool has_room_behind(int file) const {
    const rlim_t now = raised_ ? before_.rlim_max : before_.rlim_cur;
    return static_cast<rlim_t>(file) + kSpareFiles < now;
  }

 private:
  rlimit before_{};
  bool raised_ = false;
};

class Kernel : public PerfPort {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() override {
    for (const auto& one : mapped_) ::munmap(one.data(), one.size());
    for (const int event : events_) ::close(event);
  }

  int open(perf_event_attr& attr, int tid, int cpu) override {
    int event = try_open(attr, tid, cpu);
    if (event == -EMFILE && limit_.raise()) event = try_open(attr, tid, cpu);
    if (event < 0) return event;
    if (!limit_.has_room_behind(event) && !limit_.raise()) {
      ::close(event);
      return -EMFILE;
    }
    events_.insert(event);
    return event;
  }

  void close(int event) override {
    events_.erase(event);
    ::close(event);
  }

  int request(int event, unsigned long number, std::uintptr_t argument) override {
    return ::ioctl(event, number, argument) == 0 ? 0 : errno;
  }

  Mapped map(int event, std::uint64_t offset, std::uint64_t bytes, bool writable) override {
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* memory = base::map_memory(bytes, protection, MAP_SHARED, event, static_cast<off_t>(offset));
    if (memory == MAP_FAILED) return {{}, errno};
    mapped_.emplace_back(static_cast<std::uint8_t*>(memory), bytes);
    return {mapped_.back(), 0};
  }

  void unmap(std::span<std::uint8_t> bytes) override {
    std::erase_if(mapped_, [&](const auto& one) { return one.data() == bytes.data(); });
    ::munmap(bytes.data(), bytes.size());
  }

  std::vector<int> wait(std::span<const int> files, std::chrono::milliseconds limit) override {
    std::vector<pollfd> list;
    for (const int file : files) list.push_back({file, POLLIN, 0});
    std::vector<int> over;
    if (::poll(list.data(), list.size(), static_cast<int>(limit.count())) <= 0) return over;
    for (const pollfd& one : list) {
      if ((one.revents & (POLLHUP | POLLERR)) != 0) over.push_back(one.fd);
    }
    return over;
  }

  [[nodiscard]] std::optional<std::string> read(const std::string& path) const override {
    std::ifstream file(path);
    if (!file) return {};
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (file.bad()) return {};
    text.erase(text.find_last_not_of(" \n\t") + 1);
    return text;
  }

  [[nodiscard]] std::vector<int> threads(int pid) const override { return threads_of(pid); }

 private:
  static int try_open(perf_event_attr& attr, int tid, int cpu) {
    const long event = ::syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return event < 0 ? -errno : static_cast<int>(event);
  }

  FileLimit limit_;
  std::set<int> events_;
  std::vector<std::span<std::uint8_t>> mapped_;
};

}  // namespace

std::unique_ptr<PerfPort> open_perf() { return std::make_unique<Kernel>(); }

}  // namespace ptkit::capture
