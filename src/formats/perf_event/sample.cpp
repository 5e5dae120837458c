#include "formats/perf_event/sample.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string_view>

#include "trace/branch_records.h"

namespace ptkit::formats::perf {
namespace {

// The number after `words`. Advances `text` past it.
std::optional<std::uint64_t> number_after(std::string_view& text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + words.size());
  std::uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{}) return std::nullopt;
  return number;
}

// PERF_FORMAT_*
constexpr std::uint64_t kTimeEnabled = 1;
constexpr std::uint64_t kTimeRunning = 2;
constexpr std::uint64_t kId = 4;
constexpr std::uint64_t kGroup = 8;
constexpr std::uint64_t kLost = 16;
// PERF_SAMPLE_BRANCH_*
constexpr unsigned kHwIndex = 17;
constexpr unsigned kCounters = 19;

// Counts come from the file and may be absurd: skips at most to the end.
void skip_words(Fields& fields, std::uint64_t count) {
  fields.skip(static_cast<std::size_t>(std::min<std::uint64_t>(count, fields.left() / 8 + 1)) * 8);
}

void skip_counters(Fields& fields, std::uint64_t format) {
  const std::uint64_t times = (format & kTimeEnabled ? 1U : 0U) + (format & kTimeRunning ? 1U : 0U);
  const std::uint64_t value = 1U + (format & kId ? 1U : 0U) + (format & kLost ? 1U : 0U);
  if ((format & kGroup) == 0) return skip_words(fields, times + value);
  const std::uint64_t count = fields.u64();
  skip_words(fields, times);
  for (std::uint64_t i = 0; i < value; ++i) skip_words(fields, count);
}

// PERF_SAMPLE_REGS_ABI_*
constexpr std::uint64_t kAbiNone = 0;
constexpr std::uint64_t kAbi32 = 1;

std::uint64_t skip_registers(Fields& fields, std::uint64_t mask) {
  const std::uint64_t abi = fields.u64();
  if (abi != kAbiNone) skip_words(fields, static_cast<std::uint64_t>(std::popcount(mask)));
  return abi;
}

base::Bytes take_branches(Fields& fields, std::uint64_t branch_type) {
  const std::uint64_t count = fields.u64();
  if ((branch_type >> kHwIndex & 1) != 0) fields.skip(8);
  const std::uint64_t most = fields.left() / trace::kBranchEntryBytes + 1;
  const base::Bytes entries =
      fields.take_bytes(static_cast<std::size_t>(std::min(count, most)) * trace::kBranchEntryBytes);
  if ((branch_type >> kCounters & 1) != 0) skip_words(fields, count);
  return entries;
}

void skip_stack(Fields& fields) {
  const std::uint64_t size = fields.u64();
  if (size == 0) return;
  skip_words(fields, size / 8 + (size % 8 != 0 ? 1U : 0U));
  fields.skip(8);  // dyn_size
}

void read_ids(const Attr& attr, Fields& fields, Sample& out) {
  if (attr.has(SAMPLE_IDENTIFIER)) out.trailer.id = fields.u64();
  if (attr.has(SAMPLE_IP)) out.ip = fields.u64();
  if (attr.has(SAMPLE_TID)) {
    out.trailer.pid = fields.id();
    out.trailer.tid = fields.id();
  }
  out.trailer.time_known = attr.has(SAMPLE_TIME);
  if (out.trailer.time_known) out.trailer.time = fields.u64();
  if (attr.has(SAMPLE_ADDR)) out.address = fields.u64();
  if (attr.has(SAMPLE_ID)) out.trailer.id = fields.u64();
  if (attr.has(SAMPLE_STREAM_ID)) fields.skip(8);
  if (attr.has(SAMPLE_CPU)) {
    out.trailer.cpu = fields.id();
    fields.skip(4);
  }
  if (attr.has(SAMPLE_PERIOD)) out.period = fields.u64();
}

}  // namespace

std::optional<Sample> parse_sample(const Attr& attr, base::Bytes body) {
  Fields fields(body);
  Sample out;
  read_ids(attr, fields, out);
  if (attr.has(SAMPLE_READ)) skip_counters(fields, attr.read_format);
  if (attr.has(SAMPLE_CALLCHAIN)) skip_words(fields, fields.u64());
  if (attr.has(SAMPLE_RAW)) {
    const std::uint32_t size = fields.u32();
    out.raw = fields.take_bytes(size);
  }
  if (attr.has(SAMPLE_BRANCH_STACK)) out.branches = take_branches(fields, attr.branch_type);
  if (attr.has(SAMPLE_REGS_USER)) out.is_32_bit = skip_registers(fields, attr.user_regs) == kAbi32;
  if (attr.has(SAMPLE_STACK_USER)) skip_stack(fields);
  if (attr.has(SAMPLE_WEIGHT) || attr.has(SAMPLE_WEIGHT_STRUCT)) fields.skip(8);
  if (attr.has(SAMPLE_DATA_SRC)) fields.skip(8);
  if (attr.has(SAMPLE_TRANSACTION)) fields.skip(8);
  if (attr.has(SAMPLE_REGS_INTR)) static_cast<void>(skip_registers(fields, attr.interrupt_regs));
  for (const unsigned bit : {SAMPLE_PHYS_ADDR, SAMPLE_CGROUP, SAMPLE_DATA_PAGE_SIZE, SAMPLE_CODE_PAGE_SIZE}) {
    if (attr.has(bit)) fields.skip(8);
  }
  if (attr.has(SAMPLE_AUX)) {
    const std::uint64_t size = fields.u64();
    // PERF_SAMPLE_AUX is the last field: truncated data is used as far as it goes.
    out.trace = fields.take_bytes(static_cast<std::size_t>(std::min<std::uint64_t>(size, fields.left())));
  }
  if (!fields.ok()) return std::nullopt;
  return out;
}

// The data contains the kernel's format files: "name: sched_switch\nID: 316\nformat:\n" and, for each
// field,
// "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n".
std::optional<SchedSwitch> find_sched_switch(base::Bytes tracing_data) {
  std::string_view text(reinterpret_cast<const char*>(tracing_data.data()), tracing_data.size());
  const auto event = number_after(text, "name: sched_switch\nID: ");
  if (!event) return std::nullopt;
  text = text.substr(0, text.find("\nname: "));
  const std::size_t field = text.find(" next_pid;");
  if (field == std::string_view::npos) return std::nullopt;
  text = text.substr(field, text.find('\n', field) - field);
  const auto offset = number_after(text, "offset:");
  const auto size = number_after(text, "size:");
  if (!offset || size != 4) return std::nullopt;
  return SchedSwitch{*event, static_cast<std::size_t>(*offset)};
}

}  // namespace ptkit::formats::perf
