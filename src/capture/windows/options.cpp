#include "capture/windows/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <type_traits>

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

Problem read_value(std::string_view flag, std::string_view text, const OptionInfo& /*info*/, Levels& out) {
  for (const auto& [name, levels] : kLevels) {
    if (text != name) continue;
    out = levels;
    return {};
  }
  return expected(flag, "user, kernel or both", text);
}

template <typename Names>
bool add_names(std::string_view text, Names& out) {
  out = no_names<Names>();
  for (const std::string_view name : split(text, ',')) {
    if (!add_name(out, name)) return false;
  }
  return true;
}

Problem read_value(std::string_view flag, std::string_view text, const OptionInfo& /*info*/,
                   std::optional<TimingPackets>& out) {
  if (text == "none") {
    out = no_names<TimingPackets>();
    return {};
  }
  if (add_names(text, out.emplace())) return {};
  return expected(flag, "any of " + all_names<TimingPackets>() + ", or none", text);
}

Problem read_value(std::string_view flag, std::string_view text, const OptionInfo& /*info*/,
                   MorePackets& out) {
  if (add_names(text, out)) return {};
  return expected(flag, "any of " + all_names<MorePackets>(), text);
}

// "0,2-3".
Problem read_value(std::string_view flag, std::string_view text, const OptionInfo& info, Cpus& out) {
  std::vector<std::uint32_t>& numbers = out.numbers;
  for (const std::string_view part : split(text, ',')) {
    const auto dash = part.find('-');
    const auto first = number_in(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_in(part.substr(dash + 1));
    if (!first || !last || *first > *last || *last > info.most)
      return expected(flag, "processors such as 0,2-3", text);
    for (std::uint64_t cpu = *first; cpu <= *last; ++cpu) numbers.push_back(static_cast<std::uint32_t>(cpu));
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
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

// "0.001" for 1.
std::string seconds_text(std::uint64_t ms) {
  std::string fraction = std::to_string(1000 + ms % 1000);
  fraction.front() = '.';
  return std::to_string(ms / 1000).append(ms % 1000 != 0 ? fraction : std::string());
}

Problem read_value(std::string_view flag, std::string_view text, const OptionInfo& info,
                   std::chrono::milliseconds& out) {
  double seconds = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const double ms = std::round(seconds * 1000);
  if (error != std::errc() || stop != text.data() + text.size() || !(ms >= static_cast<double>(info.least)) ||
      ms > static_cast<double>(info.most))
    return expected(flag, "a number from " + seconds_text(info.least) + " to " + seconds_text(info.most),
                    text);
  out = std::chrono::milliseconds(static_cast<std::int64_t>(ms));
  return {};
}

template <std::integral T>
Problem read_value(std::string_view flag, std::string_view text, const OptionInfo& info, T& out) {
  if (info.kind != OptionKind::SIZE) return read_number(flag, text, info.least, info.most, out);
  auto size = parse_size(text, flag);
  if (!size.ok()) return size.failure();
  if (size.value() < info.least || size.value() > info.most)
    return expected(
        flag, "a size from " + std::to_string(info.least) + " to " + std::to_string(info.most) + " bytes",
        text);
  out = static_cast<T>(size.value());
  return {};
}

Problem read_value(std::string_view flag, std::string_view text, const OptionInfo& info,
                   std::optional<std::uint8_t>& out) {
  return read_number(flag, text, info.least, info.most, out.emplace());
}

bool has_flag(const OptionInfo& info, std::string_view flag) {
  const std::vector<std::string_view> flags = split(info.flags, ' ');
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

// The options of `ptkit record` that the Windows driver has.
bool is_offered(const OptionInfo& info) {
  return !info.flags.empty() && (info.systems & kWindows) != 0 && (info.back_ends & kDriver) != 0;
}

// Flags. False: it is none.
bool set_flag(std::string_view flag, WindowsCommand& out) {
  RecordOptions& record = out.options.record;
  if (flag == "-a" || flag == "--all-cpus")
    record.cpus.all = true;
  else if (flag == "--no-switches")
    out.options.switches = false;
  else if (flag == "-q" || flag == "--quiet")
    out.quiet = true;
  else {
    bool known = false;
    for_each_option(record, [&](const OptionInfo& info, auto& member) {
      if constexpr (std::is_same_v<decltype(member), bool&>) {
        if (!is_offered(info) || !has_flag(info, flag)) return;
        member = info.preset == "false";
        known = true;
      }
    });
    return known;
  }
  return true;
}

// An option with a value. `known` is false for others.
Problem set_value(std::string_view flag, const std::string& value, WindowsCommand& out, bool& known) {
  known = true;
  if (flag == "-o" || flag == "--output") {
    out.options.record.output = value;
    return {};
  }
  if (flag == "--filter") return add_filter(value, out.options);
  known = false;
  Problem failure;
  for_each_option(out.options.record, [&](const OptionInfo& info, auto& member) {
    if (!is_offered(info) || !has_flag(info, flag)) return;
    if constexpr (requires { read_value(flag, value, info, member); }) {
      if (info.kind == OptionKind::FLAG) return;
      known = true;
      failure = read_value(flag, value, info, member);
    }
  });
  return failure;
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

Problem one_word(const std::vector<std::string>& rest, std::string_view name) {
  if (rest.size() == 1) return {};
  return invalid_option("expected " + std::string(name) + " and nothing else, found " +
                        std::to_string(rest.size()) + " words");
}

// `record`, `attach`, `driver` and `bts` differ in what the words after the options are.
Problem set_target(std::string_view verb, std::vector<std::string> rest, WindowsOptions& out) {
  RecordOptions& record = out.record;
  if (verb == "attach") {
    if (auto failure = one_word(rest, "the number of a process")) return failure;
    return read_number("attach", rest.front(), 1, std::numeric_limits<int>::max(), record.pid);
  }
  if (verb == "driver") {
    if (auto failure = one_word(rest, "the name of a kernel driver, such as ntfs.sys")) return failure;
    out.module = rest.front();
    record.levels.user = false;
    record.levels.kernel = true;
    record.cpus.all = record.cpus.numbers.empty();
    return {};
  }
  record.argv = std::move(rest);
  return {};
}

Problem check_target(const WindowsOptions& out) {
  const RecordOptions& record = out.record;
  if (record.cpus.all && !record.cpus.numbers.empty())
    return invalid_option("-a and -C: expected one of both");
  if (record.pid != 0 && (record.whole_cpus() || !record.argv.empty()))
    return invalid_option("-p: expected neither a program nor -a nor -C beside a process");
  if (record.needs_program() && record.argv.empty())
    return invalid_option("expected a program (-- PROGRAM ARGS), -p, -a or -C; see --help");
  return {};
}

base::Result<WindowsCommand> parse_recording(std::string_view verb, const std::vector<std::string>& words) {
  WindowsCommand out;
  out.verb = WindowsCommand::Verb::RECORD;
  RecordOptions& record = out.options.record;
  record.output = "trace.ptk";
  record.owner = std::nullopt;
  if (verb == "bts") record.bts = true;
  std::vector<std::string> rest;
  if (auto failure = read_options(words, 1, out, rest)) return *failure;
  if (out.verb == WindowsCommand::Verb::HELP) return out;
  if (auto failure = set_target(verb, std::move(rest), out.options)) return *failure;
  if (auto failure = check_target(out.options)) return *failure;
  return out;
}

}  // namespace

base::Result<std::uint64_t> parse_size(std::string_view text, std::string_view option) {
  constexpr std::string_view kSuffixes = "KMG";
  std::string_view digits = text;
  unsigned shift = 0;
  if (!digits.empty()) {
    const auto unit = kSuffixes.find(static_cast<char>(digits.back() & ~0x20));
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

namespace {

constexpr std::size_t kHelpColumn = 27;

std::string help_line(std::string_view flags, std::string_view metavar, std::string_view help) {
  std::string line = "  ";
  for (const std::string_view flag : split(flags, ' '))
    line += (line.size() > 2 ? ", " : "") + std::string(flag);
  if (!metavar.empty()) line += " " + std::string(metavar);
  line.resize(std::max(line.size() + 2, kHelpColumn), ' ');
  return line + std::string(help) + "\n";
}

std::string help_lines(OptionSection section) {
  std::string out;
  for (const OptionInfo& info : kRecordOptions) {
    if (is_offered(info) && section_of(info.section) == section)
      out += help_line(info.flags, info.metavar, info.help);
  }
  return out;
}

constexpr std::string_view kUsage =
    R"(usage: ptkit-capture record [OPTIONS] [-o FILE] [-a | -C CPUS | -p PID] [-- PROGRAM ARGS]
       ptkit-capture attach [OPTIONS] PID
       ptkit-capture driver [OPTIONS] NAME.sys
       ptkit-capture bts [OPTIONS] [-a | -C CPUS | -p PID] [-- PROGRAM ARGS]
       ptkit-capture snapshot PID
       ptkit-capture lbr
       ptkit-capture doctor

Records Intel Processor Trace with the driver ptkit.sys, as an administrator, and writes a bundle (.ptk) that
ptkit reads on Linux. Ctrl-C ends a recording and keeps it.

record     a program that is started, a process, or processors
attach     a running process: record -p
driver     the kernel code of one loaded kernel driver, on all processors
bts        Branch Trace Store instead of packets: record --bts
snapshot   the recorder with process number PID writes its ring (--ring); Ctrl-Break there does so, too
lbr        print each processor's stack of last branches
doctor     report what works on this system
)";

}  // namespace

std::string help_text() {
  std::string out(kUsage);
  out += "\nwhat is recorded:\n";
  out += help_line("-o --output", "FILE", "the bundle (default: trace.ptk)");
  out += help_line("-a --all-cpus", "", "whatever runs on any processor");
  out += help_lines(OptionSection::UNITS) + help_lines(OptionSection::SCOPE);
  out += help_line("--no-switches", "",
                   "no context switches and unloaded images (ETW): threads are not separated");
  out += "which packets:\n" + help_lines(OptionSection::PACKETS);
  out += "more:\n" + help_lines(OptionSection::GENERAL);
  out += help_line("-q --quiet", "", "print errors only");
  out +=
      "\nFILTER: \"filter ADDRESS/SIZE\", \"tracestop ADDRESS/SIZE\", or \"filter * @ NAME.sys\".\n"
      "driver records kernel code, whatever --levels is.\n\n"
      "The exit status is that of the program, 0 if none was started, 1 after an error, 2 for wrong "
      "options.\n";
  return out;
}

}  // namespace ptkit::capture
