#include "capture/linux/confined/pipe.h"

#include <poll.h>
#include <unistd.h>

#include <array>

namespace ptkit::capture::confined {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 65536;
constexpr int kTickMs = 10;

}  // namespace

PipeEnd read_pipe(const base::Fd& pipe, const PipeLimits& limits, const std::function<void()>& meanwhile,
                  const std::function<bool(base::Bytes)>& take) {
  const Clock::time_point end = Clock::now() + limits.time;
  std::array<std::uint8_t, kReadBytes> part{};
  std::uint64_t taken = 0;
  while (taken <= limits.bytes) {
    pollfd file{pipe.get(), POLLIN, 0};
    static_cast<void>(::poll(&file, 1, kTickMs));
    if (meanwhile) meanwhile();
    if (Clock::now() >= end)
      return {"the process gave no answer within " + std::to_string(limits.time.count()) + " ms", true};
    if (file.revents == 0) continue;
    const ssize_t got = ::read(pipe.get(), part.data(), part.size());
    if (got == 0) return {};
    if (got < 0) continue;
    taken += static_cast<std::uint64_t>(got);
    if (!take(base::Bytes(part).first(static_cast<std::size_t>(got)))) return {};
  }
  return {"the process wrote more than " + std::to_string(limits.bytes) + " bytes"};
}

std::string killed_by(int signal) { return "the process was killed by signal " + std::to_string(signal); }

}  // namespace ptkit::capture::confined
