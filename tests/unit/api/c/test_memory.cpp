// Out of memory at each allocation is a status, and the handle works afterwards.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "allocations.h"
#include "handle.h"
#include "unit/support/makers/elf_maker.h"
#include "unit/support/scratch.h"
#include "unit/support/traces/loop_stream.h"

namespace ptkit::api::c {
namespace {

using flow::kLoop;
using flow::loop;

class OutOfMemory : public testing::TestWithParam<Failing> {
 protected:
  // Calls `call` with ever more allocations until none fails, and `after_failure` after each that did.
  template <typename Call, typename After>
  static void at_each_allocation(const Call& call, const After& after_failure) {
    for (std::int64_t allocations = 0;; ++allocations) {
      ASSERT_LT(allocations, 100000);
      fail_after(allocations, GetParam());
      const int status = call();
      const bool failed = stop_failing();
      if (!failed) {
        EXPECT_EQ(status, PTKIT_OK);
        EXPECT_GT(allocations, 0);
        return;
      }
      // A part that can do without memory may do so.
      if (status != PTKIT_OK) {
        ASSERT_EQ(status, PTKIT_NO_MEMORY) << allocations << ": " << ptkit_failure_message();
        ASSERT_STREQ(ptkit_failure_message(), "out of memory");
      }
      after_failure(status);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
};

TEST_P(OutOfMemory, Opening) {
  const std::int64_t before = live_allocations();
  ptkit_coverage* coverage = nullptr;
  at_each_allocation([&] { return ptkit_coverage_open(nullptr, &coverage); },
                     [&](int) {
                       ASSERT_EQ(coverage, nullptr);
                       ASSERT_EQ(live_allocations(), before);
                     });
  ptkit_coverage_close(coverage);
  EXPECT_EQ(live_allocations(), before);
}

TEST_P(OutOfMemory, AddingCode) {
  const std::int64_t before = live_allocations();
  at_each_allocation(
      [] {
        ptkit_coverage* coverage = nullptr;
        int status = ptkit_coverage_open(nullptr, &coverage);
        if (status == PTKIT_OK)
          status = ptkit_coverage_add_code(coverage, 0x1000, kLoop.data(), kLoop.size());
        ptkit_coverage_close(coverage);
        return status;
      },
      [&](int) { ASSERT_EQ(live_allocations(), before); });
}

// A stream over code with many branches, so that tables grow.
std::vector<std::uint8_t> long_stream(std::uint64_t jumps) {
  flow::Scene scene;
  scene.begin();
  for (std::uint64_t i = 0; i < jumps; ++i) scene.tip(0x1000 + i * 7 % jumps * 2);
  return scene.bytes();
}

std::vector<std::uint8_t> indirect_jumps(std::uint64_t count) {
  std::vector<std::uint8_t> code;
  for (std::uint64_t i = 0; i < count; ++i) code.insert(code.end(), {0xff, 0xe0});  // jmp rax
  return code;
}

TEST_P(OutOfMemory, Decoding) {
  const auto code = indirect_jumps(512);
  const auto stream = long_stream(512);
  std::vector<std::uint8_t> hits(65536);
  std::vector<std::uint8_t> virgin(65536, 0xff);
  const Handle handle = open_with_code(code);
  const auto decode_maps = [&] {
    return ptkit_coverage_decode_ring(handle.get(), stream.data(), 100, stream.data() + 100,
                                      stream.size() - 100, hits.data(), virgin.data(), nullptr);
  };
  at_each_allocation(decode_maps, [&](int status) {
    if (status != PTKIT_OK) {
      ASSERT_EQ(std::count(hits.begin(), hits.end(), 0), 65536);
      ASSERT_EQ(std::count(virgin.begin(), virgin.end(), 0xff), 65536);
    }
    // Warm handles need no memory: begin anew.
    ASSERT_EQ(ptkit_coverage_forget(handle.get(), 0, UINT64_MAX), PTKIT_OK);
    std::fill(hits.begin(), hits.end(), std::uint8_t{0});
    std::fill(virgin.begin(), virgin.end(), std::uint8_t{0xff});
  });
  const Handle fresh = open_with_code(code);
  EXPECT_EQ(decode(fresh, stream).errors, 0u);
  EXPECT_EQ(sorted_edges(handle), sorted_edges(fresh));
}

TEST_P(OutOfMemory, AddingAnImage) {
  test::Elf64Maker maker;
  maker.add({".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, kLoop, 0, 0, 0});
  maker.segments.push_back({PT_LOAD, 0x1000, maker.sections[0].offset, kLoop.size()});
  const test::TemporaryFile file(maker.make());
  const Handle handle = open_handle();
  at_each_allocation(
      [&] { return ptkit_coverage_add_image(handle.get(), file.path().c_str(), PTKIT_AS_LINKED); },
      [&](int status) {
        if (status == PTKIT_OK) return;
        ASSERT_EQ(decode(handle, loop(2)).first_error, PTKIT_NO_CODE);
      });
  EXPECT_EQ(decode(handle, loop(2)).errors, 0u);
}

#ifdef PTKIT_TEST_ADDRESS_SPACE
// Uses up what the heap has, so that so many bytes are left.
void limit_memory(rlim_t left) {
  const rlim_t mapped = std::stoul(formats::test::read_all("/proc/self/statm")) * 4096;
  rlimit limit{mapped, RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &limit);
  for (std::size_t size = 1U << 20U; size >= 4096; size /= 4) {
    while (std::malloc(size) != nullptr) {
    }
  }
  limit.rlim_cur = mapped + left;
  ::setrlimit(RLIMIT_AS, &limit);
}

// What is mapped, not allocated: a child has ever more address space.
TEST(OutOfAddressSpace, IsAStatus) {
  const auto code = indirect_jumps(20000);
  const auto stream = long_stream(20000);
  unsigned failures = 0;
  for (rlim_t more = 0;; more += 1U << 20U) {
    ASSERT_LT(more, rlim_t{64} << 20U);
    const pid_t child = ::fork();
    if (child == 0) {
      limit_memory(more);
      ptkit_coverage* coverage = nullptr;
      int status = ptkit_coverage_open(nullptr, &coverage);
      if (status == PTKIT_OK) status = ptkit_coverage_add_code(coverage, 0x1000, code.data(), code.size());
      if (status == PTKIT_OK)
        status = ptkit_coverage_decode(coverage, stream.data(), stream.size(), nullptr, nullptr, nullptr);
      ptkit_coverage_close(coverage);
      std::_Exit(status);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "with " << more << " bytes: signal " << WTERMSIG(status);
    if (WEXITSTATUS(status) == PTKIT_OK) break;
    ASSERT_EQ(WEXITSTATUS(status), PTKIT_NO_MEMORY);
    ++failures;
  }
  EXPECT_GT(failures, 0u);
}
#endif

INSTANTIATE_TEST_SUITE_P(All, OutOfMemory, testing::Values(Failing::ONE, Failing::ALL),
                         [](const auto& one) { return one.param == Failing::ONE ? "one" : "all"; });

}  // namespace
}  // namespace ptkit::api::c
