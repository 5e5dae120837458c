// A branch trace of gdb's remote protocol (qXfer:btrace:read): an XML document with the bytes of Processor
// Trace, or with blocks from Branch Trace Store.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "formats/common/files.h"
#include "formats/common/readers.h"
#include "trace/branch_records.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

namespace {

constexpr std::size_t kHeadBytes = 4096;

bool is_space(char letter) noexcept {
  return letter == ' ' || letter == '\t' || letter == '\r' || letter == '\n';
}

struct Tag {
  std::string_view name;  // with its slash, if it closes an element
  std::map<std::string_view, std::string_view> attributes;
  std::string_view text;  // up to the next tag
  std::size_t offset = 0;
};

// Parses the subset of XML that these documents use: elements with attributes, and text.
class Tags {
 public:
  explicit Tags(std::string_view document) : document_(document) {}

  // Returns nullopt at the end, or where the document is damaged.
  std::optional<Tag> next() {
    for (;;) {
      const auto begin = document_.find('<', at_);
      if (begin == std::string_view::npos) return std::nullopt;
      if (document_.substr(begin).starts_with("<!--")) {
        if (!skip_to("-->", begin)) return std::nullopt;
        continue;
      }
      const auto end = document_.find('>', begin);
      if (end == std::string_view::npos) return std::nullopt;
      at_ = end + 1;
      if (document_[begin + 1] == '?' || document_[begin + 1] == '!') continue;
      return read(begin, end);
    }
  }

 private:
  bool skip_to(std::string_view what, std::size_t from) {
    const auto found = document_.find(what, from);
    at_ = found == std::string_view::npos ? document_.size() : found + what.size();
    return found != std::string_view::npos;
  }

  Tag read(std::size_t begin, std::size_t end) const {
    Tag tag;
    tag.offset = begin;
    std::string_view rest = document_.substr(begin + 1, end - begin - 1);
    const auto name_end = std::find_if(rest.begin() + (rest.starts_with('/') ? 1 : 0), rest.end(),
                                       [](char c) { return is_space(c) || c == '/'; });
    tag.name = rest.substr(0, static_cast<std::size_t>(name_end - rest.begin()));
    rest.remove_prefix(tag.name.size());
    for (;;) {
      const auto equals = rest.find('=');
      if (equals == std::string_view::npos || equals + 1 >= rest.size()) break;
      const char quote = rest[equals + 1];
      const auto close = rest.find(quote, equals + 2);
      if ((quote != '"' && quote != '\'') || close == std::string_view::npos) break;
      const auto first = rest.find_first_not_of(" \t\r\n");
      tag.attributes[rest.substr(first, equals - first)] = rest.substr(equals + 2, close - equals - 2);
      rest.remove_prefix(close + 1);
    }
    tag.text = document_.substr(end + 1, document_.find('<', end + 1) - end - 1);
    return tag;
  }

  std::string_view document_;
  std::size_t at_ = 0;
};

std::optional<std::uint64_t> number_of(const Tag& tag, std::string_view name) {
  const auto found = tag.attributes.find(name);
  if (found == tag.attributes.end()) return std::nullopt;
  std::string_view text = found->second;
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  const bool good = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
  return good ? std::optional(value) : std::nullopt;
}

int digit(char letter) noexcept {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

// Returns nullopt if the text is no sequence of digit pairs.
std::optional<std::vector<std::uint8_t>> bytes_of(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() / 2);
  int high = -1;
  for (const char letter : text) {
    if (is_space(letter)) continue;
    const int value = digit(letter);
    if (value < 0) return std::nullopt;
    if (high >= 0) bytes.push_back(static_cast<std::uint8_t>(high * 16 + value));
    high = high >= 0 ? -1 : value;
  }
  if (high >= 0) return std::nullopt;
  return bytes;
}

struct Block {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // address of the last instruction; 0: the block is still running
};

class Loader {
 public:
  explicit Loader(const std::string& path) : path_(path) {}

  base::Result<trace::TraceBundle> load(std::string_view document) {
    Tags tags(document);
    bool found = false;
    bool whole = false;
    while (const auto tag = tags.next()) {
      found = found || tag->name == "btrace";
      whole = whole || tag->name == "/btrace";
      if (!found) break;
      if (const auto failure = read_element(*tag)) return *failure;
    }
    if (!found) return bad_file(path_, "expected an XML document with a btrace element");
    if (!whole) bundle_.warnings.push_back(warn(trace::WarningCode::GDB_BTRACE_CUT).at(path_));
    if (!blocks_.empty()) add_branches();
    if (bundle_.streams.empty()) return bad_file(path_, "holds neither bytes of Processor Trace nor blocks");
    return std::move(bundle_);
  }

 private:
  std::optional<base::Failure> read_element(const Tag& tag) {
    if (tag.name == "cpu") return take_cpu(tag);
    if (tag.name == "block") {
      const auto begin = number_of(tag, "begin");
      const auto end = number_of(tag, "end");
      if (!begin || !end) return bad_file(path_, "a block needs the numbers begin and end", tag.offset);
      blocks_.push_back({*begin, *end});
    }
    if (tag.name != "raw") return std::nullopt;
    auto bytes = bytes_of(tag.text);
    if (!bytes) return bad_file(path_, "raw must hold pairs of hexadecimal digits", tag.offset);
    if (bytes->empty()) return std::nullopt;
    trace::Stream stream;
    stream.name = path_;
    stream.data = trace::TraceBuffer::from_vector(std::move(*bytes));
    bundle_.streams.push_back(std::move(stream));
    return std::nullopt;
  }

  std::optional<base::Failure> take_cpu(const Tag& tag) {
    const auto family = number_of(tag, "family");
    const auto model = number_of(tag, "model");
    const auto stepping = number_of(tag, "stepping");
    const bool good =
        family && *family <= 0xffff && model && *model <= 0xffff && (!stepping || *stepping <= 0xff);
    if (!good) return std::nullopt;  // only the vendor is given
    trace::Cpu& cpu = bundle_.configuration.cpu;
    const auto vendor = tag.attributes.find("vendor");
    cpu.intel = vendor == tag.attributes.end() || vendor->second == "GenuineIntel";
    cpu.family = static_cast<std::uint16_t>(*family);
    cpu.model = static_cast<std::uint16_t>(*model);
    cpu.stepping = static_cast<std::uint8_t>(stepping.value_or(0));
    cpu.known = true;
    return std::nullopt;
  }

  // Blocks come newest first. A branch leads from the end of a block to the begin of the next one.
  void add_branches() {
    std::vector<trace::BranchRecord> records;
    records.reserve(blocks_.size());
    bool first = true;
    for (std::size_t i = blocks_.size() - 1; i > 0; --i) {
      trace::BranchRecord record;
      record.from_ip = blocks_[i].end;
      record.to_ip = blocks_[i - 1].begin;
      if (first) record.flags = trace::RECORD_FIRST;
      first = record.from_ip == 0 || record.to_ip == 0;
      if (!first) records.push_back(record);
    }
    if (records.empty()) return;
    trace::Stream stream;
    stream.kind = trace::StreamKind::BRANCH_RECORDS;
    stream.name = path_;
    stream.data = trace::to_buffer(records);
    bundle_.streams.push_back(std::move(stream));
  }

  std::string path_;
  trace::TraceBundle bundle_;
  std::vector<Block> blocks_;
};

bool is_document(std::string_view head) {
  // The protocol puts a letter before a document.
  const auto first = head.find('<');
  const auto is_text = [](char letter) { return is_space(letter) || (letter >= ' ' && letter <= '~'); };
  return first != std::string::npos &&
         std::all_of(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(first), is_text) &&
         head.find("<btrace", first) != std::string::npos;
}

bool sniff(const std::string& path) { return is_document(first_bytes(path, kHeadBytes)); }

bool sniff_bytes(base::Bytes bytes) {
  return is_document(
      {reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), kHeadBytes)});
}

base::Result<trace::TraceBundle> read_bytes(const std::string& path, const trace::TraceBuffer& data,
                                            const OpenOptions&) {
  const base::Bytes bytes = data.bytes();
  return Loader(path).load({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

base::Result<trace::TraceBundle> read(const std::string& path, const OpenOptions& options) {
  auto data = trace::TraceBuffer::map_file(path);
  if (!data.ok()) return data.failure();
  return read_bytes(path, data.value(), options);
}

}  // namespace

const Format kGdbBtraceFormat{
    .name = "gdb-btrace",
    .description = "a branch trace of gdb's remote protocol (XML)",
    .sniff = &sniff,
    .read = &read,
    .sniff_bytes = &sniff_bytes,
    .read_bytes = &read_bytes,
    .unverified = true,
};

}  // namespace ptkit::formats
