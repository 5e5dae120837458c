#include "tables/columns/read/stream_workers.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

namespace ptkit::tables::columns {
namespace {

// Appends rows of errors or gaps. False: out of memory.
[[nodiscard]] bool append(std::unique_ptr<Batch>& all, std::unique_ptr<Batch> more) {
  if (more == nullptr) return true;
  if (all != nullptr) return all->append(std::move(*more));
  all = std::move(more);
  return true;
}

}  // namespace

StreamWorkers::StreamWorkers(std::vector<TableReader*> readers, std::size_t threads)
    : readers_(std::move(readers)), rows_(readers_.size()) {
  for (const TableReader* reader : readers_) bytes_total_ += reader->bytes_total();
  make_windows();
  start(std::min(std::max<std::size_t>(threads, 1), readers_.size()));
}

StreamWorkers::~StreamWorkers() {
  cancel();
  for (std::thread& thread : threads_) thread.join();
}

// Gives each reader its window of the table. Does nothing if the number of rows is not known, or if there is
// no memory for all: smaller tables may fit.
void StreamWorkers::make_windows() {
  if (readers_.empty()) return;
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  for (const TableReader* reader : readers_) {
    const auto rows = reader->known_rows();
    if (!rows) return;
    ends.push_back(end += *rows);
  }
  const Request& request = readers_.front()->request();
  auto all = std::make_unique<Batch>(request.table, stored_columns(request));
  if (!all->reserve_windows(end)) return;
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    readers_[i]->use_window(all->window(begin, ends[i] - begin));
  }
  all_ = std::move(all);
  window_ends_ = std::move(ends);
}

// Creates as many threads as the system permits.
void StreamWorkers::start(std::size_t count) {
  working_ = count;
  try {
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    const std::scoped_lock lock(mutex_);
    working_ -= count - threads_.size();
    if (threads_.empty()) out_of_memory_ = true;
  }
}

bool StreamWorkers::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return done_.wait_for(lock, time, [this] { return working_ == 0; });
}

void StreamWorkers::cancel() noexcept {
  const std::scoped_lock lock(mutex_);
  if (working_ == 0) return;
  stop_ = true;
  for (TableReader* reader : readers_) reader->cancel();
}

void StreamWorkers::work() {
  for (std::size_t index = next_++; index < readers_.size() && !stop_; index = next_++) {
    bool good = false;
    try {
      good = read(index) && add_read_rows();
    } catch (const std::bad_alloc&) {
    }
    if (good) continue;
    if (!stop_) out_of_memory_ = true;
    stop_ = true;
  }
  const std::scoped_lock lock(mutex_);
  if (--working_ == 0) done_.notify_all();
}

// Reads a stream to its end. False: no memory, or stopped.
bool StreamWorkers::read(std::size_t index) {
  TableReader& reader = *readers_[index];
  auto step = TableReader::Step::MORE;
  while (step == TableReader::Step::MORE && !stop_) step = reader.step(SIZE_MAX);
  if (step != TableReader::Step::END) return false;
  Rows rows{reader.take_window(), reader.take(SIZE_MAX), reader.take_errors(), reader.take_gaps(), true};
  if (rows.main == nullptr) return false;
  const std::scoped_lock lock(mutex_);
  rows_[index] = std::move(rows);
  return true;
}

// Copies the rows of the readers that are next in order. False: out of memory.
bool StreamWorkers::add_read_rows() {
  for (;;) {
    Rows rows;
    std::size_t row = 0;
    {
      const std::scoped_lock lock(mutex_);
      if (next_added_ == rows_.size() || !rows_[next_added_].read) return true;
      rows = std::move(rows_[next_added_]);
      rows_[next_added_].read = false;
      bytes_added_ += readers_[next_added_]->bytes_total();
      if (!add_rows(next_added_++, rows, row)) return false;
    }
    if (rows.main == nullptr) continue;
    const std::shared_lock copy(growth_);
    all_->copy_cells(row, *rows.main, 0, rows.main->rows());
  }
}

// Makes room in the table. `rows.main` is null if nothing has to be copied. Needs the lock.
bool StreamWorkers::add_rows(std::size_t index, Rows& rows, std::size_t& row) {
  if (!append(errors_, std::move(rows.errors)) || !append(gaps_, std::move(rows.gaps))) return false;
  if (all_ == nullptr) {
    all_ = std::move(rows.main);
    return true;
  }
  const std::unique_lock grow(growth_);
  const bool has_windows = !window_ends_.empty();
  if (has_windows && (aside_ != nullptr || all_->rows() + rows.count() != window_ends_[index]))
    return put_aside(rows);
  if (rows.window != nullptr && !all_->add_window(*rows.window)) return false;
  row = all_->rows();
  rows_copied_ += rows.main->rows();
  if (has_windows) return all_->add_rows_like(*rows.main, 0, rows.main->rows());
  expect_rows(row + rows.main->rows());
  constexpr std::size_t kLarge = std::size_t{64} << 20U;
  if (rows.main->bytes() > kLarge && readers_.size() < threads_.size() * 8) {
    // Much of the table is held twice, unless memory is freed on the way.
    const bool good = all_->append(std::move(*rows.main));
    rows.main.reset();
    return good;
  }
  return all_->add_rows_like(*rows.main, 0, rows.main->rows());
}

// Rows behind those of the table: other readers still write to its memory.
bool StreamWorkers::put_aside(Rows& rows) {
  rows_copied_ += rows.count();
  if (aside_ == nullptr) aside_ = std::make_unique<Batch>(all_->table(), all_->mask());
  if (rows.window != nullptr && !aside_->append_rows(*rows.window, 0, rows.window->rows())) return false;
  const auto rest = std::move(rows.main);
  return aside_->append(std::move(*rest));
}

void StreamWorkers::expect_rows(std::size_t added_rows) {
  if (bytes_added_ == 0) return;
  const double ratio = static_cast<double>(bytes_total_) / static_cast<double>(bytes_added_);
  all_->expect(static_cast<std::size_t>(static_cast<double>(added_rows) * ratio));
}

std::unique_ptr<Batch> StreamWorkers::take_rows() {
  if (aside_ != nullptr && !all_->append(std::move(*aside_))) return nullptr;
  aside_.reset();
  if (all_ != nullptr && all_->table() == TableId::edges && readers_.size() > 1 && !combine_edges(*all_))
    return nullptr;
  if (all_ != nullptr) all_->shrink();
  return std::move(all_);
}

}  // namespace ptkit::tables::columns
