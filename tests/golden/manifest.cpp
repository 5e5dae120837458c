#include "manifest.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace ptkit::golden {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    if (separator != ' ' || !part.empty()) parts.push_back(part);
  }
  return parts;
}

bool read_file(const std::filesystem::path& path, std::string& out) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  out.assign(std::istreambuf_iterator<char>(in), {});
  return true;
}

std::uint64_t number(const std::string& text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  std::uint64_t value = 0;
  std::from_chars(text.data() + (hex ? 2 : 0), text.data() + text.size(), value, hex ? 16 : 10);
  return value;
}

void set_cpu(const std::string& text, Case& out) {
  const std::vector<std::string> parts = split(text, '/');
  trace::Cpu& cpu = out.configuration.cpu;
  cpu = trace::Cpu{};
  out.cpu_given = parts.size() >= 2;
  out.errata = packet::Errata{};
  if (!out.cpu_given) return;  // "none"
  cpu.known = true;
  cpu.family = static_cast<std::uint16_t>(number(parts[0]));
  cpu.model = static_cast<std::uint16_t>(number(parts[1]));
  if (parts.size() > 2) cpu.stepping = static_cast<std::uint8_t>(number(parts[2]));
  out.errata = packet::errata_for(cpu);
}

// --filter:addr<n>_cfg|_a|_b
void set_filter(const std::string& option, std::uint64_t value, Case& out) {
  constexpr std::size_t kDigit = std::string_view("--filter:addr").size();
  const auto index = static_cast<std::size_t>(option[kDigit] - '0');
  if (index >= out.configuration.ranges.size()) return;
  trace::AddressRange& range = out.configuration.ranges[index];
  if (option.ends_with("_cfg")) range.kind = static_cast<trace::RangeKind>(value);
  if (option.ends_with("_a")) range.first = value;
  if (option.ends_with("_b")) range.last = value;
}

void apply_options(Case& out) {
  trace::Clock& clock = out.configuration.clock;
  if (out.has_option("--event:iflags")) {
    constexpr std::uint64_t kEventEn = std::uint64_t{1} << 31U;
    out.configuration.rtit_ctl = kEventEn;
    out.configuration.rtit_ctl_known = true;
  }
  for (std::size_t index = 0; index + 1 < out.options.size(); ++index) {
    const std::string& option = out.options[index];
    const std::string& argument = out.options[index + 1];
    if (option == "--cpu") set_cpu(argument, out);
    if (option == "--cpuid-0x15.eax")
      clock.tsc_ctc_denominator = static_cast<std::uint32_t>(number(argument));
    if (option == "--cpuid-0x15.ebx") clock.tsc_ctc_numerator = static_cast<std::uint32_t>(number(argument));
    if (option == "--nom-freq") clock.max_nonturbo_ratio = static_cast<std::uint8_t>(number(argument));
    if (option == "--mtc-freq") {
      clock.mtc_period = static_cast<std::uint8_t>(number(argument));
      clock.mtc_period_known = true;
    }
    if (option.starts_with("--filter:addr") && option.size() > 14) set_filter(option, number(argument), out);
  }
}

// Returns what is missing, or an empty string.
std::string read_case(const std::filesystem::path& directory, Row& row, Case& out) {
  out.test = row["test"];
  out.tool = row["tool"];
  out.decoder = row["decoder"];
  out.effective_decoder = row["effective_decoder"];
  out.options = split(row["options"], ' ');
  out.expected_file = row["expected"];
  out.code_address = number(row["bin_load_address"]);
  if (!row["cpu"].empty()) set_cpu(row["cpu"], out);
  apply_options(out);
  const std::filesystem::path folder = directory / out.test;
  std::string bytes;
  if (!read_file(folder / (out.test + ".pt"), bytes)) return (folder / (out.test + ".pt")).string();
  out.stream.assign(bytes.begin(), bytes.end());
  if (read_file(folder / (out.test + ".bin"), bytes)) out.code.assign(bytes.begin(), bytes.end());
  if (!read_file(folder / out.expected_file, out.expected)) return (folder / out.expected_file).string();
  return {};
}

}  // namespace

std::shared_ptr<trace::TraceBundle> bundle_of(const Case& test_case) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  bundle->configuration = test_case.configuration;
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(test_case.stream);
  bundle->streams.push_back(stream);
  if (!test_case.code.empty()) {
    trace::CodeRegion region;
    region.address = test_case.code_address;
    region.size = test_case.code.size();
    region.bytes = trace::TraceBuffer::from_vector(test_case.code);
    bundle->code.push_back(region);
  }
  return bundle;
}

Manifest read_manifest(const std::filesystem::path& directory) {
  Manifest manifest;
  std::string text;
  if (!read_file(directory / "manifest.tsv", text)) {
    manifest.problem = "cannot read " + (directory / "manifest.tsv").string();
    return manifest;
  }
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  const std::vector<std::string> columns = split(line, '\t');
  while (std::getline(lines, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const std::vector<std::string> cells = split(line, '\t');
    Row row;
    for (std::size_t index = 0; index < columns.size() && index < cells.size(); ++index)
      row[columns[index]] = cells[index];
    Case next;
    const std::string missing = read_case(directory, row, next);
    if (!missing.empty()) manifest.problem = "cannot read " + missing;
    manifest.cases.push_back(std::move(next));
  }
  if (manifest.cases.empty() && manifest.problem.empty()) manifest.problem = "the manifest has no rows";
  return manifest;
}

}  // namespace ptkit::golden
