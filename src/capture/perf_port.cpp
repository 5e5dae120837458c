#include "capture/perf_port.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "capture/tracee.h"

namespace ptkit::capture {

namespace {

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
    const long event = ::syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (event < 0) return -errno;
    events_.push_back(static_cast<int>(event));
    return events_.back();
  }

  void close(int event) override {
    events_.erase(std::remove(events_.begin(), events_.end(), event), events_.end());
    ::close(event);
  }

  int request(int event, unsigned long number, std::uintptr_t argument) override {
    return ::ioctl(event, number, argument) == 0 ? 0 : errno;
  }

  Mapped map(int event, std::uint64_t offset, std::uint64_t bytes, bool writable) override {
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* memory = ::mmap(nullptr, bytes, protection, MAP_SHARED, event, static_cast<off_t>(offset));
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
  std::vector<int> events_;
  std::vector<std::span<std::uint8_t>> mapped_;
};

}  // namespace

std::unique_ptr<PerfPort> open_perf() { return std::make_unique<Kernel>(); }

}  // namespace ptkit::capture
