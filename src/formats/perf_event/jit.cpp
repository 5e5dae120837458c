#include "formats/perf_event/jit.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "trace/warning_codes.h"

namespace ptkit::formats::perf {

using trace::WarningCode;

namespace {

constexpr std::uint32_t kJitDumpMagic = 0x4A695444;  // "JiTD"
constexpr std::size_t kJitHeaderBytes = 40;
constexpr std::uint64_t kArchTimestamps = 1;  // flags: times are TSC
constexpr std::size_t kPrefixBytes = 16;      // a record's header: id, size, time
constexpr std::string_view kBlanks = " \t\r";
enum RecordId : std::uint32_t { CODE_LOAD = 0, CODE_MOVE = 1, CODE_CLOSE = 3 };

class Dump {
 public:
  Dump(trace::TraceBundle& bundle, const trace::TraceBuffer& contents, const Event& marker,
       std::vector<Event>& out)
      : bundle_(bundle), contents_(contents), marker_(marker), out_(out) {}

  std::optional<trace::Warning> read() {
    Fields fields(contents_.bytes());
    const std::uint32_t magic = fields.u32();
    fields.skip(4);  // version
    const std::uint32_t header_bytes = fields.u32();
    fields.skip(20);  // machine, padding, pid, time
    has_tsc_ = (fields.u64() & kArchTimestamps) != 0;
    if (magic != kJitDumpMagic || !fields.ok() || header_bytes < kJitHeaderBytes)
      return warn(WarningCode::JITDUMP_INVALID);
    file_ = static_cast<std::int32_t>(bundle_.files.size());
    bundle_.files.push_back({marker_.text, {}, {}, {}});
    return read_records(header_bytes);
  }

 private:
  std::optional<trace::Warning> read_records(std::size_t at) {
    const base::Bytes bytes = contents_.bytes();
    while (at < bytes.size() && bytes.size() - at >= kPrefixBytes) {
      Fields fields(bytes, at);
      const std::uint32_t id = fields.u32();
      const std::uint32_t size = fields.u32();
      const std::uint64_t time = fields.u64();
      if (size < kPrefixBytes || size > bytes.size() - at) break;
      const Fields body(bytes.subspan(at + kPrefixBytes, size - kPrefixBytes));
      if (id == CODE_CLOSE) return warn_of_times();
      if (id == CODE_LOAD) load(body, at + kPrefixBytes, time);
      if (id == CODE_MOVE) move(body, time);
      at += size;
    }
    if (at != bytes.size()) return warn(WarningCode::JITDUMP_CUT, at);
    return warn_of_times();
  }

  [[nodiscard]] std::optional<trace::Warning> warn_of_times() const {
    if (has_tsc_ || offsets_.empty()) return {};
    return warn(WarningCode::JITDUMP_NO_TSC);
  }

  void load(Fields fields, std::size_t at, std::uint64_t time) {
    fields.skip(16);  // pid, tid, address in perf inject's ELF file
    Event event = event_at(fields, time);
    const std::uint64_t index = fields.u64();
    const std::string name = fields.text();
    const std::size_t before = 40 + name.size() + 1;
    fields.skip(name.size() + 1);
    const base::Bytes code =
        fields.take_bytes(static_cast<std::size_t>(std::min<std::uint64_t>(event.size, contents_.size())));
    if (!fields.ok() || code.size() != event.size || event.size == 0) return;
    event.file_offset = at + before;
    bundle_.files[static_cast<std::size_t>(file_)].symbols.push_back({name, event.file_offset, event.size});
    offsets_[index] = event.file_offset;
    add(std::move(event));
  }

  // JIT_CODE_MOVE: the function has another address from `time` on.
  void move(Fields fields, std::uint64_t time) {
    fields.skip(24);  // pid, tid, address in the ELF file, old address
    Event event = event_at(fields, time);
    const auto found = offsets_.find(fields.u64());
    if (!fields.ok() || found == offsets_.end() || event.size == 0) return;
    event.file_offset = found->second;
    add(std::move(event));
  }

  [[nodiscard]] Event event_at(Fields& fields, std::uint64_t time) const {
    Event event;
    event.type = JIT_LOAD;
    event.tsc = has_tsc_ ? std::max(time, marker_.tsc) : marker_.tsc;
    event.pid = marker_.pid;
    event.tid = marker_.tid;
    event.address = fields.u64();
    event.size = fields.u64();
    event.file = file_;
    return event;
  }

  void add(Event event) {
    event.bytes =
        contents_.slice(static_cast<std::size_t>(event.file_offset), static_cast<std::size_t>(event.size));
    out_.push_back(std::move(event));
  }

  trace::TraceBundle& bundle_;
  const trace::TraceBuffer& contents_;
  const Event& marker_;
  std::vector<Event>& out_;
  std::int32_t file_ = -1;
  bool has_tsc_ = false;
  std::unordered_map<std::uint64_t, std::uint64_t> offsets_;  // of code in the jitdump, by index
};

}  // namespace

std::optional<trace::Warning> read_jit_dump(trace::TraceBundle& bundle, const trace::TraceBuffer& dump,
                                            const Event& marker, std::vector<Event>& out) {
  return Dump(bundle, dump, marker, out).read();
}

std::vector<JitMapLine> read_jit_map_lines(std::string_view text) {
  std::vector<JitMapLine> out;
  const std::size_t size = text.size();
  const auto skip_blanks = [](std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  };
  const auto take_number = [&skip_blanks](std::string_view& line, std::uint64_t& number) {
    skip_blanks(line);
    if (line.starts_with("0x") || line.starts_with("0X")) line.remove_prefix(2);
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, 16);
    if (error != std::errc{} || end == line.data() + line.size() ||
        kBlanks.find(*end) == std::string_view::npos)
      return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    skip_blanks(line);
    return true;
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_suffix(line.size() - (line.find_last_not_of(kBlanks) + 1));
    JitMapLine one;
    if (!take_number(line, one.address) || !take_number(line, one.size) || line.empty()) continue;
    one.name = line;
    one.end = size - text.size();
    out.push_back(one);
  }
  return out;
}

std::vector<trace::SymbolEntry> read_jit_map(std::string_view text) {
  std::vector<trace::SymbolEntry> out;
  for (const JitMapLine& one : read_jit_map_lines(text))
    out.push_back({std::string(one.name), one.address, one.size});
  return out;
}

}  // namespace ptkit::formats::perf
