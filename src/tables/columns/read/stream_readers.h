// Streams on several threads: each stream is read by one of them, by a reader of its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace ptkit::tables::columns {

// `Reader` has step(), which answers MORE, END, NO_MEMORY or NO_ROOM, and cancel().
template <typename Reader>
class StreamReaders {
 public:
  // Makes the reader of a stream, which is the `index`-th one.
  using Make = std::function<std::unique_ptr<Reader>(std::size_t index)>;
  // Takes what a stream's reader has read. Streams come in their order, one at a time.
  using Take = std::function<void(std::size_t index, Reader& reader)>;

  StreamReaders(std::size_t streams, std::size_t threads, Make make, Take take)
      : make_(std::move(make)), take_(std::move(take)), streams_(streams), read_(streams) {
    start(std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(streams, 1)));
  }
  ~StreamReaders() {
    stop_ = true;
    {
      const std::scoped_lock lock(mutex_);
      for (Reader* const reader : reading_) reader->cancel();
    }
    for (std::thread& thread : threads_) thread.join();
  }
  StreamReaders(const StreamReaders&) = delete;
  StreamReaders& operator=(const StreamReaders&) = delete;

  // Waits until all streams were read, or for this time. True: all is done, or there is no more memory.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, time, [this] { return working_ == 0; });
  }
  [[nodiscard]] bool out_of_memory() const noexcept { return out_of_memory_; }

 private:
  // Enters a reader among those that the destructor cancels.
  class Reading {
   public:
    Reading(StreamReaders& all, Reader& reader) : all_(all), reader_(reader) {
      const std::scoped_lock lock(all_.mutex_);
      all_.reading_.push_back(&reader_);
    }
    ~Reading() {
      const std::scoped_lock lock(all_.mutex_);
      std::erase(all_.reading_, &reader_);
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    StreamReaders& all_;
    Reader& reader_;
  };

  // Creates as many threads as the system permits.
  void start(std::size_t count) {
    working_ = count;
    try {
      for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      std::unique_lock lock(mutex_);
      working_ -= count - threads_.size();
      if (!threads_.empty()) return;
      ++working_;
      lock.unlock();
      work();
    }
  }

  void work() {
    try {
      for (std::size_t index = next_++; index < streams_ && !stop_; index = next_++) {
        auto reader = make_(index);
        if (!read(*reader)) throw std::bad_alloc();
        std::unique_lock lock(mutex_);
        read_[index] = std::move(reader);
        take_in_order(lock);
      }
    } catch (const std::bad_alloc&) {
      out_of_memory_ = true;
      stop_ = true;
    }
    const std::scoped_lock lock(mutex_);
    --working_;
    done_.notify_all();
  }

  [[nodiscard]] bool read(Reader& reader) {
    using Step = typename Reader::Step;
    const Reading reading(*this, reader);
    auto step = Step::MORE;
    while (step == Step::MORE && !stop_) step = reader.step();
    return step != Step::NO_MEMORY && step != Step::NO_ROOM;
  }

  // Takes the streams that are read, up to the first one that is not.
  void take_in_order(std::unique_lock<std::mutex>& lock) {
    if (taking_) return;
    taking_ = true;
    while (next_take_ < streams_ && read_[next_take_] != nullptr && !stop_) {
      const std::size_t index = next_take_++;
      const std::unique_ptr<Reader> reader = std::move(read_[index]);
      lock.unlock();
      take_(index, *reader);
      lock.lock();
    }
    taking_ = false;
  }

  Make make_;
  Take take_;
  std::size_t streams_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> out_of_memory_{false};
  std::mutex mutex_;  // guards the members below
  std::condition_variable done_;
  std::size_t working_ = 0;
  std::size_t next_take_ = 0;
  bool taking_ = false;
  std::vector<Reader*> reading_;
  std::vector<std::unique_ptr<Reader>> read_;  // by stream; null: not read yet, or taken
  std::vector<std::thread> threads_;
};

}  // namespace ptkit::tables::columns
