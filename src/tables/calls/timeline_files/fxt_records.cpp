#include "tables/calls/timeline_files/fxt_records.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ptkit::tables::calls {
namespace {

// Types of records.
constexpr std::uint64_t kMetadata = 0, kInitialization = 1, kString = 2, kThread = 3, kEvent = 4,
                        kKernelObject = 7, kLog = 9;
constexpr std::uint64_t kProviderInfo = 1, kProviderSection = 2;  // of metadata
constexpr std::uint64_t kMagic = 0x0016'5478'4604'0010;
constexpr std::uint64_t kProvider = 1;
constexpr std::uint64_t kTicksPerSecond = 1'000'000'000;
constexpr std::uint64_t kProcessObject = 1, kThreadObject = 2;
// Types of arguments.
constexpr std::uint64_t kUint32 = 2, kUint64 = 4, kDouble = 5, kText = 6, kKoid = 8, kBool = 9;
constexpr unsigned kNoArguments = 64;
constexpr unsigned kObjectArguments = 40;

constexpr std::uint64_t argument(std::uint64_t type, std::uint64_t words, std::uint16_t name) noexcept {
  return type | words << 4U | std::uint64_t{name} << 16U;
}

}  // namespace

std::string_view cut_text(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<std::uint8_t>(text[most]) & 0xc0U) == 0x80U) --most;
  return text.substr(0, most);
}

void FxtRecord::text(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < 8 && at + i < text.size(); ++i)
      word |= std::uint64_t{static_cast<std::uint8_t>(text[at + i])} << 8 * i;
    words_.push_back(word);
  }
}

void FxtRecord::integer(std::uint16_t name, std::uint64_t value) {
  ++arguments_;
  if (value <= UINT32_MAX) {
    word(argument(kUint32, 1, name) | value << 32U);
    return;
  }
  word(argument(kUint64, 2, name));
  word(value);
}

void FxtRecord::real(std::uint16_t name, double value) {
  ++arguments_;
  word(argument(kDouble, 2, name));
  word(std::bit_cast<std::uint64_t>(value));
}

void FxtRecord::string(std::uint16_t name, std::uint16_t value) {
  ++arguments_;
  word(argument(kText, 1, name) | std::uint64_t{value} << 32U);
}

void FxtRecord::boolean(std::uint16_t name, bool value) {
  ++arguments_;
  word(argument(kBool, 1, name) | std::uint64_t{value} << 32U);
}

void FxtRecord::koid(std::uint16_t name, std::uint64_t value) {
  ++arguments_;
  word(argument(kKoid, 2, name));
  word(value);
}

void FxtRecord::put(ByteSink& sink, unsigned shift) {
  words_[0] |= std::uint64_t{words_.size()} << 4U;
  if (shift < kNoArguments) words_[0] |= arguments_ << shift;
  arguments_ = 0;
  for (const std::uint64_t word : words_) {
    std::array<char, 8> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(word >> 8 * i & 0xffU);
    sink.put({bytes.data(), bytes.size()});
  }
}

FxtRecords::FxtRecords(ByteSink& sink, std::vector<std::string_view> kept, std::size_t keys,
                       std::size_t most_strings)
    : sink_(sink), kept_(std::move(kept)), most_made_(most_strings - kept_.size()), reference_(keys) {}

void FxtRecords::put_head(std::string_view writer) {
  record_.begin(kMagic & ~std::uint64_t{0xfff0});  // put() adds the size
  record_.put(sink_, kNoArguments);
  record_.begin(kMetadata | kProviderInfo << 16U | kProvider << 20U | std::uint64_t{writer.size()} << 52U);
  record_.text(writer);
  record_.put(sink_, kNoArguments);
  record_.begin(kMetadata | kProviderSection << 16U | kProvider << 20U);
  record_.put(sink_, kNoArguments);
  record_.begin(kInitialization);
  record_.word(kTicksPerSecond);
  record_.put(sink_, kNoArguments);
  for (std::size_t i = 0; i < kept_.size(); ++i)
    if (!kept_[i].empty()) put_string(i + 1, kept_[i]);
}

std::uint16_t FxtRecords::add_string(std::size_t key, std::string_view text) {
  const std::size_t at = made_++ % most_made_;
  const auto reference = static_cast<std::uint16_t>(kept_.size() + 1 + at);
  if (at < owner_.size()) {
    // The string that had the reference; it may have another one by now.
    if (reference_[owner_[at]] == reference) reference_[owner_[at]] = 0;
    owner_[at] = key;
  } else {
    owner_.push_back(key);
  }
  reference_[key] = reference;
  put_string(reference, text);
  return reference;
}

// A record of its own, which may come while record_ is made.
void FxtRecords::put_string(std::size_t reference, std::string_view text) {
  const std::string_view part = cut_text(text, kMostFxtString);
  FxtRecord record;
  record.begin(kString | std::uint64_t{reference} << 16U | std::uint64_t{part.size()} << 32U);
  record.text(part);
  record.put(sink_, kNoArguments);
}

void FxtRecords::put_log(std::string_view text) {
  const std::string_view part = cut_text(text, kMostFxtString);
  record_.begin(kLog | std::uint64_t{part.size()} << 16U | std::uint64_t{thread_} << 32U);
  record_.word(0);
  record_.text(part);
  record_.put(sink_, kNoArguments);
}

void FxtRecords::put_process(std::uint64_t pid, std::uint16_t name) {
  record_.begin(kKernelObject | kProcessObject << 16U | std::uint64_t{name} << 24U);
  record_.word(pid);
  record_.put(sink_, kObjectArguments);
}

void FxtRecords::put_thread(std::uint64_t pid, std::uint64_t tid, std::uint16_t name, std::uint16_t process) {
  record_.begin(kKernelObject | kThreadObject << 16U | std::uint64_t{name} << 24U);
  record_.word(tid);
  record_.koid(process, pid);
  record_.put(sink_, kObjectArguments);
}

void FxtRecords::set_thread(std::uint64_t pid, std::uint64_t tid) {
  thread_ = static_cast<std::uint8_t>(thread_ % UINT8_MAX + 1);
  record_.begin(kThread | std::uint64_t{thread_} << 16U);
  record_.word(pid);
  record_.word(tid);
  record_.put(sink_, kNoArguments);
}

FxtRecord& FxtRecords::event(FxtEvent type, std::uint64_t ns, std::uint16_t category, std::uint16_t name) {
  record_.begin(kEvent | static_cast<std::uint64_t>(type) << 16U | std::uint64_t{thread_} << 24U |
                std::uint64_t{category} << 32U | std::uint64_t{name} << 48U);
  record_.word(ns);
  return record_;
}

}  // namespace ptkit::tables::calls
