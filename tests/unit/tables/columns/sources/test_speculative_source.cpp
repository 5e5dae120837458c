// Streams that are cut into segments give the same tables as a sequential decode, in every column and on any
// number of threads.
#include <gtest/gtest.h>

#include <set>

#include "flow/events/context.h"
#include "unit/tables/columns/recordings.h"

namespace ptkit::tables::columns {
namespace {

void expect_same_tables(const std::shared_ptr<trace::TraceBundle>& bundle, std::size_t segment) {
  std::mt19937_64 random(segment);
  for (const TableId table : kTables) {
    const bool time = table != TableId::edges && random() % 2 == 0;
    SCOPED_TRACE(testing::Message() << table_name(table) << (time ? " with times" : ""));
    Table plain = read(bundle, request_of(table, time), {});
    for (const std::size_t threads : {2U, 3U, 5U}) {
      SCOPED_TRACE(threads);
      const bool whole = table == TableId::edges || random() % 2 == 0;
      const std::size_t rows = whole ? SIZE_MAX : 100 + random() % 5000;
      Table cut =
          read(bundle, request_of(table, time), {.threads = threads, .segment = segment, .rows = rows});
      expect_equal(plain.rows.get(), cut.rows.get());
      expect_equal(plain.errors.get(), cut.errors.get());
      expect_equal(plain.gaps.get(), cut.gaps.get());
    }
  }
}

TEST(SpeculativeSource, EqualsSequentialDecode) {
  for (const bool timing : {false, true}) {
    for (const bool return_compression : {false, true}) {
      const auto bundle = recording(timing ? 2 : 1, 0, return_compression, timing);
      expect_same_tables(bundle, 1500);
      expect_same_tables(bundle, 9000);
    }
  }
}

TEST(SpeculativeSource, EqualsSequentialDecodeOfDamagedStreams) {
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

TEST(SpeculativeSource, EqualsSequentialDecodeOfCodeAndThreadsThatChangeWithTime) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const auto bundle = changing_recording(seed);
    expect_same_tables(bundle, 1500);
    if (HasFailure()) return;
  }
}

TEST(SpeculativeSource, EqualsSequentialDecodeOfSeveralStreams) {
  const auto bundle = recording(3, 0, true, false);
  trace::Stream second = bundle->streams[0];
  second.cpu = 1;
  bundle->streams.push_back(second);
  expect_same_tables(bundle, 2000);
}

// Marks stand where something changes, and a mark has a time, on which that of the next row may depend.
TEST(SpeculativeSource, HasNoMarksWhereSegmentsBegin) {
  for (const bool changes : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(seed);
      const auto bundle = changes ? changing_recording(seed) : recording(seed, 0, seed % 3 != 0, seed != 4);
      Request request = request_of(TableId::branches, true);
      request.marks = true;
      request.mask &= ~(ColumnMask{1} << index_of(Column::branches_tsc_estimate));  // marks have no estimates
      request.selection.branches.not_taken = false;
      Table plain = read(bundle, request, {});
      for (const std::size_t segment : {1500U, 9000U}) {
        Table cut = read(bundle, request, {.threads = 3, .segment = segment});
        expect_equal(plain.rows.get(), cut.rows.get());
      }
      if (HasFailure()) return;
    }
  }
}

// Parts in reused memory: rows stay in a segment's memory, start before it, or are merged.
TEST(SpeculativeSource, PartsEqualWholeTable) {
  for (const std::uint64_t seed : {1U, 2U}) {
    const auto bundle = recording(seed, 0, seed == 1, seed == 2);
    repeat(*bundle, 4);
    std::size_t elsewhere = 0;
    for (const TableId table : {TableId::branches, TableId::blocks, TableId::instructions, TableId::events}) {
      SCOPED_TRACE(table_name(table));
      Table plain = read(bundle, request_of(table, seed == 2), {});
      for (const std::size_t rows : {7U, 100U, 700U, 5000U, 200000U}) {
        SCOPED_TRACE(rows);
        Table cut = read(bundle, request_of(table, seed == 2),
                         {.threads = 3, .segment = 2500, .rows = rows, .elsewhere = &elsewhere});
        expect_equal(plain.rows.get(), cut.rows.get());
        expect_equal(plain.errors.get(), cut.errors.get());
        expect_equal(plain.gaps.get(), cut.gaps.get());
      }
    }
    EXPECT_GE(elsewhere, 20U) << "nothing was handed over";
  }
}

// Errors and gaps come with the part that has the rows around them, whatever moves the rows.
TEST(SpeculativeSource, ErrorsAndGapsComeWithTheirPart) {
  std::size_t parts_with_sides = 0;
  for (const std::uint64_t seed : {4U, 5U}) {
    const auto bundle = recording_with_gaps(seed);
    for (const TableId table : {TableId::branches, TableId::instructions, TableId::events}) {
      SCOPED_TRACE(table_name(table));
      for (const std::size_t rows : {50U, 700U, 5000U}) {
        SCOPED_TRACE(rows);
        const Table plain = read(bundle, request_of(table, false), {.rows = rows, .fast = false});
        const std::set<std::size_t> counts(plain.error_rows.begin(), plain.error_rows.end());
        parts_with_sides += counts.size();
        std::size_t elsewhere = 0;
        for (std::size_t* const destination : {static_cast<std::size_t*>(nullptr), &elsewhere}) {
          for (const std::size_t threads : {1U, 3U}) {
            const Table cut =
                read(bundle, request_of(table, false),
                     {.threads = threads, .segment = 2500, .rows = rows, .elsewhere = destination});
            EXPECT_EQ(plain.error_rows, cut.error_rows) << threads << " threads";
          }
        }
      }
    }
  }
  EXPECT_GE(parts_with_sides, 200U);
}

class Cut {
 public:
  explicit Cut(std::shared_ptr<trace::TraceBundle> bundle)
      : bundle_(std::move(bundle)), image_(bundle_), pool_(image_) {
    request_.time = false;
  }

  struct Result {
    SpeculativeSource::Figures figures;
    std::size_t rows = 0;
  };

  // Decodes in segments of so many bytes, for so many slices.
  Result decode(std::size_t segment, unsigned slices) {
    const std::atomic<bool> cancelled{false};
    RowSink sink(request_, cancelled);
    const trace::Stream& stream = bundle_->streams[0];
    sink.begin_stream(0, stream, nullptr);
    SpeculativeSource::Input input{.request = request_,
                                   .index = 0,
                                   .stream = stream,
                                   .make = flow::roundtrip::maker_of(stream, *bundle_, image_, pool_),
                                   .track = nullptr,
                                   .threads = 3,
                                   .segment = segment};
    if (flow::changes_with_time(*bundle_, stream)) {
      input.track = std::make_unique<time::TimeTrack>(stream.data.bytes(), bundle_->configuration.clock,
                                                      packet::Errata{});
    }
    SpeculativeSource source(std::move(input), sink);
    for (unsigned i = 0; i < slices; ++i) {
      sink.begin_slice(sink.main()->rows() + 4096, 64);
      if (!source.run()) break;
    }
    return {source.figures(), sink.main()->rows()};
  }

 private:
  std::shared_ptr<trace::TraceBundle> bundle_;
  code::image::Image image_;
  flow::CodeCachePool pool_;
  Request request_;
};

// Segments that were taken, and those that were decoded again. Threads that come late find nothing left to
// do, so that one decode says little; on a busy machine they often do.
SpeculativeSource::Figures figures_of(const std::shared_ptr<trace::TraceBundle>& bundle) {
  Cut cut(bundle);
  SpeculativeSource::Figures sum;
  for (unsigned i = 0; i < 20 || (i < 2000 && sum.taken < 20); ++i) {
    const SpeculativeSource::Figures figures = cut.decode(2000, ~0U).figures;
    sum.taken += figures.taken;
    sum.again += figures.again;
  }
  return sum;
}

TEST(SpeculativeSource, MostPredictionsAreValid) {
  const SpeculativeSource::Figures figures = figures_of(recording(4, 0, true, false));
  EXPECT_GE(figures.taken, 20U);
  EXPECT_LE(figures.again * 10, figures.taken);
}

// The first segments also have the context of the bundle.
TEST(SpeculativeSource, KeepsContextOfStream) {
  const auto bundle = recording(4, 0, true, false);
  bundle->streams[0].pid = bundle->streams[0].tid = 77;
  bundle->configuration.rtit_ctl_known = true;
  const SpeculativeSource::Figures figures = figures_of(bundle);
  EXPECT_GE(figures.taken, 20U);
  EXPECT_LE(figures.again * 10, figures.taken);
}

TEST(SpeculativeSource, FollowsThreadsThatChangeWithTime) {
  const auto bundle = recording(4, 0, true, false);
  std::mt19937_64 random(1);
  changes::add_at_times(*bundle, {}, random);
  ASSERT_GE(bundle->streams[0].switches.size(), 5U);
  for (trace::Switch& one : bundle->streams[0].switches) one.space = trace::kAnySpace;
  std::erase_if(bundle->code, [](const trace::CodeRegion& region) { return region.tsc_from != 0; });
  for (trace::CodeRegion& region : bundle->code) region.tsc_to = trace::kTscMax;
  // The largest core:bus ratio so far is predicted, too. In a short stream it may still grow.
  EXPECT_GE(figures_of(bundle).taken, 20U);
}

// A source that is not read to its end leaves neither threads nor memory.
TEST(SpeculativeSource, StopsAtAnyTime) {
  const auto bundle = recording(4, 0, true, false);
  repeat(*bundle, 8);
  Cut cut(bundle);
  const std::size_t all = cut.decode(1000, ~0U).rows;
  for (unsigned slices = 0; slices < 60; slices += 3) EXPECT_LE(cut.decode(1000, slices).rows, all);
  EXPECT_EQ(cut.decode(1000, ~0U).rows, all);
}

}  // namespace
}  // namespace ptkit::tables::columns
