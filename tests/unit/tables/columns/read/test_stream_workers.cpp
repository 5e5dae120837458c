// Streams that threads read at the same time give the table that one reader gives.
#include <gtest/gtest.h>

#include <array>

#include "tables/columns/read/stream_workers.h"
#include "unit/tables/columns/indexes.h"

namespace ptkit::tables::columns {
namespace {

// Streams of different lengths, with and without times, and an empty one.
std::shared_ptr<trace::TraceBundle> several(unsigned streams) {
  const auto bundle = recording(5, 3, true, true);
  const auto timeless = recording(5, 3, true, true);
  const trace::Stream whole = bundle->streams[0];
  bundle->streams.clear();
  for (unsigned i = 0; i < streams; ++i) {
    trace::Stream stream = whole;
    const base::Bytes bytes = whole.data.bytes();
    std::vector<std::uint8_t> part(bytes.begin(),
                                   bytes.begin() + static_cast<long>(bytes.size() * (i % 4) / 4));
    if (i % 3 == 1) {  // PAD for every TSC packet
      packet::PacketDecoder decoder(bytes, {}, {});
      packet::Packet packet;
      while (decoder.next(packet) == base::Status::OK) {
        if (packet.kind == packet::PacketKind::TSC && packet.offset + packet.size <= part.size())
          std::fill_n(part.begin() + static_cast<long>(packet.offset), packet.size, std::uint8_t{0});
      }
    }
    stream.cpu = static_cast<std::int32_t>(i);
    stream.data = trace::TraceBuffer::from_vector(std::move(part));
    bundle->streams.push_back(std::move(stream));
  }
  return bundle;
}

std::shared_ptr<trace::TraceBundle> large(unsigned streams) {
  const auto bundle = several(streams);
  for (trace::Stream& stream : bundle->streams) {
    trace::TraceBundle one;
    one.streams.push_back(stream);
    repeat(one, 8);
    stream = one.streams[0];
  }
  return bundle;
}

struct Readers {
  Readers(const std::shared_ptr<trace::TraceBundle>& bundle, const Request& request,
          std::shared_ptr<StreamFacts> facts = nullptr,
          std::shared_ptr<const flow::index::Index> index = nullptr)
      : image(bundle), pool(image) {
    for (std::uint32_t i = 0; i < bundle->streams.size(); ++i) {
      TableReader::Input input;
      input.bundle = bundle;
      input.streams = {i};
      input.factory = [this, bundle](std::uint32_t stream, flow::FlowSink& sink, time::TimeTrack*) {
        return std::make_unique<flow::FlowDecoder>(bundle->streams[stream], bundle->configuration, image,
                                                   flow::FlowOptions{}, sink, nullptr, &pool);
      };
      input.decoder = [this, bundle](const trace::Stream& stream, flow::FlowSink& sink, time::TimeTrack*,
                                     const flow::FlowState*, bool) {
        return std::make_unique<flow::FlowDecoder>(stream, bundle->configuration, image, flow::FlowOptions{},
                                                   sink, nullptr, &pool);
      };
      input.facts = facts;
      input.index = index;
      made.push_back(std::make_unique<TableReader>(std::move(input), request));
      all.push_back(made.back().get());
    }
  }
  code::image::Image image;
  flow::CodeCachePool pool;
  std::vector<std::unique_ptr<TableReader>> made;
  std::vector<TableReader*> all;
};

// Reads with a workers and compares with one reader. Returns the number of rows that were copied.
std::size_t expect_same_rows(Table& plain, Readers&& readers, std::size_t threads) {
  StreamWorkers workers(readers.all, threads);
  while (!workers.wait_for(std::chrono::milliseconds(50))) {
  }
  EXPECT_FALSE(workers.out_of_memory());
  const auto rows = workers.take_rows();
  const auto errors = workers.take_errors();
  const auto gaps = workers.take_gaps();
  expect_equal(plain.rows.get(), rows.get());
  expect_equal(plain.errors.get(), errors.get());
  expect_equal(plain.gaps.get(), gaps.get());
  return workers.rows_copied();
}

TEST(StreamWorkers, EqualsOneReader) {
  const auto bundle = several(13);
  for (const TableId table : kTables) {
    for (const bool time : {false, true}) {
      SCOPED_TRACE(testing::Message() << table_name(table) << (time ? " with times" : ""));
      const Request request = request_of(table, time);
      Table plain = read(bundle, request, {});
      const auto facts = std::make_shared<StreamFacts>(64);
      for (const std::size_t threads : {1U, 2U, 5U})
        static_cast<void>(expect_same_rows(plain, Readers(bundle, request, facts), threads));
    }
  }
}

TEST(StreamWorkers, RowsOfKnownNumberAreWrittenToWindows) {
  constexpr unsigned kStreams = 7;
  constexpr std::size_t kMostCopied = RowWindow::kLeastRows;  // of a stream that has no window
  const auto bundle = large(kStreams);
  auto opened = open_index(build_index(bundle, 4000, 2), *bundle);
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  for (const TableId table : kTables) {
    for (const bool time : {false, true}) {
      SCOPED_TRACE(testing::Message() << table_name(table) << (time ? " with times" : ""));
      const Request request = request_of(table, time);
      Table plain = read(bundle, request, {});
      const bool counts = table != TableId::edges && plain.rows->rows() > 2 * kStreams * kMostCopied;
      const auto facts = std::make_shared<StreamFacts>(64);
      static_cast<void>(expect_same_rows(plain, Readers(bundle, request, facts), 2));
      const auto counts_of_threads =
          time ? std::array<std::size_t, 2>{3, 8} : std::array<std::size_t, 2>{1, 2};
      for (const std::size_t threads : counts_of_threads) {
        const bool by_index = threads % 2 == 0 && table != TableId::packets;
        Readers readers(bundle, request, by_index ? nullptr : facts, by_index ? opened.value() : nullptr);
        const std::size_t copied = expect_same_rows(plain, std::move(readers), threads);
        if (counts) {
          EXPECT_LE(copied, kStreams * kMostCopied) << threads;
        }
      }
    }
  }
}

TEST(StreamWorkers, RowsMayHaveNoCells) {
  const auto bundle = large(5);
  Request request = request_of(TableId::branches, false);
  request.mask = 0;
  const Table plain = read(bundle, request, {});
  const auto facts = std::make_shared<StreamFacts>(64);
  for (int round = 0; round < 2; ++round) {
    Readers readers(bundle, request, facts);
    StreamWorkers workers(readers.all, 2);
    while (!workers.wait_for(std::chrono::milliseconds(50))) {
    }
    ASSERT_FALSE(workers.out_of_memory());
    const auto rows = workers.take_rows();
    EXPECT_EQ(rows->rows(), plain.rows->rows());
    EXPECT_EQ(rows->runs().size(), plain.rows->runs().size());
  }
}

TEST(StreamWorkers, WrongNumbersOfRowsDoNoHarm) {
  constexpr unsigned kStreams = 7;
  const auto bundle = large(kStreams);
  for (const TableId table : {TableId::branches, TableId::errors}) {
    const Request request = request_of(table, true);
    Table plain = read(bundle, request, {});
    for (const std::uint32_t wrong : {0U, 2U, 6U}) {
      for (const bool more : {false, true}) {
        SCOPED_TRACE(testing::Message() << table_name(table) << " stream " << wrong << (more ? " +" : " -"));
        const auto facts = std::make_shared<StreamFacts>(64);
        static_cast<void>(expect_same_rows(plain, Readers(bundle, request, facts), 2));
        const std::size_t rows = facts->rows(wrong, table).value_or(0);
        facts->note_rows(wrong, table, more ? rows + 50000 : rows / 2);
        static_cast<void>(expect_same_rows(plain, Readers(bundle, request, facts), 3));
        EXPECT_EQ(facts->rows(wrong, table), rows) << "the next read knows better";
      }
    }
  }
}

// Sums of the first two exceed 64 bits, and their windows would be anywhere.
TEST(StreamWorkers, NumbersOfAHostileIndexAreNotBelieved) {
  const auto bundle = large(4);
  const Request request = request_of(TableId::branches, false);
  Table plain = read(bundle, request, {});
  const std::size_t least = RowWindow::kLeastRows;
  for (const auto& claimed : {std::array<std::uint64_t, 2>{~std::uint64_t{0} - 10, least + 30},
                              std::array<std::uint64_t, 2>{std::uint64_t{1} << 63, std::uint64_t{1} << 63},
                              std::array<std::uint64_t, 2>{std::uint64_t{1} << 34, 0}}) {
    SCOPED_TRACE(claimed[0]);
    auto opened = open_index(build_index(bundle, 4000, 2, claimed), *bundle);
    ASSERT_TRUE(opened.ok()) << opened.failure().detail;
    Readers readers(bundle, request, nullptr, opened.value());
    EXPECT_EQ(readers.made[1]->known_rows(), std::nullopt);
    EXPECT_NE(readers.made[3]->known_rows(), std::nullopt);
    static_cast<void>(expect_same_rows(plain, std::move(readers), 2));
    expect_equal(plain.rows.get(),
                 read(bundle, request, {.rows = SIZE_MAX, .index = opened.value()}).rows.get());
  }
}

TEST(StreamWorkers, StopsSoonWhenItIsCancelled) {
  const auto bundle = several(13);
  Readers readers(bundle, request_of(TableId::branches, true));
  StreamWorkers workers(readers.all, 2);
  workers.cancel();
  EXPECT_TRUE(workers.wait_for(std::chrono::seconds(60)));
  EXPECT_FALSE(workers.out_of_memory());
}

TEST(StreamFacts, KnowsTimelessStreamsAndRows) {
  const auto bundle = several(5);
  StreamFacts facts(bundle->streams.size());
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 1; i < 4; ++i)
      EXPECT_EQ(facts.is_timeless(i, bundle->streams[i], {}), i % 3 == 1) << i;
  }
  EXPECT_FALSE(facts.is_timeless(99, bundle->streams[1], {})) << "not a stream of the bundle";
  trace::Stream lossy = bundle->streams[4];
  lossy.losses.push_back({});
  EXPECT_FALSE(facts.is_timeless(4, lossy, {})) << "not certain after a loss";
  EXPECT_EQ(facts.rows(2, TableId::blocks), std::nullopt);
  facts.note_rows(2, TableId::blocks, 0);
  EXPECT_EQ(facts.rows(2, TableId::blocks), 0u);
  EXPECT_EQ(facts.rows(2, TableId::branches), std::nullopt);
}

}  // namespace
}  // namespace ptkit::tables::columns
