// The execution log: runs of instructions without a jump between them, CPU and context of each,
// and the code as it was then. tests/machines/emulated/comparison/executed.py reads it.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace ptkit::emulated {

using Page = std::array<std::uint8_t, 4096>;

// Who executes: a change begins a new run.
struct Context {
  std::uint64_t cr3 = 0;
  std::uint8_t cpl = 0;
  std::uint8_t bits = 64;  // 16, 32, 64
  bool operator==(const Context&) const = default;
};

// PATH has records of 16 bytes, little-endian: kind, CPU, two bytes, four bytes, eight bytes; PATH.code the
// pages of CODE records and PATH.sizes a byte for every instruction of RUN records, both in the records'
// order.
class TruthLog {
 public:
  enum Kind : std::uint8_t {
    RUN = 1,      // four bytes: instructions; eight: where the first one is
    CONTEXT = 2,  // two bytes: CPL, bits; eight: CR3. Of the CPU's runs that follow
    CODE =
        3,  // eight bytes: the address of a page, of the CPU's CR3 where bit 63 is clear. Of runs that follow
    PART = 4,  // a new part of the log begins
  };
  enum class When : std::uint8_t { NEVER, WHILE_TRACING, ALWAYS };

  explicit TruthLog(const char* path);

  void begin_part(When when);
  [[nodiscard]] bool on(bool tracing) const {
    return when_ == When::ALWAYS || (when_ == When::WHILE_TRACING && tracing);
  }

  void run(unsigned cpu, std::uint64_t start, std::span<const std::uint8_t> sizes);
  void context(unsigned cpu, const Context& context);
  // `bytes` of code at `address` were executed; `page` is the page they are in.
  void code(unsigned cpu, std::uint64_t cr3, std::uint64_t address, std::size_t bytes,
            const std::uint8_t* page);

 private:
  struct Key {
    std::uint64_t space;
    std::uint64_t page;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return (key.space * 0x9e3779b97f4a7c15U) ^ (key.page >> 12);
    }
  };
  void record(Kind kind, unsigned cpu, std::uint16_t two, std::uint32_t four, std::uint64_t eight);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  File records_;
  File code_;
  File sizes_;
  When when_ = When::NEVER;
  std::unordered_map<Key, Page, Hash> pages_;  // as they were written last
};

// The runs of one processor on their way to the log.
class RunCollector {
 public:
  RunCollector(TruthLog& log, unsigned cpu) : log_(log), cpu_(cpu) {}

  // An instruction retired. `page`: the host's address of the page it begins in.
  void retired(std::uint64_t ip, unsigned size, const Context& context, const std::uint8_t* page);
  void close();

 private:
  TruthLog& log_;
  unsigned cpu_;
  Context context_;
  bool context_told_ = false;
  std::uint64_t start_ = 0;
  std::uint64_t end_ = 0;
  std::vector<std::uint8_t> sizes_;
  const std::uint8_t* page_ = nullptr;
};

}  // namespace ptkit::emulated
