#include "truth_log.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace ptkit::emulated {

constexpr std::uint64_t kPageMask = ~std::uint64_t{0xfff};

TruthLog::TruthLog(const char* path) {
  if (path == nullptr) return;
  const std::string name = path;
  records_.reset(std::fopen(name.c_str(), "wb"));
  code_.reset(std::fopen((name + ".code").c_str(), "wb"));
  sizes_.reset(std::fopen((name + ".sizes").c_str(), "wb"));
}

void TruthLog::record(Kind kind, unsigned cpu, std::uint16_t two, std::uint32_t four, std::uint64_t eight) {
  std::array<std::uint8_t, 16> bytes{};
  bytes[0] = kind;
  bytes[1] = static_cast<std::uint8_t>(cpu);
  std::memcpy(&bytes[2], &two, sizeof two);
  std::memcpy(&bytes[4], &four, sizeof four);
  std::memcpy(&bytes[8], &eight, sizeof eight);
  std::fwrite(bytes.data(), bytes.size(), 1, records_.get());
}

void TruthLog::begin_part(When when) {
  if (records_ == nullptr) return;
  when_ = when;
  record(PART, 0, 0, 0, 0);
}

void TruthLog::run(unsigned cpu, std::uint64_t start, std::span<const std::uint8_t> sizes) {
  record(RUN, cpu, 0, static_cast<std::uint32_t>(sizes.size()), start);
  std::fwrite(sizes.data(), sizes.size(), 1, sizes_.get());
}

void TruthLog::context(unsigned cpu, const Context& context) {
  record(CONTEXT, cpu, static_cast<std::uint16_t>(context.cpl | context.bits << 8), 0, context.cr3);
}

void TruthLog::code(unsigned cpu, std::uint64_t cr3, std::uint64_t address, std::size_t bytes,
                    const std::uint8_t* page) {
  const bool shared = (address >> 63) != 0;
  const Key key{shared ? 0 : cr3, address & kPageMask};
  const std::size_t offset = address & ~kPageMask;
  const std::size_t size = std::min(bytes, sizeof(Page) - offset);
  const auto [entry, fresh] = pages_.try_emplace(key);
  if (!fresh && std::memcmp(entry->second.data() + offset, page + offset, size) == 0) return;
  std::memcpy(entry->second.data(), page, sizeof(Page));
  record(CODE, cpu, 0, 0, key.page);
  std::fwrite(page, sizeof(Page), 1, code_.get());
}

void RunCollector::retired(std::uint64_t ip, unsigned size, const Context& context,
                           const std::uint8_t* page) {
  if (!sizes_.empty() && (ip != end_ || ((ip ^ start_) & kPageMask) != 0 || !(context == context_))) close();
  if (sizes_.empty()) {
    if (!context_told_ || !(context == context_)) log_.context(cpu_, context);
    context_told_ = true;
    context_ = context;
    start_ = ip;
    page_ = page;
  }
  end_ = ip + size;
  sizes_.push_back(static_cast<std::uint8_t>(size));
}

void RunCollector::close() {
  if (sizes_.empty()) return;
  if (page_ != nullptr) log_.code(cpu_, context_.cr3, start_, end_ - start_, page_);
  log_.run(cpu_, start_, sizes_);
  sizes_.clear();
}

}  // namespace ptkit::emulated
