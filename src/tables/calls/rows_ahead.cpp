#include "tables/calls/rows_ahead.h"

#include <chrono>
#include <new>
#include <utility>

namespace ptkit::tables::calls {

RowsAhead::RowsAhead(tables::columns::TableReader& reader, std::size_t rows)
    : reader_(reader), rows_(rows), thread_([this] { read(); }) {}

RowsAhead::~RowsAhead() {
  reader_.cancel();
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<RowsAhead::Part> RowsAhead::take() {
  constexpr std::chrono::milliseconds kWait{4};
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kWait, [this] { return !parts_.empty(); })) return std::nullopt;
  std::optional<Part> part(std::move(parts_.front()));
  parts_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return part;
}

void RowsAhead::read() {
  bool goes_on = true;
  while (goes_on) {
    Part part;
    try {
      part = read_part();
    } catch (const std::bad_alloc&) {
      part = {};
    }
    goes_on = part.step == Step::READY;
    goes_on = put(std::move(part)) && goes_on;
  }
}

RowsAhead::Part RowsAhead::read_part() {
  Part part;
  do {
    part.step = reader_.step(rows_);
  } while (part.step == Step::MORE && !reader_.cancelled());
  if (part.step != Step::READY && part.step != Step::END) return part;
  part.rows = reader_.take(part.step == Step::END ? SIZE_MAX : rows_, false);
  part.errors = reader_.take_errors();
  part.gaps = reader_.take_gaps();
  if (part.rows == nullptr || part.errors == nullptr || part.gaps == nullptr) return {};
  return part;
}

bool RowsAhead::put(Part part) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stop_ || parts_.size() < kMostParts; });
  if (stop_) return false;
  parts_.push_back(std::move(part));
  lock.unlock();
  changed_.notify_all();
  return true;
}

}  // namespace ptkit::tables::calls
