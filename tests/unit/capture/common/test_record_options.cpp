#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <type_traits>

#include "capture/common/record_options.h"

namespace ptkit::capture {
namespace {

RecordOptions plain(Backend backend) {
  RecordOptions options;
  options.backend = backend;
  options.argv = {"true"};
  options.output = "out.ptk";
  options.owner = std::nullopt;
  return options;
}

std::string refused(const RecordOptions& options) {
  const auto failure = check(options);
  return failure ? failure->detail : "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Some value that is not the default, within the range.
template <typename T>
void give(const OptionInfo& info, T& member) {
  if constexpr (std::is_same_v<T, bool>)
    member = !member;
  else if constexpr (std::is_integral_v<T>)
    member = static_cast<T>(member == static_cast<T>(info.least) ? info.most : info.least);
  else if constexpr (std::is_same_v<T, std::chrono::milliseconds>)
    member = std::chrono::milliseconds(1);
  else if constexpr (std::is_same_v<T, std::string>)
    member = "any";
  else if constexpr (std::is_same_v<T, Levels>)
    member = {true, true};
  else if constexpr (std::is_same_v<T, Cpus>)
    member = {.all = true, .numbers = {}};
  else if constexpr (std::is_same_v<T, MorePackets>)
    member.power = true;
  else if constexpr (std::is_same_v<T, std::vector<FilterRequest>>)
    member.push_back({.file = {}, .symbol = "main"});
  else if constexpr (std::is_same_v<T, std::vector<TriggerRequest>>)
    member.push_back({.file = {}, .symbol = "main"});
  else
    member.emplace();
}

TEST(RecordOptions, EachIsRefusedByBackEndsThatDoNotHaveIt) {
  for (std::size_t one = 0; one < kBackendNames.size(); ++one) {
    for (const OptionInfo& wanted : kRecordOptions) {
      RecordOptions options = plain(static_cast<Backend>(one));
      for_each_option(options, [&wanted](const OptionInfo& info, auto& member) {
        if (info.name == wanted.name) give(info, member);
      });
      const bool has_option = (wanted.back_ends >> one & 1U) != 0;
      const std::string detail = refused(options);
      EXPECT_EQ(detail.empty(), has_option) << wanted.name << " " << kBackendNames[one] << ": " << detail;
      if (!has_option) {
        EXPECT_TRUE(detail.starts_with(std::string(wanted.name) + ": the back end \"" + kBackendNames[one]));
        EXPECT_TRUE(has(detail, "; leave it out, or use the back end ")) << detail;
      }
    }
  }
}

// The range of a row is checked at both of its ends.
TEST(RecordOptions, NumbersHaveTheRangeOfTheirRow) {
  std::size_t numbers = 0;
  for (const OptionInfo& row : kRecordOptions) {
    const auto with = [&row](std::uint64_t value) {
      const bool emulated = (row.back_ends & kUnits) == 0;
      RecordOptions options = plain(
          emulated ? Backend::EMULATOR : ((row.back_ends & kPerf) != 0 ? Backend::PERF : Backend::DRIVER));
      for_each_option(options, [&row, value](const OptionInfo& info, auto& member) {
        using T = std::decay_t<decltype(member)>;
        if (info.name != row.name) return;
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
          member = static_cast<T>(value);
        else if constexpr (std::is_same_v<T, std::optional<std::uint8_t>>)
          member = static_cast<std::uint8_t>(value);
        else if constexpr (std::is_same_v<T, std::chrono::milliseconds>)
          member = std::chrono::milliseconds(value);
        else if constexpr (std::is_same_v<T, Cpus>)
          member.numbers = {static_cast<std::uint32_t>(value)};
      });
      return refused(options);
    };
    if (row.most == 0) continue;
    ++numbers;
    EXPECT_EQ(with(row.least), "") << row.name;
    EXPECT_EQ(with(row.most), "") << row.name;
    const std::string name(row.name);
    if (row.least > 1) {
      EXPECT_TRUE(with(row.least - 1).starts_with(name + ": expected ")) << with(row.least - 1);
    }
    if (row.most < 0x7fffffff) {
      EXPECT_TRUE(with(row.most + 1).starts_with(name + ": expected ")) << with(row.most + 1);
    }
  }
  EXPECT_GE(numbers, 10U);
}

TEST(RecordOptions, PsbPeriodIsAPowerOfTwo) {
  RecordOptions options = plain(Backend::PERF);
  options.psb_period = 3000;
  EXPECT_EQ(refused(options), "psb_period: expected a power of two from 2048 to 67108864 bytes, found 3000");
}

TEST(RecordOptions, StepHasDefaultsOfItsOwn) {
  EXPECT_EQ(plain(Backend::STEP).timing_packets(), (TimingPackets{true, true, true}));
  EXPECT_EQ(plain(Backend::PERF).timing_packets(), (TimingPackets{true, true, false}));
  EXPECT_EQ(plain(Backend::STEP).mtc_freq(), 8);
  EXPECT_EQ(plain(Backend::DRIVER).mtc_freq(), 3);
}

TEST(RecordOptions, LevelsAreNotEmpty) {
  RecordOptions options = plain(Backend::DRIVER);
  options.levels = {false, false};
  EXPECT_EQ(refused(options), "levels: expected user, kernel or both, found neither");
}

TEST(RecordOptions, ProcessorsWriteNoExecutionLog) {
  RecordOptions options = plain(Backend::PERF);
  options.truth_folder = "/tmp";
  EXPECT_TRUE(has(refused(options), "truth: a processor writes no log"));
}

TEST(RecordOptions, TransfersAreTheEmulatorsAlone) {
  RecordOptions options = plain(Backend::EMULATOR);
  options.transfers_folder = "/tmp";
  EXPECT_EQ(refused(options), "");
  for (const Backend backend : {Backend::STEP, Backend::PERF, Backend::DRIVER}) {
    options.backend = backend;
    EXPECT_TRUE(has(refused(options), "transfers: only the emulator writes a log of transfers; use"))
        << refused(options);
  }
}

// Names and flags are those of one option, and flags none of those that command lines have without a row.
TEST(RecordOptions, RowsDoNotShareNamesOrFlags) {
  std::set<std::string> seen{"-a", "--all-cpus", "-o", "--output", "-q", "--quiet", "-h", "--help"};
  const auto check_rows = [&seen](const auto& rows) {
    for (const OptionInfo& row : rows) {
      EXPECT_TRUE(seen.insert(std::string(row.name)).second) << row.name;
      EXPECT_FALSE(row.help.empty()) << row.name;
      EXPECT_FALSE(row.help.ends_with('.')) << row.name;
      std::istringstream flags{std::string(row.flags)};
      for (std::string flag; flags >> flag;) EXPECT_TRUE(seen.insert(flag).second) << flag;
    }
  };
  check_rows(kCallerOptions);
  check_rows(kRecordOptions);
}

}  // namespace
}  // namespace ptkit::capture
