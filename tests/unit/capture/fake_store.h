// intel_bts of the kernel in this process: whole records, and what none fits into is left as it was.
#pragma once

#include "fake_perf.h"

namespace ptkit::capture::test {

using Branch = std::pair<std::uint64_t, std::uint64_t>;

constexpr std::uint64_t kStoredBytes = 24;

inline std::vector<std::uint8_t> stored_bytes(const Branch& branch, std::uint64_t flags) {
  std::vector<std::uint8_t> out;
  FakeKernel::put(out, branch.first, 8);
  FakeKernel::put(out, branch.second, 8);
  FakeKernel::put(out, flags, 8);
  return out;
}

// A thread stores branches on a processor, and leaves it.
class FakeStore {
 public:
  FakeStore(FakeKernel& kernel, int cpu) : kernel_(kernel), cpu_(cpu) {}

  void store(const FakeKernel::Who& who, const std::vector<Branch>& branches, std::uint64_t flags = 0) {
    FakeKernel::Event& event = kernel_.unit(cpu_);
    if (!event.traces()) return;
    FakeKernel::Buffer& to = kernel_.buffer(cpu_);
    if (to.overwrite) return go_round(who, to, branches, flags);
    const std::uint64_t size = to.trace.size();
    const std::uint64_t used = size - size % kStoredBytes;
    std::uint64_t count = 0;
    for (const Branch& branch : branches) {
      if ((to.page().aux_head + count) % size == used) {
        end_piece(who, count, 0);
        std::fill(to.trace.begin() + static_cast<std::ptrdiff_t>(used), to.trace.end(), 0xee);
        // No record tells of what is skipped.
        __atomic_store_n(&to.page().aux_head, to.page().aux_head + size - used, __ATOMIC_RELEASE);
        count = 0;
      }
      const std::uint64_t head = to.page().aux_head + count;
      if (head + kStoredBytes - to.page().aux_tail > size) {
        kernel_.fill_up(event);
        return end_piece(who, count, PERF_AUX_FLAG_TRUNCATED);
      }
      FakeKernel::store(to.trace, 0, head, stored_bytes(branch, flags));
      count += kStoredBytes;
    }
    end_piece(who, count, 0);
  }

 private:
  void end_piece(const FakeKernel::Who& who, std::uint64_t count, std::uint64_t flags) {
    if (count != 0 || flags != 0)
      kernel_.note(cpu_, who, count, kernel_.buffer(cpu_).page().aux_head + count, flags);
  }

  // Linux tells where it writes next, and that all of the ring may be new.
  void go_round(const FakeKernel::Who& who, FakeKernel::Buffer& to, const std::vector<Branch>& branches,
                std::uint64_t flags) {
    const std::uint64_t size = to.trace.size();
    const std::uint64_t used = size - size % kStoredBytes;
    std::uint64_t place = to.page().aux_head;
    for (const Branch& branch : branches) {
      if (place == used) place = 0;
      FakeKernel::store(to.trace, 0, place, stored_bytes(branch, flags));
      place += kStoredBytes;
    }
    kernel_.note(cpu_, who, size, place, 0);
  }

  FakeKernel& kernel_;
  int cpu_;
};

}  // namespace ptkit::capture::test
