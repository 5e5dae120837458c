#include "tables/columns/span_times.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/cpu/cells_avx512.h"
#include "base/cpu/isa.h"

namespace ptkit::tables::columns {
namespace {

// Most runs are short. Each run is written in multiples of this number of cells, and the next run overwrites
// the excess.
constexpr std::size_t kWide = kSpanSlack;

// Runs with one bulk query of their times.
constexpr std::size_t kPart = 256;

template <typename T>
void put_wide(T* cells, std::size_t row, std::size_t end, T value) noexcept {
  std::array<T, kWide> wide;
  wide.fill(value);
  do {
    std::memcpy(cells + row, wide.data(), sizeof wide);
    row += kWide;
  } while (row < end);
}

class Part {
 public:
  // Takes as many runs from the front as fit. Skips runs without rows, which need no time.
  void take(std::span<const flow::SpanRun>& runs, std::size_t first_row) noexcept {
    size_ = 0;
    begin_ = first_row;
    std::uint64_t row = first_row;
    while (!runs.empty() && size_ < kPart) {
#if PT_SIMD_X86
      if (wide_ && runs.size() >= kLanes) {
        row = take_wide(runs, row);
        continue;
      }
#endif
      const flow::SpanRun& run = runs.front();
      runs = runs.subspan(1);
      if (run.row_end <= row) continue;
      row = run.row_end;
      queries_[size_] = {run.since, run.offset};
      ends_[size_++] = static_cast<std::size_t>(row);
    }
  }
  [[nodiscard]] std::size_t row_end() const noexcept { return size_ == 0 ? begin_ : ends_[size_ - 1]; }

  void ask(time::TimeTrack* track) {
    if (track != nullptr) track->at(std::span(queries_).first(size_), ranges_.data());
  }

  void select(TimeFilter& filter) const {
    for_each([&](std::size_t row, std::size_t end, std::size_t i) {
      const time::TimeRange& range = ranges_[i];
      if (range.known && range.tsc >= filter.begin && range.tsc < filter.end) filter.keep(row, end);
    });
  }

  void fill(const SpanCells& cells) const noexcept {
    if (cells.tsc != nullptr && cells.tsc_error != nullptr) {
      fill_times(cells.tsc, cells.tsc_error);
    } else if (cells.tsc != nullptr) {
      for_each([&](auto row, auto end, auto i) { put_wide(cells.tsc, row, end, ranges_[i].tsc); });
    } else if (cells.tsc_error != nullptr) {
      for_each([&](auto row, auto end, auto i) { put_wide(cells.tsc_error, row, end, ranges_[i].error); });
    }
    if (cells.tsc_source != nullptr) {
      for_each([&](auto row, auto end, auto i) {
        put_wide(cells.tsc_source, row, end, static_cast<std::uint8_t>(ranges_[i].source));
      });
    }
    if (cells.offset != nullptr) {
      for_each([&](auto row, auto end, auto i) { put_wide(cells.offset, row, end, queries_[i].packet()); });
    }
    if (cells.flags != nullptr) mark_known(cells.flags);
  }

 private:
  // Calls visit(row, row_end, index) for each run.
  template <typename Visit>
  void for_each(Visit visit) const noexcept {
    std::size_t row = begin_;
    for (std::size_t i = 0; i < size_; ++i) {
      visit(row, ends_[i], i);
      row = ends_[i];
    }
  }

  // Fills both columns in one loop, so that the length of a run is predicted once.
  void fill_times(std::uint64_t* tsc, std::uint32_t* error) const noexcept {
#if PT_SIMD_X86
    if (wide_) return fill_times_wide(tsc, error);
#endif
    for_each([&](std::size_t row, std::size_t end, std::size_t i) {
      std::array<std::uint64_t, kWide> tscs;
      std::array<std::uint32_t, kWide> errors;
      tscs.fill(ranges_[i].tsc);
      errors.fill(ranges_[i].error);
      do {
        std::memcpy(tsc + row, tscs.data(), sizeof tscs);
        std::memcpy(error + row, errors.data(), sizeof errors);
        row += kWide;
      } while (row < end);
    });
  }

#if PT_SIMD_X86
  // Eight runs at once. Compresses away those without rows.
  PT_TARGET_AVX512 std::uint64_t take_wide(std::span<const flow::SpanRun>& runs, std::uint64_t row) noexcept {
    static_assert(sizeof(flow::SpanRun) == 24 && offsetof(flow::SpanRun, row_end) == 16);
    const auto* const cells = reinterpret_cast<const std::uint8_t*>(runs.data());
    const __m512i a = _mm512_loadu_si512(cells);
    const __m512i b = _mm512_loadu_si512(cells + 64);
    const __m512i c = _mm512_loadu_si512(cells + 128);
    const __m512i ends_ab = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(2, 5, 8, 11, 14, 0, 0, 0), b);
    const __m512i ends = _mm512_permutex2var_epi64(ends_ab, _mm512_setr_epi64(0, 1, 2, 3, 4, 9, 12, 15), c);
    const __m512i first = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 1, 3, 4, 6, 7, 9, 10), b);
    const __m512i second = _mm512_permutex2var_epi64(b, _mm512_setr_epi64(4, 5, 7, 8, 10, 11, 13, 14), c);
    const __m512i before = _mm512_alignr_epi64(ends, _mm512_set1_epi64(static_cast<long long>(row)), 7);
    const unsigned some = _mm512_cmpgt_epu64_mask(ends, before);
    time::TimeQuery* const asked = queries_.data() + size_;
    _mm512_storeu_si512(asked, _mm512_maskz_compress_epi64(base::cpu::halves(some & 0xf), first));
    _mm512_storeu_si512(asked + std::popcount(some & 0xf),
                        _mm512_maskz_compress_epi64(base::cpu::halves(some >> 4U), second));
    _mm512_storeu_si512(ends_.data() + size_, _mm512_maskz_compress_epi64(static_cast<__mmask8>(some), ends));
    size_ += static_cast<std::size_t>(std::popcount(some));
    const std::uint64_t end = runs[kLanes - 1].row_end;
    runs = runs.subspan(kLanes);
    return std::max(row, end);
  }

  PT_TARGET_AVX512 void fill_times_wide(std::uint64_t* tsc, std::uint32_t* error) const noexcept {
    static_assert(kWide == 16);
    std::size_t row = begin_;
    for (std::size_t i = 0; i < size_; ++i) {
      const __m512i time = _mm512_set1_epi64(static_cast<long long>(ranges_[i].tsc));
      const __m512i width = _mm512_set1_epi32(static_cast<int>(ranges_[i].error));
      do {
        _mm512_storeu_si512(tsc + row, time);
        _mm512_storeu_si512(tsc + row + 8, time);
        _mm512_storeu_si512(error + row, width);
        row += kWide;
      } while (row < ends_[i]);
      row = ends_[i];
    }
  }
#endif

  // Successive runs usually have known times, or none has.
  void mark_known(std::uint8_t* flags) const noexcept {
    std::size_t row = begin_;
    for (std::size_t i = 0; i < size_;) {
      const bool known = ranges_[i].known;
      do ++i;
      while (i < size_ && ranges_[i].known == known);
      const std::size_t end = ends_[i - 1];
      if (known) {
        for (std::size_t at = row; at < end; ++at) flags[at] |= std::uint8_t{flow::TIME_KNOWN};
      }
      row = end;
    }
  }

  std::size_t size_ = 0;
  std::size_t begin_ = 0;
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kCells = kPart + kLanes;  // the last runs are queried together
  bool wide_ = base::cpu::isa_choice().isa == base::cpu::Isa::AVX512;
  std::array<time::TimeQuery, kCells> queries_;
  std::array<std::size_t, kCells> ends_;
  std::array<time::TimeRange, kCells> ranges_;
};

}  // namespace

SpanCells span_cells(Batch& batch) noexcept {
  switch (batch.table()) {
    case TableId::branches:
      return {batch.cells<Column::branches_tsc>(), batch.cells<Column::branches_tsc_error>(),
              batch.cells<Column::branches_tsc_source>(), batch.cells<Column::branches_flags>(),
              batch.cells<Column::branches_offset>()};
    case TableId::blocks:
      return {batch.cells<Column::blocks_tsc>(), batch.cells<Column::blocks_tsc_error>(),
              batch.cells<Column::blocks_tsc_source>(), batch.cells<Column::blocks_flags>(),
              batch.cells<Column::blocks_offset>()};
    case TableId::instructions:
      return {batch.cells<Column::instructions_tsc>(), batch.cells<Column::instructions_tsc_error>(),
              batch.cells<Column::instructions_tsc_source>(), batch.cells<Column::instructions_flags>(),
              batch.cells<Column::instructions_offset>()};
    default:
      return {};
  }
}

void fill_spans(std::span<const flow::SpanRun> runs, std::size_t first_row, time::TimeTrack* track,
                const SpanCells& cells, TimeFilter* filter) {
  const bool times = cells.any_time() || filter != nullptr;
  if (!times && cells.offset == nullptr) return;
  Part part;
  while (!runs.empty()) {
    part.take(runs, first_row);
    if (times) part.ask(track);
    if (filter != nullptr) part.select(*filter);
    part.fill(cells);
    first_row = part.row_end();
  }
}

}  // namespace ptkit::tables::columns
