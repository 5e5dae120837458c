// Files of simple-pt's sptcmd: ptout.N has the ring of CPU N, ptout.sideband has the CPU model, the clock,
// and the mappings of files by CR3.
#include <array>
#include <charconv>
#include <map>
#include <sstream>

#include "formats/common/files.h"
#include "formats/common/numbered_files.h"
#include "formats/common/readers.h"
#include "formats/mapped_files/binaries.h"
#include "packet/decoder.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

using trace::WarningCode;

namespace {

constexpr std::string_view kStreamName = "ptout.";
constexpr const char* kSidebandName = "ptout.sideband";
constexpr std::uint64_t kCr3Mask = 4096 - 1;  // PCID
constexpr std::size_t kMostMappings = 1'000'000;
constexpr std::uint64_t kUserTables = 4096;  // page-table isolation: this bit of CR3 is set in user code
constexpr std::size_t kSearchedBytes = std::size_t{4} << 20U;
constexpr std::uint64_t kBusHz = 100'000'000;

bool number(const std::string& text, int radix, std::uint64_t& out) {
  const std::size_t skip = radix == 16 && text.starts_with("0x") ? 2 : 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + skip, end, out, radix);
  return parsed.ec == std::errc{} && parsed.ptr == end;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; words.size() < 8 && in >> word;) words.push_back(word);
  return words;
}

struct Mapping {
  std::uint64_t pid = 0;
  std::uint64_t cr3 = 0;
  std::uint64_t address = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  // 0: unknown
  std::string path;
};

// Parses "time pid cr3 address offset [size]", a tab, a path. Mappings from before the recording have the
// time 0.0, a hexadecimal offset and a decimal size. Later mappings have a decimal offset and a hexadecimal
// size.
bool read_mapping(const std::string& line, Mapping& out) {
  const auto tab = line.find('\t');
  if (tab == std::string::npos) return false;
  const std::vector<std::string> words = words_of(line.substr(0, tab));
  if (words.size() < 4) return false;
  const bool before = words[0].find_first_not_of("0.") == std::string::npos;
  out.path = line.substr(tab + 1);
  bool good = number(words[1], 10, out.pid) && number(words[2], 16, out.cr3) &&
              number(words[3], 16, out.address) && !out.path.empty();
  if (words.size() > 4) good = good && number(words[4], before ? 16 : 10, out.offset);
  if (words.size() > 5) good = good && number(words[5], before ? 10 : 16, out.size);
  return good;
}

// Returns true if the stream has PIP packets. Their first one stands near the begin.
bool has_pips(const trace::TraceBuffer& data) {
  packet::PacketDecoder packets(data.part(0, kSearchedBytes));
  base::Status status = packets.sync_forward(0);
  packet::Packet packet;
  while (status != base::Status::END_OF_STREAM) {
    status = packets.next(packet);
    if (status == base::Status::OK && packet.kind == packet::PacketKind::PIP) return true;
    if (status != base::Status::OK && status != base::Status::END_OF_STREAM) status = packets.sync_forward();
  }
  return false;
}

class Loader {
 public:
  Loader(const std::string& path, const OpenOptions& options)
      : path_(path), binaries_(bundle_, is_folder(path) ? path : parent_folder(path), {}, options.binaries) {}

  base::Result<trace::TraceBundle> load(const std::map<std::int64_t, std::string>& files,
                                        const std::string& folder) {
    const std::string sideband = join(folder, kSidebandName);
    if (is_file(sideband)) {
      auto text = trace::TraceBuffer::map_file(sideband);
      if (!text.ok()) return text.failure();
      binaries_.recorded_at(sideband);
      read_sideband({text.value().bytes().begin(), text.value().bytes().end()});
    } else {
      add(warn(WarningCode::SIMPLE_PT_NO_SIDEBAND));
    }
    auto streams = cpu_streams(path_, files);
    if (!streams.ok()) return streams.failure();
    bundle_.streams = std::move(streams.value());
    add_user_tables();
    // Streams of user code only have no PIP packets. They belong to the process if there is only one.
    if (bundle_.spaces.size() == 2) {
      for (trace::Stream& stream : bundle_.streams) {
        if (has_pips(stream.data)) continue;
        stream.space = 1;
        stream.pid = bundle_.spaces[1].pid;
      }
    }
    return std::move(bundle_);
  }

 private:
  // With page-table isolation, the user's page tables follow the kernel's. Without it, that address may hold
  // another process' page tables.
  void add_user_tables() {
    for (auto& [cr3, number] : spaces_) {
      if ((cr3 & kUserTables) == 0 && spaces_.count(cr3 | kUserTables) == 0)
        bundle_.spaces[number].user_cr3 = cr3 | kUserTables;
    }
  }

  void add(const trace::Warning& warning) { bundle_.warnings.push_back(warning.at(path_)); }

  void read_sideband(const std::string& text) {
    std::istringstream in(text);
    std::size_t bad = 0;
    std::size_t mappings = 0;
    for (std::string line; std::getline(in, line);) {
      if (line.empty()) continue;
      Mapping mapping;
      if (line.starts_with("meta ")) {
        bad += read_meta(words_of(line)) ? 0U : 1U;
      } else if (read_mapping(line, mapping)) {
        if (++mappings <= kMostMappings) mappings_.push_back(std::move(mapping));
      } else {
        ++bad;
      }
    }
    for (const Mapping& mapping : mappings_) {
      if (!is_exec(mapping)) binaries_.expect(mapping_of(mapping));
    }
    for (const Mapping& mapping : mappings_) add(mapping);
    if (mappings > kMostMappings)
      add(warn(WarningCode::SIMPLE_PT_MAPPING_LIMIT, mappings - kMostMappings, kMostMappings));
    bundle_.configuration.cpu.known = seen_family_ && seen_model_;
    if (bad != 0) add(warn(WarningCode::SIMPLE_PT_LINES_SKIPPED, bad));
    binaries_.list_missing();
  }

  bool read_meta(const std::vector<std::string>& words) {
    std::array<std::uint64_t, 2> values{};
    if (words.size() < 3 || !number(words[2], 10, values[0])) return false;
    if (words.size() > 3 && !number(words[3], 10, values[1])) return false;
    trace::Cpu& cpu = bundle_.configuration.cpu;
    trace::Clock& clock = bundle_.configuration.clock;
    const std::string& name = words[1];
    if (name == "family" && values[0] <= 0xffff) {
      cpu.family = static_cast<std::uint16_t>(values[0]);
      seen_family_ = true;
    } else if (name == "model" && values[0] <= 0xffff) {
      cpu.model = static_cast<std::uint16_t>(values[0]);
      seen_model_ = true;
    } else if (name == "stepping" && values[0] <= 0xff) {
      cpu.stepping = static_cast<std::uint8_t>(values[0]);
    } else if (name == "nom_freq" && values[0] <= 0xff) {
      clock.max_nonturbo_ratio = static_cast<std::uint8_t>(values[0]);
      clock.tsc_hz = values[0] * kBusHz;
    } else if (name == "mtc_freq" && values[0] <= 16) {  // one more than the field; 0: no MTC packets
      clock.mtc_period_known = values[0] != 0;
      clock.mtc_period = static_cast<std::uint8_t>(values[0] == 0 ? 0 : values[0] - 1);
    } else if (name == "tsc_ratio" && values[0] <= 0xffffffff && values[1] <= 0xffffffff) {
      clock.tsc_ctc_denominator = static_cast<std::uint32_t>(values[0]);
      clock.tsc_ctc_numerator = static_cast<std::uint32_t>(values[1]);
    } else {
      return false;
    }
    return true;
  }

  trace::SpaceId space_of(const Mapping& mapping) {
    if (mapping.cr3 == 0) return trace::kAnySpace;  // kernel code
    const auto [found, is_new] = spaces_.try_emplace(mapping.cr3 & ~kCr3Mask, 0);
    if (is_new) {
      found->second = static_cast<trace::SpaceId>(bundle_.spaces.size());
      bundle_.spaces.push_back({static_cast<std::int64_t>(mapping.pid), mapping.cr3 & ~kCr3Mask, true});
    }
    return found->second;
  }

  // A line of exec() has the program's path and CR3, and zeros for its mapping.
  static bool is_exec(const Mapping& mapping) { return mapping.address == 0; }

  static perf::Mapping mapping_of(const Mapping& from) {
    return {.owner = from.cr3 & ~kCr3Mask,
            .address = from.address,
            .size = from.size,
            .file_offset = from.offset,
            .path = from.path};
  }

  void add(const Mapping& mapping) {
    trace::CodeRegion region;
    region.space = space_of(mapping);
    if (is_exec(mapping)) return;
    region.file = binaries_.find(mapping_of(mapping));
    region.address = mapping.address;
    region.file_offset = mapping.offset;
    region.size = mapping.size;
    binaries_.map_contents(region);
    if (region.size == 0 || region.address + (region.size - 1) < region.address) return;
    bundle_.code.push_back(std::move(region));
  }

  std::string path_;
  trace::TraceBundle bundle_;
  std::map<std::uint64_t, trace::SpaceId> spaces_;  // by CR3
  std::vector<Mapping> mappings_;
  perf::Binaries binaries_;
  bool seen_family_ = false;
  bool seen_model_ = false;
};

bool sniff(const std::string& path) {
  if (is_folder(path)) return !numbered_files(path, kStreamName).empty();
  return number_in_name(path, kStreamName) && is_file(join(parent_folder(path), kSidebandName));
}

base::Result<trace::TraceBundle> read(const std::string& path, const OpenOptions& options) {
  if (is_folder(path)) {
    const auto files = numbered_files(path, kStreamName);
    if (files.empty()) return bad_file(path, "expected files ptout.0, ptout.1, ..., found none");
    return Loader(path, options).load(files, path);
  }
  const auto cpu = number_in_name(path, kStreamName);
  return Loader(path, options).load({{cpu.value_or(trace::kNoId), path}}, parent_folder(path));
}

}  // namespace

const Format kSimplePtFormat{
    .name = "simple-pt",
    .description = "simple-pt's ptout.N with ptout.sideband",
    .sniff = &sniff,
    .read = &read,
    .unverified = true,
};

}  // namespace ptkit::formats
