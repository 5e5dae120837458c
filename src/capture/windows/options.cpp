#include "capture/windows/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "capture/common/errors.h"

namespace ptkit::capture {

namespace {

using Problem = std::optional<base::Failure>;

base::Failure expected(std::string_view option, std::string_view what, std::string_view found) {
  return invalid_option(std::string(option) + ": expected " + std::string(what) + ", found \"" +
                        std::string(found) + "\"");
}

// A decimal number, or one with 0x. Everything has to be read.
std::optional<std::uint64_t> number_in(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename T>
Problem read_number(std::string_view option, std::string_view text, std::uint64_t least, std::uint64_t most,
                    T& out) {
  const auto value = number_in(text);
  if (!value || *value < least || *value > most)
    return expected(option, "a number from " + std::to_string(least) + " to " + std::to_string(most), text);
  out = static_cast<T>(*value);
  return {};
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Problem set_levels(std::string_view text, HardwareOptions& out) {
  if (text != "user" && text != "kernel" && text != "both")
    return expected("--levels", "user, kernel or both", text);
  out.user = text != "kernel";
  out.kernel = text != "user";
  return {};
}

Problem set_timing(std::string_view text, RecordOptions& out) {
  out.tsc = out.mtc = out.cyc = false;
  out.hardware.usual_timing = false;
  if (text == "none") return {};
  for (const std::string_view kind : split(text, ',')) {
    if (kind == "tsc")
      out.tsc = true;
    else if (kind == "mtc")
      out.mtc = true;
    else if (kind == "cyc")
      out.cyc = true;
    else
      return expected("--timing", "any of tsc,mtc,cyc, or none", text);
  }
  return {};
}

Problem set_packets(std::string_view text, HardwareOptions& out) {
  for (const std::string_view kind : split(text, ',')) {
    if (kind == "ptwrite")
      out.ptwrite = true;
    else if (kind == "power")
      out.power = true;
    else if (kind == "events")
      out.events = true;
    else
      return expected("--packets", "any of ptwrite,power,events", text);
  }
  return {};
}

// "0,2-3".
Problem set_cpus(std::string_view text, std::vector<std::uint32_t>& out) {
  constexpr std::uint64_t kLast = 64ULL * PTKIT_MOST_GROUPS - 1;
  for (const std::string_view part : split(text, ',')) {
    const auto dash = part.find('-');
    const auto first = number_in(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_in(part.substr(dash + 1));
    if (!first || !last || *first > *last || *last > kLast)
      return expected("-C", "processors such as 0,2-3", text);
    for (std::uint64_t cpu = *first; cpu <= *last; ++cpu) out.push_back(static_cast<std::uint32_t>(cpu));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return {};
}

constexpr std::string_view kFilterForms =
    "\"filter ADDRESS/SIZE\", \"tracestop ADDRESS/SIZE\" or \"filter * @ DRIVER.sys\"";

Problem add_filter(std::string_view text, WindowsOptions& out) {
  for (std::string_view one : split(text, ',')) {
    std::vector<std::string_view> words = split(one, ' ');
    std::erase(words, std::string_view());
    const bool whole = words.size() == 4 && words[0] == "filter" && words[1] == "*" && words[2] == "@";
    if (whole) {
      if (!out.module.empty()) return expected("--filter", "one kernel driver", words[3]);
      out.module = words[3];
      continue;
    }
    FilterRequest request;
    if (words.size() != 2 || (words[0] != "filter" && words[0] != "tracestop"))
      return expected("--filter", kFilterForms, one);
    request.kind = words[0] == "filter" ? FilterRequest::Kind::FILTER : FilterRequest::Kind::TRACESTOP;
    const auto slash = words[1].find('/');
    const auto size = slash == std::string_view::npos ? std::nullopt : number_in(words[1].substr(slash + 1));
    const auto first = number_in(words[1].substr(0, slash));
    if (!first || !size || *size == 0 || *size - 1 > std::numeric_limits<std::uint64_t>::max() - *first)
      return expected("--filter", kFilterForms, one);
    request.first = *first;
    request.last = *first + (*size - 1);
    out.record.filters.push_back(request);
  }
  return {};
}

Problem set_seconds(std::string_view text, std::uint64_t& out) {
  constexpr double kMostSeconds = 1e9;
  double seconds = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || stop != text.data() + text.size() || !(seconds > 0) || seconds > kMostSeconds)
    return expected("--seconds", "a number above 0", text);
  out = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(seconds * 1000));
  return {};
}

Problem set_size(std::string_view option, std::string_view text, std::uint64_t& out) {
  auto size = parse_size(text, option);
  if (!size.ok()) return size.failure();
  out = size.value();
  return {};
}

// Flags. False: it is none.
bool set_flag(std::string_view option, WindowsCommand& out) {
  RecordOptions& record = out.options.record;
  if (option == "-a" || option == "--all-cpus")
    record.hardware.all_cpus = true;
  else if (option == "--bts")
    record.hardware.recorded = Recorded::BTS;
  else if (option == "--single-range")
    record.hardware.single_range = true;
  else if (option == "--no-return-compression")
    record.return_compression = false;
  else if (option == "--no-switches")
    out.options.switches = false;
  else if (option == "--redact")
    record.redact = true;
  else if (option == "-q" || option == "--quiet")
    out.quiet = true;
  else
    return false;
  return true;
}

// An option with a value. `known` is false for others.
Problem set_value(std::string_view option, const std::string& value, WindowsCommand& out, bool& known) {
  constexpr std::uint64_t kMostPsb = std::uint64_t{1} << 26U;
  RecordOptions& record = out.options.record;
  HardwareOptions& hardware = record.hardware;
  known = true;
  if (option == "-o" || option == "--output") {
    record.output = value;
    return {};
  }
  if (option == "-p" || option == "--pid")
    return read_number(option, value, 1, std::numeric_limits<int>::max(), hardware.pid);
  if (option == "-C" || option == "--cpu") return set_cpus(value, hardware.cpus);
  if (option == "-m" || option == "--buffer") return set_size(option, value, hardware.buffer_bytes);
  if (option == "--ring") return set_size(option, value, record.ring_bytes);
  if (option == "--seconds") return set_seconds(value, hardware.limit_ms);
  if (option == "--levels") return set_levels(value, hardware);
  if (option == "--timing") return set_timing(value, record);
  if (option == "--packets") return set_packets(value, hardware);
  if (option == "--filter") return add_filter(value, out.options);
  if (option == "--psb-period") return read_number(option, value, 2048, kMostPsb, record.psb_period);
  if (option == "--cyc-threshold") return read_number(option, value, 0, 15, record.cyc_threshold);
  if (option == "--mtc-period") {
    hardware.usual_mtc_period = false;
    return read_number(option, value, 0, 15, record.mtc_period);
  }
  known = false;
  return {};
}

// Options up to the first word that is none, or to "--". `rest` gets what follows.
Problem read_options(const std::vector<std::string>& words, std::size_t begin, WindowsCommand& out,
                     std::vector<std::string>& rest) {
  std::size_t i = begin;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (!word.starts_with('-') || word == "-") break;
    if (word == "-h" || word == "--help") {
      out.verb = WindowsCommand::Verb::HELP;
      return {};
    }
    if (set_flag(word, out)) continue;
    const auto equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const bool inside = equals != std::string::npos;
    static const std::string kNone;
    const std::string value =
        inside ? word.substr(equals + 1) : (i + 1 < words.size() ? words[i + 1] : kNone);
    const std::string name = word.substr(0, equals);
    bool known = false;
    if (!inside && i + 1 == words.size()) {
      WindowsCommand ignored;
      static_cast<void>(set_value(name, value, ignored, known));
      return invalid_option(known ? name + ": a value has to follow"
                                  : name + ": there is no such option; see --help");
    }
    if (auto failure = set_value(name, value, out, known)) return failure;
    if (!known) return invalid_option(name + ": there is no such option; see --help");
    if (!inside) ++i;
  }
  rest.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(i, words.size())), words.end());
  return {};
}

Problem one_word(const std::vector<std::string>& rest, std::string_view what) {
  if (rest.size() == 1) return {};
  return invalid_option("expected " + std::string(what) + " and nothing else, found " +
                        std::to_string(rest.size()) + " words");
}

// `record`, `attach`, `driver` and `bts` differ in what the words after the options are.
Problem set_target(std::string_view verb, std::vector<std::string> rest, WindowsOptions& out) {
  RecordOptions& record = out.record;
  HardwareOptions& hardware = record.hardware;
  if (verb == "attach") {
    if (auto failure = one_word(rest, "the number of a process")) return failure;
    return read_number("attach", rest.front(), 1, std::numeric_limits<int>::max(), hardware.pid);
  }
  if (verb == "driver") {
    if (auto failure = one_word(rest, "the name of a kernel driver, such as ntfs.sys")) return failure;
    out.module = rest.front();
    hardware.user = false;
    hardware.kernel = true;
    hardware.all_cpus = hardware.cpus.empty();
    return {};
  }
  record.argv = std::move(rest);
  return {};
}

Problem check_target(const WindowsOptions& out) {
  const RecordOptions& record = out.record;
  const HardwareOptions& hardware = record.hardware;
  if (hardware.all_cpus && !hardware.cpus.empty()) return invalid_option("-a and -C: expected one of both");
  if (hardware.pid != 0 && (hardware.whole_cpus() || !record.argv.empty()))
    return invalid_option("-p: expected neither a program nor -a nor -C beside a process");
  if (hardware.needs_program() && record.argv.empty())
    return invalid_option("expected a program (-- PROGRAM ARGS), -p, -a or -C; see --help");
  return {};
}

base::Result<WindowsCommand> parse_recording(std::string_view verb, const std::vector<std::string>& words) {
  WindowsCommand out;
  out.verb = WindowsCommand::Verb::RECORD;
  RecordOptions& record = out.options.record;
  record.output = "trace.ptk";
  record.cyc = false;
  record.mtc_period = 3;
  record.owner = std::nullopt;
  record.hardware.children = false;
  record.hardware.usual_timing = record.hardware.usual_mtc_period = true;
  if (verb == "bts") record.hardware.recorded = Recorded::BTS;
  std::vector<std::string> rest;
  if (auto failure = read_options(words, 1, out, rest)) return *failure;
  if (out.verb == WindowsCommand::Verb::HELP) return out;
  if (auto failure = set_target(verb, std::move(rest), out.options)) return *failure;
  if (auto failure = check_target(out.options)) return *failure;
  return out;
}

}  // namespace

base::Result<std::uint64_t> parse_size(std::string_view text, std::string_view option) {
  constexpr std::string_view kUnits = "KMG";
  std::string_view digits = text;
  unsigned shift = 0;
  if (!digits.empty()) {
    const auto unit = kUnits.find(static_cast<char>(digits.back() & ~0x20));
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(unit) + 1);
      digits.remove_suffix(1);
    }
  }
  const auto value = number_in(digits);
  if (!value || *value == 0 || *value > (std::numeric_limits<std::uint64_t>::max() >> shift))
    return expected(option, "a size such as 64M or 1G", text);
  return *value << shift;
}

base::Result<WindowsCommand> parse_command(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 4> kRecordings{"record", "attach", "driver", "bts"};
  WindowsCommand out;
  if (words.empty() || words[0] == "-h" || words[0] == "--help" || words[0] == "help") return out;
  const std::string& verb = words[0];
  if (std::find(kRecordings.begin(), kRecordings.end(), verb) != kRecordings.end())
    return parse_recording(verb, words);
  if (verb == "--version") {
    out.verb = WindowsCommand::Verb::VERSION;
  } else if (verb == "doctor") {
    out.verb = WindowsCommand::Verb::DOCTOR;
  } else if (verb == "lbr") {
    out.verb = WindowsCommand::Verb::LBR;
  } else if (verb == "snapshot") {
    out.verb = WindowsCommand::Verb::SNAPSHOT;
    if (words.size() != 2) return invalid_option("snapshot: expected the number of a recorder's process");
    auto failure =
        read_number("snapshot", words[1], 1, std::numeric_limits<std::uint32_t>::max(), out.recorder);
    if (failure) return *failure;
    return out;
  } else {
    return expected("ptkit-capture", "record, attach, driver, bts, snapshot, lbr or doctor", verb);
  }
  if (words.size() != 1)
    return invalid_option(verb + ": expected nothing after it, found \"" + words[1] + "\"");
  return out;
}

std::string_view help_text() noexcept {
  return R"(usage: ptkit-capture record [OPTIONS] [-o FILE] [-a | -C CPUS | -p PID] [-- PROGRAM ARGS]
       ptkit-capture attach [OPTIONS] PID
       ptkit-capture driver [OPTIONS] NAME.sys
       ptkit-capture bts [OPTIONS] [-a | -C CPUS | -p PID] [-- PROGRAM ARGS]
       ptkit-capture snapshot PID
       ptkit-capture lbr
       ptkit-capture doctor

Records Intel Processor Trace with the driver ptkit.sys, as an administrator, and writes a bundle (.ptk) that
ptkit reads on Linux. Ctrl-C ends a recording and keeps it.

record     a program that is started here, a process, or processors
attach     a running process: record -p
driver     the code of one loaded kernel driver, on all processors
bts        Branch Trace Store in place of packets: record --bts
snapshot   have the recorder with process number PID keep what its ring has (--ring); Ctrl-Break there does so, too
lbr        print each processor's stack of last branches
doctor     say what works here

what is recorded:
  -o, --output FILE        the bundle (default: trace.ptk)
  -p, --pid PID            a running process
  -a, --all-cpus           whatever runs on any processor
  -C, --cpu CPUS           whatever runs on these processors, such as 0,2-3
  --levels LEVELS          user, kernel or both (default: user; for driver: kernel)
  --filter FILTER          "filter ADDRESS/SIZE", "tracestop ADDRESS/SIZE", or "filter * @ NAME.sys"; may be repeated
  --seconds S              record for S seconds
  --ring SIZE              keep only the last SIZE bytes of each processor, such as 16M
  --bts                    record each taken branch by Branch Trace Store
  --no-switches            no context switches and unloaded images (ETW): threads are not separated
which packets:
  --timing KINDS           any of tsc,mtc,cyc, or none (default: tsc,mtc)
  --packets KINDS          further packets: any of ptwrite,power,events
  --psb-period BYTES       bytes between PSBs (default: 4096)
  --mtc-period N           the field MTCFreq (default: 3)
  --cyc-threshold N        the field CycThresh (default: 0)
  --no-return-compression  write every RET as a TIP packet
more:
  -m, --buffer SIZE        size of each processor's buffer, such as 16M (default: 4M)
  --single-range           with --ring: one range of memory instead of a ToPA table
  --redact                 leave paths and command lines out of the bundle
  -q, --quiet              print errors only

The exit status is that of the program, 0 if none was started, 1 after an error, 2 for wrong options.
)";
}

}  // namespace ptkit::capture
