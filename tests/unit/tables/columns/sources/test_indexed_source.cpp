// Decodes only the segments that an index selects, and emits the rows of a sequential decode.
#include "unit/support/units/random_machine.h"
#include "unit/tables/columns/indexes.h"

namespace ptkit::tables::columns {
namespace {

using flow::index::Index;

// Bytes of a stream that are wrong until they are produced.
class LateBytes final : public trace::ByteSource {
 public:
  explicit LateBytes(const trace::TraceBuffer& from)
      : from_(from), bytes_(from.size(), kWrong), is_produced_(from.size() / kPart + 1) {}

  [[nodiscard]] base::Bytes bytes() const { return bytes_; }
  [[nodiscard]] std::size_t produced() const {
    return kPart * static_cast<std::size_t>(std::ranges::count(is_produced_, true));
  }
  void need(std::size_t begin, std::size_t end) noexcept override {
    const base::Bytes from = from_.bytes();
    for (std::size_t part = begin / kPart; part * kPart < end; ++part) {
      if (is_produced_[part]) continue;
      is_produced_[part] = true;
      const std::size_t at = part * kPart;
      std::ranges::copy(from.subspan(at, std::min(kPart, from.size() - at)), bytes_.data() + at);
    }
  }
  [[nodiscard]] std::optional<trace::TraceBuffer> again() const override { return std::nullopt; }
  void forget_before(std::size_t) noexcept override {}

 private:
  static constexpr std::size_t kPart = 64;
  static constexpr std::uint8_t kWrong = 0xa5;
  trace::TraceBuffer from_;
  std::vector<std::uint8_t> bytes_;
  std::vector<bool> is_produced_;  // by part
};

// The same recording of which no byte is produced.
std::pair<std::shared_ptr<trace::TraceBundle>, std::vector<std::shared_ptr<LateBytes>>> late(
    const trace::TraceBundle& bundle) {
  auto copy = std::make_shared<trace::TraceBundle>(bundle);
  std::vector<std::shared_ptr<LateBytes>> sources;
  for (trace::Stream& stream : copy->streams) {
    sources.push_back(std::make_shared<LateBytes>(stream.data));
    stream.data = trace::TraceBuffer::from_source(sources.back()->bytes(), sources.back());
  }
  return {copy, sources};
}

// An address or a time of the rows, now and then of none.
Selection choose(const Index& index, Batch& blocks, std::mt19937_64& random) {
  Selection selection;
  if (blocks.rows() != 0 && random() % 2 == 0) {
    const std::uint64_t ip = blocks.cells<Column::blocks_ip>()[random() % blocks.rows()];
    constexpr std::array<std::uint64_t, 3> kSizes = {1, 16, 500};
    selection.ips.push_back({ip, ip + kSizes[random() % kSizes.size()] - 1});
    if (random() % 4 == 0) selection.ips.push_back({0, 0xfff});
  }
  const auto& segments = index.streams()[0].segments;
  const flow::index::Segment& segment = segments[random() % segments.size()];
  if ((segment.flags & flow::index::Segment::TIMES_KNOWN) != 0 &&
      (selection.ips.empty() || random() % 3 == 0)) {
    selection.by_time = true;
    selection.tsc_begin = segment.tsc_least + random() % (segment.tsc_most - segment.tsc_least + 1);
    selection.tsc_end = selection.tsc_begin + 1 + random() % (segment.tsc_most - segment.tsc_least + 2);
  } else if (selection.ips.empty()) {
    selection.ips.push_back({1, 2});
  }
  return selection;
}

void expect_same_rows(const std::shared_ptr<trace::TraceBundle>& bundle, std::size_t segment,
                      std::size_t threads) {
  auto opened = open_index(build_index(bundle, segment, threads), *bundle);
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  const auto& index = opened.value();
  ASSERT_GT(index->streams()[0].segments.size(), 3U);
  const Table blocks = read(bundle, request_of(TableId::blocks, false), {});
  std::mt19937_64 random(segment + threads);
  for (const TableId table : kTables) {
    for (unsigned i = 0; i < 8; ++i) {
      SCOPED_TRACE(testing::Message() << table_name(table) << ' ' << i);
      Request request = request_of(table, random() % 2 == 0);
      request.selection = choose(*index, *blocks.rows, random);
      request.select_sides = random() % 2 == 0;
      const std::size_t rows = table == TableId::edges || random() % 2 == 0 ? SIZE_MAX : 50;
      const Table whole = read(bundle, request, {});
      const Table some =
          read(late(*bundle).first, request, {.rows = rows, .index = index, .fast = random() % 4 != 0});
      expect_equal(whole.rows.get(), some.rows.get());
      expect_equal(whole.errors.get(), some.errors.get());
      expect_equal(whole.gaps.get(), some.gaps.get());
    }
  }
}

TEST(IndexedSource, EqualsSequentialDecode) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const auto bundle = recording(seed, 0, seed % 2 == 0, seed > 2);
    expect_same_rows(bundle, 1500, 1);
    expect_same_rows(bundle, 4000, 3);
  }
}

TEST(IndexedSource, EqualsSequentialDecodeOfDamagedStreams) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const auto bundle = recording_with_gaps(seed);
    expect_same_rows(bundle, 1000, 1 + seed % 3);
  }
}

TEST(IndexedSource, EqualsSequentialDecodeOfSeveralStreams) {
  const auto bundle = recording(3, 0, true, true);
  trace::Stream second = bundle->streams[0];
  second.cpu = 1;
  bundle->streams.push_back(second);
  expect_same_rows(bundle, 2000, 2);
}

TEST(IndexedSource, EqualsSequentialDecodeWithCsBase) {
  for (const bool kernel_64 : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(seed);
      ptmodel::test::RandomMachine machine(
          {.seed = seed,
           .steps = 60000,
           .ranges = false,
           .program = {
               .system = true, .bits = kernel_64 ? 32U : 16U, .cs_base = 0x12'3400, .kernel_64 = kernel_64}});
      machine.run();
      const auto bundle =
          flow::roundtrip::bundle_for(machine.program.regions, machine.config(), machine.platform.stream);
      machine.describe_code(bundle->configuration);
      expect_same_rows(bundle, 1000, 1 + seed % 2);
    }
  }
}

// Of a stream that is longer than what calibration reads.
TEST(IndexedSource, ProducesTheBytesThatItNeeds) {
  const auto bundle = recording(9, 0, true, true, true, 1'200'000);
  ASSERT_GT(bundle->streams[0].data.size(), std::size_t{3} << 20U);
  auto opened = open_index(build_index(bundle, 20'000, 2), *bundle);
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  const flow::index::StreamIndex& of_stream = opened.value()->streams()[0];
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < 14; ++i) {
    SCOPED_TRACE(i);
    Request request = request_of(kTables[i % std::size(kTables)], random() % 4 != 0);
    const flow::index::Segment& segment = of_stream.segments[random() % of_stream.segments.size()];
    request.selection.by_time = true;
    request.selection.tsc_begin = segment.tsc_least;
    request.selection.tsc_end = segment.tsc_most + 1;
    request.select_sides = true;
    const auto [some_bundle, sources] = late(*bundle);
    const Table whole = read(bundle, request, {});
    const Table some = read(some_bundle, request, {.index = opened.value()});
    expect_equal(whole.rows.get(), some.rows.get());
    EXPECT_LT(sources[0]->produced(), bundle->streams[0].data.size() * 2 / 3);
  }
}

TEST(IndexedSource, DoesNotDependOnThreads) {
  const auto bundle = recording(5, 3, true, true);
  const auto alone = build_index(bundle, 2000, 1);
  for (unsigned i = 0; i < 5; ++i) EXPECT_EQ(build_index(bundle, 2000, 4), alone);
}

TEST(IndexedSource, FollowsCodeAndThreadsThatChangeWithTime) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const auto bundle = changing_recording(seed);
    expect_same_rows(bundle, 1500, seed % 2 == 0 ? 1 : 3);
    EXPECT_EQ(build_index(bundle, 1500, 1), build_index(bundle, 1500, 3));
    if (HasFailure()) return;
  }
}

TEST(IndexedSource, FollowsSwitchesByOffset) {
  const auto bundle = recording(4, 0, true, true);
  trace::Stream& stream = bundle->streams[0];
  bundle->spaces.resize(2);
  stream.switches_by_offset = true;
  const std::uint64_t size = stream.data.size();
  for (std::uint64_t i = 0; i < 40; ++i) {
    const trace::SpaceId space = i % 10 == 9 ? 1 : trace::kAnySpace;  // without code of its own
    stream.switches.push_back({0, 7, static_cast<std::int64_t>(i % 3), space, size * i / 40 + i});
  }
  expect_same_rows(bundle, 1500, 1);
  expect_same_rows(bundle, 1500, 3);
  const auto bytes = build_index(bundle, 1500, 1);
  EXPECT_TRUE(open_index(bytes, *bundle).ok());
  stream.switches[20].offset += 1;
  EXPECT_FALSE(open_index(bytes, *bundle).ok());
}

TEST(IndexedSource, IndexHasTheNumbersOfRows) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    const auto bundle = seed % 3 == 0   ? recording_with_gaps(seed)
                        : seed % 3 == 1 ? changing_recording(seed)
                                        : recording(seed, 5, seed % 2 == 0, seed % 4 == 0);
    auto opened = open_index(build_index(bundle, 3000, seed % 4 + 1), *bundle);
    ASSERT_TRUE(opened.ok()) << opened.failure().detail;
    const flow::index::RowTotals& rows = opened.value()->streams()[0].rows;
    const auto count = [&](TableId table) { return read(bundle, request_of(table, false), {}).rows->rows(); };
    EXPECT_EQ(rows.branches, count(TableId::branches));
    EXPECT_EQ(rows.blocks, count(TableId::blocks));
    EXPECT_EQ(rows.instructions, count(TableId::instructions));
    EXPECT_EQ(rows.events, count(TableId::events));
    EXPECT_EQ(rows.errors, count(TableId::errors));
    EXPECT_EQ(rows.gaps, count(TableId::gaps));
  }
}

TEST(IndexedSource, RejectsIndexOfOtherTrace) {
  const auto bundle = recording(6, 0, true, true);
  const auto bytes = build_index(bundle, 2000, 1);
  EXPECT_TRUE(open_index(bytes, *bundle).ok());
  trace::TraceBundle other = *bundle;
  damage(other, 1, 1);
  EXPECT_FALSE(open_index(bytes, other).ok());
  other = *bundle;
  other.configuration.clock.mtc_period ^= 1U;
  EXPECT_FALSE(open_index(bytes, other).ok());
  other = *bundle;
  other.configuration.cs_base = 0x1000;
  EXPECT_FALSE(open_index(bytes, other).ok());
  other = *bundle;
  const base::Bytes code = other.code[0].bytes.bytes();
  std::vector<std::uint8_t> changed(code.begin(), code.end());
  changed.back() ^= 1U;
  other.code[0].bytes = trace::TraceBuffer::from_vector(std::move(changed));
  EXPECT_FALSE(open_index(bytes, other).ok());
  EXPECT_FALSE(Index::read(trace::TraceBuffer::from_vector(bytes), *bundle, flow::Resync::PSB, {}).ok());
}

// Whatever becomes of the file: it is refused, or rows are right.
TEST(IndexedSource, SurvivesDamagedFile) {
  const auto bundle = recording(7, 2, true, true);
  const auto bytes = build_index(bundle, 3000, 2);
  Request request = request_of(TableId::branches, true);
  const Table blocks = read(bundle, request_of(TableId::blocks, false), {});
  request.selection.ips.push_back({blocks.rows->cells<Column::blocks_ip>()[100], ~std::uint64_t{0} >> 1U});
  const Table whole = read(bundle, request, {});
  std::mt19937_64 random(1);
  for (unsigned i = 0; i < 150; ++i) {
    auto damaged = bytes;
    if (i % 3 == 0) {
      damaged.resize(random() % damaged.size());
    } else {
      // Half of it in the parts that are looked at when they are needed only.
      const std::size_t begin = i % 2 == 0 ? 0 : damaged.size() / 4;
      damaged[begin + random() % (damaged.size() - begin)] ^= static_cast<std::uint8_t>(1 + random() % 255);
    }
    auto opened = open_index(std::move(damaged), *bundle);
    if (!opened.ok() || i % 8 != 0) continue;
    const Table some = read(bundle, request, {.index = opened.value()});
    expect_equal(whole.rows.get(), some.rows.get());
  }
}

}  // namespace
}  // namespace ptkit::tables::columns
