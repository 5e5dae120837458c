// Streams of random programs, and all tables of them, for tests that compare ways to decode.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "tables/columns/read/reader.h"
#include "unit/support/traces/changes.h"
#include "unit/support/traces/roundtrip.h"

namespace ptkit::tables::columns {

inline std::shared_ptr<trace::TraceBundle> recording(std::uint64_t seed, std::uint32_t overflow_per_mille,
                                                     bool return_compression, bool timing, bool tsc = true,
                                                     std::uint32_t steps = 40000) {
  trace_unit::generator::GeneratorConfig config;
  config.ptw = true;
  config.psb_bytes = 512;
  config.tsc_ctc_numerator = 168;
  config.tsc_ctc_denominator = 2;
  config.return_compression = return_compression;
  config.tsc = tsc;
  config.mtc = config.cyc = timing;
  walk::WalkOptions options;
  options.seed = seed;
  options.overflow_per_mille = overflow_per_mille;
  options.odd_return_per_mille = 20;
  options.steps = steps;
  return flow::roundtrip::bundle_of(walk::random_walk(options), config);
}

// The first stream, again and again: the end of one and the beginning of the next do not fit.
inline void repeat(trace::TraceBundle& bundle, unsigned times) {
  const base::Bytes once = bundle.streams[0].data.bytes();
  std::vector<std::uint8_t> bytes;
  for (unsigned i = 0; i < times; ++i) bytes.insert(bytes.end(), once.begin(), once.end());
  bundle.streams[0].data = trace::TraceBuffer::from_vector(std::move(bytes));
}

inline void damage(trace::TraceBundle& bundle, unsigned count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const base::Bytes whole = bundle.streams[0].data.bytes();
  std::vector<std::uint8_t> bytes(whole.begin(), whole.end());
  for (unsigned i = 0; i < count; ++i)
    bytes[static_cast<std::size_t>(random() % bytes.size())] = static_cast<std::uint8_t>(random());
  bundle.streams[0].data = trace::TraceBuffer::from_vector(std::move(bytes));
}

// Overflows, damage, and with some seeds a loss, or times that go back.
inline std::shared_ptr<trace::TraceBundle> recording_with_gaps(std::uint64_t seed) {
  const auto bundle = recording(seed, 5, seed % 2 == 0, seed % 3 == 0);
  if (seed > 3) repeat(*bundle, 2);
  damage(*bundle, static_cast<unsigned>(seed * 4), seed);
  trace::KnownLoss loss;
  loss.offset = bundle->streams[0].data.size() / (seed + 1);
  loss.lost_bytes = 17;
  if (seed % 2 == 0) bundle->streams[0].losses = {loss};
  return bundle;
}

// Code and threads change with time; in some, data is lost or time goes back.
inline std::shared_ptr<trace::TraceBundle> changing_recording(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto bundle = recording(seed, seed % 4 == 3 ? 5 : 0, seed % 3 != 0, seed % 2 == 0);
  changes::add_at_times(*bundle, {}, random);
  if (seed % 4 == 1) repeat(*bundle, 2);
  return bundle;
}

struct Table {
  std::unique_ptr<Batch> rows;
  std::unique_ptr<Batch> errors;
  std::unique_ptr<Batch> gaps;
  std::vector<std::size_t> error_rows;  // errors and gaps up to the end of each part
};

struct Reading {
  std::size_t threads = 1;
  std::size_t segment = 0;
  std::size_t rows = SIZE_MAX;  // in a part
  std::shared_ptr<const flow::index::Index> index{};
  bool fast = true;
  std::size_t* elsewhere = nullptr;  // to read parts by read_parts()
};

inline void put_behind(std::unique_ptr<Batch>& all, std::unique_ptr<Batch> more) {
  if (more == nullptr) return;
  if (all == nullptr) {
    all = std::move(more);
  } else {
    ASSERT_TRUE(all->append(std::move(*more)));
  }
}

// The errors and gaps of the part that was taken.
inline void put_sides_behind(Table& out, TableReader& reader) {
  put_behind(out.errors, reader.take_errors());
  put_behind(out.gaps, reader.take_gaps());
  const auto rows_of = [](const std::unique_ptr<Batch>& side) { return side == nullptr ? 0 : side->rows(); };
  out.error_rows.push_back(rows_of(out.errors) + rows_of(out.gaps));
}

// Reads the table in parts, into reused memory. `elsewhere` counts parts in memory of the reader.
inline Table read_parts(TableReader& reader, std::size_t rows, std::size_t& elsewhere) {
  const auto pool = std::make_shared<MemoryPool>();
  const Request& request = reader.request();
  const PartMemory part =
      take_part(*pool, request.table, stored_columns(request), rows + TableReader::kSlackRows);
  Table out;
  out.rows = std::make_unique<Batch>(request.table, stored_columns(request));
  for (std::size_t count = rows; count == rows;) {
    reader.attach(part);
    auto step = TableReader::Step::MORE;
    while (step == TableReader::Step::MORE) step = reader.step(rows);
    std::vector<OwnerRun> runs;
    const PartMemory part_memory = reader.end_part(rows, runs);
    count = part_memory.rows;
    if (part_memory.memory != part.memory) ++elsewhere;
    Batch copy(request.table, stored_columns(request));
    EXPECT_TRUE(copy.attach(part_memory.columns, count, part_memory.memory));
    copy.adopt_uniform(part_memory.uniform, part_memory.values);
    for (const OwnerRun& run : runs) {
      copy.add_rows(run.row - copy.rows());
      copy.begin_run(run);
    }
    copy.add_rows(count - copy.rows());
    EXPECT_TRUE(out.rows->append_rows(copy, 0, count));
    put_sides_behind(out, reader);
  }
  return out;
}

inline Table read(const std::shared_ptr<trace::TraceBundle>& bundle, const Request& request,
                  const Reading& how) {
  const code::image::Image image(bundle);
  flow::CodeCachePool pool(image);
  flow::FlowOptions options;
  options.fast = how.fast;
  TableReader::Input input;
  input.bundle = bundle;
  for (std::uint32_t i = 0; i < bundle->streams.size(); ++i) input.streams.push_back(i);
  const auto make = [&](const trace::Stream& of, flow::FlowSink& sink, time::TimeTrack* track,
                        const flow::FlowState* from, bool ahead) {
    return from == nullptr ? std::make_unique<flow::FlowDecoder>(of, bundle->configuration, image, options,
                                                                 sink, track, &pool)
                           : std::make_unique<flow::FlowDecoder>(of, bundle->configuration, image, options,
                                                                 sink, track, &pool, *from, ahead);
  };
  input.factory = [&](std::uint32_t stream, flow::FlowSink& sink, time::TimeTrack* track) {
    return make(bundle->streams[stream], sink, track, nullptr, false);
  };
  input.decoder = make;
  input.threads = how.threads;
  input.index = how.index;
  input.segment = how.segment;
  TableReader reader(std::move(input), request);
  if (how.elsewhere != nullptr) return read_parts(reader, how.rows, *how.elsewhere);
  Table out;
  for (auto step = TableReader::Step::MORE; step != TableReader::Step::END;) {
    step = reader.step(how.rows);
    if (step == TableReader::Step::MORE) continue;
    put_behind(out.rows, reader.take(how.rows));
    put_sides_behind(out, reader);
  }
  return out;
}

inline Request request_of(TableId table, bool time) {
  Request request;
  request.table = table;
  request.time = time;
  return request;
}

inline void expect_equal(Batch* a, Batch* b) {
  ASSERT_EQ(a == nullptr, b == nullptr);
  if (a == nullptr) return;
  ASSERT_EQ(a->rows(), b->rows());
  ASSERT_TRUE(a->set_varying(kAllColumns) && b->set_varying(kAllColumns));  // uniform columns have no cells
  const auto columns = columns_of(a->table());
  for (std::size_t i = 0; i < columns.size() && a->rows() != 0; ++i) {
    if ((a->mask() >> i & 1) == 0 && (b->mask() >> i & 1) == 0) continue;
    ASSERT_EQ(std::memcmp(a->data(i), b->data(i), a->rows() * cell_size(columns[i].type)), 0)
        << table_name(a->table()) << '.' << columns[i].name;
  }
  // The last run may have no rows.
  const auto runs_of = [](const Batch& batch) {
    std::vector<OwnerRun> runs = batch.runs();
    if (!runs.empty() && runs.back().row == batch.rows()) runs.pop_back();
    return runs;
  };
  const std::vector<OwnerRun> runs = runs_of(*a);
  const std::vector<OwnerRun> others = runs_of(*b);
  ASSERT_EQ(runs.size(), others.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].row, others[i].row);
    EXPECT_TRUE(runs[i].same_owner(others[i]));
  }
}

inline constexpr TableId kTables[] = {TableId::branches, TableId::blocks, TableId::instructions,
                                      TableId::events,   TableId::errors, TableId::gaps,
                                      TableId::edges};

}  // namespace ptkit::tables::columns
