// Streams that are cut into segments give the same tables as streams that are decoded from the beginning, in
// every column and on any number of threads.
#include <gtest/gtest.h>

#include <cstring>

#include "../flow/roundtrip.h"
#include "columns/reader.h"

namespace ptkit::columns {
namespace {

using flow::roundtrip::bundle_of;

std::shared_ptr<trace::TraceBundle> recording(std::uint64_t seed, std::uint32_t overflow_per_mille,
                                              bool return_compression, bool timing) {
  softpt::UnitConfig config;
  config.ptw = true;
  config.psb_bytes = 512;
  config.tsc_ctc_numerator = 168;
  config.tsc_ctc_denominator = 2;
  config.return_compression = return_compression;
  config.mtc = config.cyc = timing;
  walk::WalkOptions options;
  options.seed = seed;
  options.overflow_per_mille = overflow_per_mille;
  options.odd_return_per_mille = 20;
  options.steps = 40000;
  return bundle_of(walk::random_walk(options), config);
}

// The first stream, again and again: the end of one and the beginning of the next do not fit.
void repeat(trace::TraceBundle& bundle, unsigned times) {
  const base::Bytes once = bundle.streams[0].data.bytes();
  std::vector<std::uint8_t> bytes;
  for (unsigned i = 0; i < times; ++i) bytes.insert(bytes.end(), once.begin(), once.end());
  bundle.streams[0].data = trace::TraceBuffer::from_vector(std::move(bytes));
}

void damage(trace::TraceBundle& bundle, unsigned places, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const base::Bytes whole = bundle.streams[0].data.bytes();
  std::vector<std::uint8_t> bytes(whole.begin(), whole.end());
  for (unsigned i = 0; i < places; ++i)
    bytes[static_cast<std::size_t>(random() % bytes.size())] = static_cast<std::uint8_t>(random());
  bundle.streams[0].data = trace::TraceBuffer::from_vector(std::move(bytes));
}

struct Table {
  std::unique_ptr<Batch> rows;
  std::unique_ptr<Batch> errors;
  std::unique_ptr<Batch> gaps;
};

struct Reading {
  std::size_t threads = 1;
  std::size_t segment = 0;
  std::size_t rows = SIZE_MAX;  // in a part
};

void put_behind(std::unique_ptr<Batch>& all, std::unique_ptr<Batch> more) {
  if (more == nullptr) return;
  if (all == nullptr) {
    all = std::move(more);
  } else {
    ASSERT_TRUE(all->append(std::move(*more)));
  }
}

Table read(const std::shared_ptr<trace::TraceBundle>& bundle, TableId table, const Reading& how, bool time) {
  const image::Image image(bundle);
  flow::CodeCachePool pool(image);
  TableReader::Input input;
  input.bundle = bundle;
  for (std::uint32_t i = 0; i < bundle->streams.size(); ++i) input.streams.push_back(i);
  const auto make = [&](std::uint32_t stream, flow::FlowSink& sink, const flow::Checkpoint* from,
                        bool ahead) {
    const trace::Stream& of = bundle->streams[stream];
    return from == nullptr
               ? std::make_unique<flow::FlowDecoder>(of, bundle->configuration, image, flow::FlowOptions{},
                                                     sink, nullptr, &pool)
               : std::make_unique<flow::FlowDecoder>(of, bundle->configuration, image, flow::FlowOptions{},
                                                     sink, nullptr, &pool, *from, ahead);
  };
  input.factory = [&](std::uint32_t stream, flow::FlowSink& sink, time::TimeTrack*) {
    return make(stream, sink, nullptr, false);
  };
  input.decoder = make;
  input.threads = how.threads;
  input.segment = how.segment;
  Request request;
  request.table = table;
  request.time = time;
  TableReader reader(std::move(input), request);
  Table out;
  for (auto step = TableReader::Step::MORE; step != TableReader::Step::END;) {
    step = reader.step(how.rows);
    if (step == TableReader::Step::MORE) continue;
    put_behind(out.rows, reader.take(how.rows));
    put_behind(out.errors, reader.take_errors());
    put_behind(out.gaps, reader.take_gaps());
  }
  return out;
}

void expect_equal(Batch* a, Batch* b) {
  ASSERT_EQ(a == nullptr, b == nullptr);
  if (a == nullptr) return;
  ASSERT_EQ(a->rows(), b->rows());
  const auto columns = columns_of(a->table());
  for (std::size_t i = 0; i < columns.size() && a->rows() != 0; ++i) {
    ASSERT_EQ(std::memcmp(a->data(i), b->data(i), a->rows() * cell_size(columns[i].type)), 0)
        << table_name(a->table()) << '.' << columns[i].name;
  }
  ASSERT_EQ(a->runs().size(), b->runs().size());
  for (std::size_t i = 0; i < a->runs().size(); ++i) {
    EXPECT_EQ(a->runs()[i].row, b->runs()[i].row);
    EXPECT_TRUE(a->runs()[i].same_owner(b->runs()[i]));
  }
}

constexpr TableId kTables[] = {TableId::branches, TableId::blocks, TableId::instructions, TableId::events,
                               TableId::errors,   TableId::gaps,   TableId::edges};

void expect_same_tables(const std::shared_ptr<trace::TraceBundle>& bundle, std::size_t segment) {
  std::mt19937_64 random(segment);
  for (const TableId table : kTables) {
    const bool time = table != TableId::edges && random() % 2 == 0;
    SCOPED_TRACE(testing::Message() << table_name(table) << (time ? " with times" : ""));
    Table plain = read(bundle, table, {}, time);
    for (const std::size_t threads : {2U, 3U, 5U}) {
      SCOPED_TRACE(threads);
      const bool whole = table == TableId::edges || random() % 2 == 0;
      const std::size_t rows = whole ? SIZE_MAX : 100 + random() % 5000;
      Table cut = read(bundle, table, {threads, segment, rows}, time);
      expect_equal(plain.rows.get(), cut.rows.get());
      expect_equal(plain.errors.get(), cut.errors.get());
      expect_equal(plain.gaps.get(), cut.gaps.get());
    }
  }
}

TEST(AheadSource, GivesTheTablesOfADecodeFromTheBeginning) {
  for (const bool timing : {false, true}) {
    for (const bool return_compression : {false, true}) {
      const auto bundle = recording(timing ? 2 : 1, 0, return_compression, timing);
      expect_same_tables(bundle, 1500);
      expect_same_tables(bundle, 9000);
    }
  }
}

TEST(AheadSource, AlsoWhereStreamsAreDamaged) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const auto bundle = recording(seed, 5, seed % 2 == 0, false);
    repeat(*bundle, 2);
    damage(*bundle, 10, seed);
    trace::KnownLoss loss;
    loss.offset = bundle->streams[0].data.size() / (seed + 1);
    loss.lost_bytes = 17;
    bundle->streams[0].losses = {loss};
    expect_same_tables(bundle, 1000);
  }
}

TEST(AheadSource, AlsoForSeveralStreams) {
  const auto bundle = recording(3, 0, true, false);
  trace::Stream second = bundle->streams[0];
  second.cpu = 1;
  bundle->streams.push_back(second);
  expect_same_tables(bundle, 2000);
}

class Cut {
 public:
  explicit Cut(std::shared_ptr<trace::TraceBundle> bundle)
      : bundle_(std::move(bundle)), image_(bundle_), pool_(image_) {
    request_.time = false;
  }

  struct Result {
    AheadSource::Figures figures;
    std::size_t rows = 0;
  };

  // Decodes in segments of so many bytes, for so many slices.
  Result decode(std::size_t segment, unsigned slices) {
    const std::atomic<bool> cancelled{false};
    RowSink sink(request_, cancelled);
    const trace::Stream& stream = bundle_->streams[0];
    sink.begin_stream(0, stream, nullptr);
    const auto make = [&](flow::FlowSink& rows, const flow::Checkpoint* from, bool ahead) {
      return from == nullptr ? std::make_unique<flow::FlowDecoder>(stream, bundle_->configuration, image_,
                                                                   flow::FlowOptions{}, rows, nullptr, &pool_)
                             : std::make_unique<flow::FlowDecoder>(stream, bundle_->configuration, image_,
                                                                   flow::FlowOptions{}, rows, nullptr, &pool_,
                                                                   *from, ahead);
    };
    AheadSource source({request_, 0, stream, make, 3, segment}, sink);
    for (unsigned i = 0; i < slices; ++i) {
      sink.begin_slice(sink.main()->rows() + 4096, 64);
      if (!source.run()) break;
    }
    return {source.figures(), sink.main()->rows()};
  }

 private:
  std::shared_ptr<trace::TraceBundle> bundle_;
  image::Image image_;
  flow::CodeCachePool pool_;
  Request request_;
};

TEST(AheadSource, TakesMostOfWhatWasDecodedAhead) {
  const auto bundle = recording(4, 0, true, false);
  // Threads that come late find nothing left to do, so that one decode says little.
  Cut cut(bundle);
  AheadSource::Figures sum;
  for (unsigned i = 0; i < 20; ++i) {
    const AheadSource::Figures figures = cut.decode(2000, ~0U).figures;
    sum.taken += figures.taken;
    sum.again += figures.again;
  }
  EXPECT_GE(sum.taken, 20U);
  EXPECT_LE(sum.again * 10, sum.taken);
}

// What is not read to its end leaves nothing behind: neither threads nor memory.
TEST(AheadSource, CanBeDroppedAtAnyTime) {
  const auto bundle = recording(4, 0, true, false);
  repeat(*bundle, 8);
  Cut cut(bundle);
  const std::size_t all = cut.decode(1000, ~0U).rows;
  for (unsigned slices = 0; slices < 60; slices += 3) EXPECT_LE(cut.decode(1000, slices).rows, all);
  EXPECT_EQ(cut.decode(1000, ~0U).rows, all);
}

}  // namespace
}  // namespace ptkit::columns
