// A fake of the kernel's intel_bts: it writes whole records, and skips space that is too small for a record.
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

// A thread runs on a CPU, stores branches, and is switched out.
class FakeBts {
 public:
  FakeBts(FakeKernel& kernel, int cpu) : kernel_(kernel), cpu_(cpu) {}

  void store(const FakeKernel::SampleId& id, const std::vector<Branch>& branches, std::uint64_t flags = 0) {
    FakeKernel::Event& event = kernel_.tracing_event(cpu_);
    if (!event.traces()) return;
    FakeKernel::Buffer& to = kernel_.buffer(cpu_);
    if (to.overwrite) return go_round(id, to, branches, flags);
    const std::uint64_t size = to.trace.size();
    const std::uint64_t used = size - size % kStoredBytes;
    std::uint64_t count = 0;
    for (const Branch& branch : branches) {
      if ((to.page().aux_head + count) % size == used) {
        end_piece(id, count, 0);
        std::fill(to.trace.begin() + static_cast<std::ptrdiff_t>(used), to.trace.end(), 0xee);
        // Skipped bytes have no AUX record.
        __atomic_store_n(&to.page().aux_head, to.page().aux_head + size - used, __ATOMIC_RELEASE);
        count = 0;
      }
      const std::uint64_t head = to.page().aux_head + count;
      if (head + kStoredBytes - to.page().aux_tail > size) {
        kernel_.fill_up(event);
        return end_piece(id, count, PERF_AUX_FLAG_TRUNCATED);
      }
      FakeKernel::store(to.trace, 0, head, stored_bytes(branch, flags));
      count += kStoredBytes;
    }
    end_piece(id, count, 0);
  }

 private:
  void end_piece(const FakeKernel::SampleId& id, std::uint64_t count, std::uint64_t flags) {
    if (count != 0 || flags != 0)
      kernel_.write_aux_record(cpu_, id, count, kernel_.buffer(cpu_).page().aux_head + count, flags);
  }

  // Overwrite mode: the AUX record has the write position and the size of the ring.
  void go_round(const FakeKernel::SampleId& id, FakeKernel::Buffer& to, const std::vector<Branch>& branches,
                std::uint64_t flags) {
    const std::uint64_t size = to.trace.size();
    const std::uint64_t used = size - size % kStoredBytes;
    std::uint64_t offset = to.page().aux_head;
    for (const Branch& branch : branches) {
      if (offset == used) offset = 0;
      FakeKernel::store(to.trace, 0, offset, stored_bytes(branch, flags));
      offset += kStoredBytes;
    }
    kernel_.write_aux_record(cpu_, id, size, offset, 0);
  }

  FakeKernel& kernel_;
  int cpu_;
};

}  // namespace ptkit::capture::test
