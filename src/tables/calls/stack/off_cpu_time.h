// Time in which a thread did not execute traced code, although its frames were open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptkit::tables::calls {

struct StreamPosition;  // tables/calls/stack/frame.h

// A length of time in TSC ticks: it lies in [least, most].
struct Length {
  std::uint64_t least = 0;
  std::uint64_t most = 0;

  bool operator==(const Length&) const = default;
  [[nodiscard]] std::uint64_t error() const noexcept { return most - least; }
  void add(const Length& other) noexcept {
    least += other.least;
    most += other.most;
  }
};

struct OffCpuTime {
  Length untraced;  // packets were disabled
  Length switched;  // another thread or another stack of the thread was executed
  Length lost;      // control flow is not known

  bool operator==(const OffCpuTime&) const = default;
  void add(const OffCpuTime& other) noexcept {
    untraced.add(other.untraced);
    switched.add(other.switched);
    lost.add(other.lost);
  }
  [[nodiscard]] bool any() const noexcept {
    return (untraced.least | untraced.most | switched.least | switched.most | lost.least | lost.most) != 0;
  }
  // The rest without a part of it.
  [[nodiscard]] OffCpuTime without(const OffCpuTime& part) const noexcept;
};

// A time in which the thread of a stack did not execute traced code, TSC ticks: no more than what is certain.
struct OffCpuInterval {
  enum class Kind : std::uint8_t { UNTRACED, SWITCHED, LOST };
  Kind kind = Kind::UNTRACED;
  bool known = false;              // else `begin` and `end` are 0
  std::uint64_t begin = 0;         // at its latest
  std::uint64_t end = 0;           // at its earliest, if that is not before the begin
  std::uint64_t instructions = 0;  // LOST: of the thread, before it
};

class OffCpuListener {
 public:
  virtual ~OffCpuListener() = default;
  // Times come in their order. All that control flow is lost in come, and the others if they are known.
  virtual void on_off_cpu(const OffCpuInterval& interval) = 0;
  // The thread goes on with another stack.
  virtual void on_other_stack() = 0;
};

// Sums up the time of one stack. Frames refer to the sum at their begin.
class OffCpuClock {
 public:
  // `listener` must outlive this; null: there is none.
  explicit OffCpuClock(OffCpuListener* listener = nullptr) : listener_(listener) {}

  // Events of the thread, in the order of the stream.
  void disable(const StreamPosition& position);
  void enable(const StreamPosition& position) {
    if (is_off_) [[unlikely]]
      end_untraced(position);
  }
  [[nodiscard]] bool is_off() const noexcept { return is_off_; }
  // Packets were disabled when lose() or finish() came, or are now.
  [[nodiscard]] bool ended_off() const noexcept { return is_off_ || ended_off_; }
  // Frames begin after a loss.
  void begin_again() noexcept { ended_off_ = false; }
  void leave(const StreamPosition& position);
  // Another stack of the thread is executed, until this one comes back.
  void suspend(const StreamPosition& position);
  void set_suspended() noexcept { is_suspended_ = true; }
  void come_back(const StreamPosition& position);
  // Control flow is known up to `last`, and from `position` on.
  void lose(const StreamPosition& last, const StreamPosition& position);
  void finish(const StreamPosition& position);
  // The sum has all that was before the position.
  void sum_up_to(const StreamPosition& position);

  [[nodiscard]] const OffCpuTime& sum() const noexcept { return sum_; }
  // The number of the present sum, for frames that begin.
  [[nodiscard]] std::uint32_t begin() {
    if (begins_.empty() || begins_.back().version != version_) begins_.push_back({sum_, version_});
    return static_cast<std::uint32_t>(begins_.size() - 1);
  }
  // For the only frame that is open: it began when the sum was this.
  [[nodiscard]] std::uint32_t begin_at(const OffCpuTime& sum) {
    begins_.assign(1, {sum, kNoVersion});
    return 0;
  }
  // Of a frame that began with this number.
  [[nodiscard]] OffCpuTime since(std::uint32_t number) const noexcept {
    const Begin& begin = begins_[number];
    return begin.version == version_ ? OffCpuTime{} : sum_.without(begin.sum);
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return begins_.capacity() * sizeof(Begin); }
  // How many numbers there are.
  [[nodiscard]] std::size_t begins() const noexcept { return begins_.size(); }
  // stack_state.cpp
  template <typename Fields>
  void fields_of_state(Fields& fields);
  // Forgets the numbers above those of open frames.
  void keep(std::uint32_t numbers) {
    if (begins_.size() > numbers) begins_.resize(numbers);
  }

 private:
  struct Begin {
    OffCpuTime sum;
    std::uint64_t version = 0;
  };
  static constexpr std::uint64_t kNoVersion = UINT64_MAX;

  struct Since {
    std::uint64_t earliest = 0;
    std::uint64_t latest = 0;
    bool known = false;
  };
  [[nodiscard]] static Since at(const StreamPosition& position) noexcept;
  void end_untraced(const StreamPosition& position);
  void add(OffCpuInterval::Kind kind, const Since& begin, const Since& end);
  void report_loss(const Since& begin, const Since& end, std::uint64_t instructions);

  OffCpuTime sum_;
  std::uint64_t version_ = 0;  // counts changes of the sum
  std::vector<Begin> begins_;  // of open frames, outermost first: frames that begin together have one
  Since since_;                // from when on packets are disabled, or another thread is executed
  bool is_off_ = false;
  bool ended_off_ = false;
  bool is_left_ = false;
  bool is_suspended_ = false;  // the thread that was left goes on with another stack
  OffCpuListener* listener_;
};

}  // namespace ptkit::tables::calls
