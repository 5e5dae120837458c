// Real hardware traces: the C library counts as the C++ class, whole, in parts, and mutated.
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "allocations.h"
#include "formats/registry.h"
#include "handle.h"
#include "tables/coverage/coverage.h"
#include "unit/support/traces/corpus.h"

namespace ptkit::api::c {
namespace {

constexpr std::size_t kSize = 65536;

class Recording {
 public:
  explicit Recording(const std::string& path) {
    auto opened = formats::open(path, {});
    if (opened.ok()) bundle = std::make_shared<trace::TraceBundle>(std::move(opened.value()));
  }
  [[nodiscard]] Handle open() const {
    Handle handle = open_handle();
    for (const trace::CodeRegion& region : bundle->code) {
      const base::Bytes bytes = region.bytes.bytes();
      EXPECT_EQ(ptkit_coverage_add_code(handle.get(), region.address, bytes.data(), bytes.size()), PTKIT_OK);
    }
    return handle;
  }
  [[nodiscard]] base::Bytes stream() const { return bundle->streams.front().data.bytes(); }

  std::shared_ptr<trace::TraceBundle> bundle;  // null: there is none
};

std::string path_of(const std::string& name) {
  const std::string corpus = ptkit::test::corpus();
  return corpus.empty() ? corpus : corpus + "/libxdc/" + name;
}

std::vector<EdgeRow> sorted_rows(const tables::coverage::CoverageDecoder& decoder) {
  std::vector<EdgeRow> rows;
  for (const tables::coverage::Edge& edge : decoder.edges())
    rows.emplace_back(edge.from_ip, edge.to_ip, static_cast<std::uint32_t>(edge.kind), edge.count);
  std::sort(rows.begin(), rows.end());
  return rows;
}

class CRecordings : public testing::TestWithParam<const char*> {};

TEST_P(CRecordings, EqualTheClass) {
  const std::string path = path_of(GetParam());
  if (path.empty()) GTEST_SKIP() << "the corpus is absent (set PTKIT_CORPUS)";
  const Recording recording(path);
  ASSERT_NE(recording.bundle, nullptr);
  flow::FlowOptions options;
  options.errata = packet::errata_for(recording.bundle->configuration.cpu);
  tables::coverage::CoverageDecoder expected(recording.bundle, options);
  const Handle handle = recording.open();
  const base::Bytes all = recording.stream();
  std::vector<std::uint8_t> virgin(kSize, 0xff);
  std::vector<std::uint8_t> expected_virgin(kSize, 0xff);
  for (const std::size_t size : {all.size(), all.size() / 2, all.size()}) {
    const base::Bytes part = all.first(size);
    std::vector<std::uint8_t> hits(kSize);
    std::vector<std::uint8_t> expected_hits(kSize);
    const auto want = expected.decode(part, {expected_hits, expected_virgin}).value();
    ptkit_outcome got{};
    got.size = sizeof got;
    ASSERT_EQ(ptkit_coverage_decode(handle.get(), part.data(), size, hits.data(), virgin.data(), &got),
              PTKIT_OK);
    EXPECT_EQ(got.instructions, want.instructions);
    EXPECT_EQ(got.branches, want.branches);
    EXPECT_EQ(got.edges, want.edges);
    EXPECT_EQ(got.new_edges, want.new_edges);
    EXPECT_EQ(got.errors, want.errors);
    EXPECT_EQ(got.gaps, want.gaps);
    EXPECT_EQ(got.new_bits, static_cast<int>(want.news));
    EXPECT_GT(got.edges, 0u);
    EXPECT_EQ(hits, expected_hits);
    EXPECT_EQ(virgin, expected_virgin);
    EXPECT_EQ(sorted_edges(handle), sorted_rows(expected));
  }
}

INSTANTIATE_TEST_SUITE_P(All, CRecordings, testing::Values("Unzip", "mruby", "avscript_32", "dyn_test"),
                         [](const auto& one) { return std::string(one.param); });

// Parts of a stream with damage of several forms.
class Mutator {
 public:
  explicit Mutator(base::Bytes stream) : stream_(stream) {}

  [[nodiscard]] std::vector<std::uint8_t> next() {
    std::vector<std::uint8_t> out = part();
    for (unsigned left = below(6); left != 0 && !out.empty(); --left) {
      const auto at = out.begin() + static_cast<std::ptrdiff_t>(below(out.size()));
      switch (below(6)) {
        case 0:
          *at = static_cast<std::uint8_t>(random_());
          break;
        case 1:
          *at = static_cast<std::uint8_t>(*at ^ 1U << below(8));
          break;
        case 2:
          out.erase(at, out.end());
          break;
        case 3:
          out.insert(at, {0x02, 0xf3});  // OVF
          break;
        case 4: {
          const auto other = part();
          out.insert(at, other.begin(), other.end());
          break;
        }
        default:
          out.erase(at, at + static_cast<std::ptrdiff_t>(below(static_cast<std::size_t>(out.end() - at))));
      }
    }
    return out;
  }

  unsigned below(std::size_t limit) { return static_cast<unsigned>(random_() % limit); }

 private:
  [[nodiscard]] std::vector<std::uint8_t> part() {
    const std::size_t begin = below(2) == 0 ? 0 : below(stream_.size());
    const std::size_t size = std::min<std::size_t>(below(8192), stream_.size() - begin);
    const base::Bytes bytes = stream_.subspan(begin, size);
    return {bytes.begin(), bytes.end()};
  }

  base::Bytes stream_;
  std::mt19937_64 random_{26};
};

class Mutations : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string path = path_of("Unzip"); path.empty()) {
      GTEST_SKIP() << "the corpus is absent (set PTKIT_CORPUS)";
    } else {
      recording = Recording(path);
    }
    ASSERT_NE(recording.bundle, nullptr);
  }

  // Hits are the sums of counts, up to 255.
  static void check_map(const Handle& handle, const std::vector<std::uint8_t>& hits) {
    std::vector<std::uint64_t> sums(kSize);
    for (const auto& [from, to, kind, count] : sorted_edges(handle))
      sums[ptkit_edge_hash(from, to) & (kSize - 1)] += count;
    for (std::size_t at = 0; at < kSize; ++at)
      ASSERT_EQ(hits[at], std::min<std::uint64_t>(sums[at], 255)) << at;
  }

  // A handle that has seen nothing else gives the same, from two chunks.
  void check_fresh(const Handle& handle, const std::vector<std::uint8_t>& buffer, std::size_t cut,
                   const ptkit_outcome& outcome) const {
    const Handle fresh = recording.open();
    ptkit_outcome other{};
    other.size = sizeof other;
    ASSERT_EQ(ptkit_coverage_decode_ring(fresh.get(), buffer.data(), cut, buffer.data() + cut,
                                         buffer.size() - cut, nullptr, nullptr, &other),
              PTKIT_OK);
    EXPECT_EQ(other.instructions, outcome.instructions);
    EXPECT_EQ(other.errors, outcome.errors);
    EXPECT_EQ(other.gaps, outcome.gaps);
    EXPECT_EQ(other.first_error, outcome.first_error);
    EXPECT_EQ(other.first_error_offset, outcome.first_error_offset);
    EXPECT_EQ(sorted_edges(fresh), sorted_edges(handle));
  }

  Recording recording{""};
};

// PTKIT_MUTATIONS=1000000 is the long run.
TEST_F(Mutations, NeitherCrashNorLeak) {
  const char* const given = std::getenv("PTKIT_MUTATIONS");
  const std::uint64_t rounds = given != nullptr ? std::strtoull(given, nullptr, 10) : 2000;
  const std::int64_t live = live_allocations();
  std::uint64_t with_errors = 0;
  {
    Mutator mutator(recording.stream());
    const Handle handle = recording.open();
    std::vector<std::uint8_t> hits(kSize);
    std::vector<std::uint8_t> virgin(kSize, 0xff);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const auto buffer = mutator.next();
      std::fill(hits.begin(), hits.end(), std::uint8_t{0});
      const ptkit_outcome outcome = decode(handle, buffer, hits.data(), virgin.data());
      with_errors += outcome.errors == 0 ? 0U : 1U;
      ASSERT_EQ(outcome.new_edges != 0, outcome.new_bits == 2);
      if (round % 100 == 0) check_map(handle, hits);
      if (round % 500 == 0) check_fresh(handle, buffer, mutator.below(buffer.size() + 1), outcome);
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(live_allocations(), live);
  EXPECT_GT(with_errors, rounds / 10);
  rusage usage{};
  ASSERT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  RecordProperty("errors", std::to_string(with_errors));
  RecordProperty("megabytes", std::to_string(usage.ru_maxrss >> 10U));
}

#ifdef PTKIT_TEST_ADDRESS_SPACE
std::size_t mapped_pages() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages;
  return pages;
}

// What is mapped, not allocated, goes with the handle, too.
TEST_F(Mutations, HandlesLeaveNoMappings) {
  Mutator mutator(recording.stream());
  std::size_t after_ten = 0;
  for (int session = 0; session < 60; ++session) {
    const Handle handle = recording.open();
    for (int round = 0; round < 5; ++round) decode(handle, mutator.next());
    if (session == 10) after_ten = mapped_pages();
  }
  EXPECT_LT(mapped_pages(), after_ten + 4096);
}
#endif

}  // namespace
}  // namespace ptkit::api::c
