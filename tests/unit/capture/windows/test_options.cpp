#include <gtest/gtest.h>

#include "capture/windows/affinity.h"
#include "capture/windows/command_line.h"
#include "capture/windows/options.h"

namespace ptkit::capture {
namespace {

using Words = std::vector<std::string>;
using Verb = WindowsCommand::Verb;

WindowsCommand parsed(const Words& words) {
  auto command = parse_command(words);
  EXPECT_TRUE(command.ok()) << command.failure().detail;
  return command.ok() ? command.value() : WindowsCommand();
}

std::string problem(const Words& words) {
  auto command = parse_command(words);
  EXPECT_FALSE(command.ok());
  return command.ok() ? std::string() : command.failure().detail;
}

TEST(WindowsOptions, ReadsAProgramWithItsOwnOptions) {
  const WindowsCommand command =
      parsed({"record", "-o", "x.ptk", "--levels=both", "-a", "--", "a.exe", "-o", "y"});
  EXPECT_EQ(command.verb, Verb::RECORD);
  EXPECT_EQ(command.options.record.output, "x.ptk");
  EXPECT_TRUE(command.options.record.levels.kernel);
  EXPECT_TRUE(command.options.record.cpus.all);
  EXPECT_EQ(command.options.record.argv, (Words{"a.exe", "-o", "y"}));
}

TEST(WindowsOptions, ReadsSizesListsAndTimes) {
  const WindowsCommand command = parsed({"record", "-C", "2-3,0", "--ring", "16M", "-m", "64k", "--seconds",
                                         "1.5", "--timing", "tsc,cyc", "--packets", "ptwrite,power"});
  const RecordOptions& record = command.options.record;
  EXPECT_EQ(record.cpus.numbers, (std::vector<std::uint32_t>{0, 2, 3}));
  EXPECT_EQ(record.ring, std::uint64_t{16} << 20U);
  EXPECT_EQ(record.buffer, 65536U);
  EXPECT_EQ(record.seconds, std::chrono::milliseconds(1500));
  EXPECT_EQ(record.timing, (TimingPackets{.tsc = true, .mtc = false, .cyc = true}));
  EXPECT_TRUE(record.packets.ptwrite && record.packets.power && !record.packets.events);
  EXPECT_EQ(parsed({"record", "-a", "--timing", "none"}).options.record.timing,
            (TimingPackets{.tsc = false, .mtc = false, .cyc = false}));
}

TEST(WindowsOptions, ReadsFilters) {
  const WindowsCommand command = parsed(
      {"record", "-a", "--filter", "filter 0x1000/0x10, tracestop 32/1", "--filter", "filter * @ ntfs.sys"});
  const auto& filters = command.options.record.filters;
  ASSERT_EQ(filters.size(), 2U);
  EXPECT_EQ(filters[0].first, 0x1000U);
  EXPECT_EQ(filters[0].last, 0x100fU);
  EXPECT_EQ(filters[1].kind, FilterRequest::Kind::TRACESTOP);
  EXPECT_EQ(filters[1].last, 32U);
  EXPECT_EQ(command.options.module, "ntfs.sys");
}

TEST(WindowsOptions, ReadsTheOtherVerbs) {
  EXPECT_EQ(parsed({"attach", "12"}).options.record.pid, 12);
  const WindowsCommand driver = parsed({"driver", "--seconds", "2", "ntfs.sys"});
  EXPECT_EQ(driver.options.module, "ntfs.sys");
  EXPECT_TRUE(driver.options.record.levels.kernel && !driver.options.record.levels.user);
  EXPECT_TRUE(driver.options.record.cpus.all);
  EXPECT_EQ(parsed({"bts", "--", "a.exe"}).options.record.recorded(), Recorded::BTS);
  EXPECT_EQ(parsed({"snapshot", "77"}).recorder, 77U);
  EXPECT_EQ(parsed({"doctor"}).verb, Verb::DOCTOR);
  EXPECT_EQ(parsed({"lbr"}).verb, Verb::LBR);
  EXPECT_EQ(parsed({}).verb, Verb::HELP);
  EXPECT_EQ(parsed({"record", "--help"}).verb, Verb::HELP);
}

TEST(WindowsOptions, NamesWhatIsWrong) {
  EXPECT_NE(problem({"record"}).find("expected a program"), std::string::npos);
  EXPECT_NE(problem({"record", "-p", "1", "--", "a"}).find("-p"), std::string::npos);
  EXPECT_NE(problem({"record", "-a", "-C", "1"}).find("one of both"), std::string::npos);
  EXPECT_NE(problem({"record", "--no-such"}).find("--no-such: there is no such option"), std::string::npos);
  EXPECT_NE(problem({"record", "--ring"}).find("--ring: a value has to follow"), std::string::npos);
  EXPECT_NE(problem({"record", "--ring", "12Q"}).find("--ring: expected a size"), std::string::npos);
  EXPECT_NE(problem({"record", "--ring", "99999999999999G"}).find("expected a size"), std::string::npos);
  EXPECT_NE(problem({"record", "-C", "3-1"}).find("such as 0,2-3"), std::string::npos);
  EXPECT_NE(problem({"record", "--filter", "filter main"}).find("--filter"), std::string::npos);
  EXPECT_NE(problem({"record", "--filter", "filter 0xffffffffffffffff/2"}).find("--filter"),
            std::string::npos);
  EXPECT_EQ(problem({"record", "--seconds", "-1"}),
            "--seconds: expected a number from 0.001 to 1000000000, found \"-1\"");
  EXPECT_EQ(problem({"record", "--ring", "1K"}),
            "--ring: expected a size from 4096 to 281474976710656 bytes, found \"1K\"");
  EXPECT_EQ(problem({"record", "--packets", "none"}),
            "--packets: expected any of ptwrite,power,events, found \"none\"");
  EXPECT_EQ(problem({"record", "--timing", "tsc,none"}),
            "--timing: expected any of tsc,mtc,cyc, or none, found \"tsc,none\"");
  EXPECT_NE(problem({"record", "--no-children"}).find("there is no such option"), std::string::npos);
  EXPECT_NE(problem({"record", "--psb-period", "1"}).find("2048"), std::string::npos);
  EXPECT_NE(problem({"trace"}).find("record, attach"), std::string::npos);
  EXPECT_NE(problem({"driver"}).find("name of a kernel driver"), std::string::npos);
}

// Each option of the help is one that the parser knows.
TEST(WindowsOptions, ExplainsOptionsThatExist) {
  const std::string help(help_text());
  std::size_t options = 0;
  for (std::size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
    const std::size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
    const std::string option = help.substr(at, end - at);
    if (option == "--") continue;
    ++options;
    const auto command = parse_command({"record", option});
    const std::string detail = command.ok() ? std::string() : command.failure().detail;
    EXPECT_EQ(detail.find("no such option"), std::string::npos) << detail;
  }
  EXPECT_GT(options, 15U);
}

TEST(WindowsOptions, HelpHasDefaultsAndFitsAScreen) {
  const std::string help = help_text();
  for (std::size_t begin = 0; begin < help.size();) {
    const std::size_t end = help.find('\n', begin);
    EXPECT_LE(end - begin, 120U) << help.substr(begin, end - begin);
    begin = end + 1;
  }
  for (const char* part : {"(default: 4096)", "of each processor", "driver records kernel code"})
    EXPECT_NE(help.find(part), std::string::npos) << part;
  for (const char* other : {"emulator", "step", "perf"})
    EXPECT_EQ(help.find(other), std::string::npos) << other;
}

TEST(WindowsCommandLine, QuotesWhatTheCLibraryUnquotes) {
  EXPECT_EQ(command_line({"a.exe", "b"}), "a.exe b");
  EXPECT_EQ(command_line({"C:\\Program Files\\a.exe", ""}), "\"C:\\Program Files\\a.exe\" \"\"");
  EXPECT_EQ(command_line({"a", "say \"hi\""}), R"(a "say \"hi\"")");
  EXPECT_EQ(command_line({"a", "b c\\"}), R"(a "b c\\")");
  EXPECT_EQ(command_line({"a", "x\\\"y"}), R"(a "x\\\"y")");
  EXPECT_EQ(command_line({"a", "b\\c"}), "a b\\c");
}

TEST(WindowsAffinity, CountsThroughTheGroups) {
  const std::vector<std::uint32_t> sizes{4, 64};
  const auto masks = affinity_of(std::vector<std::uint32_t>{0, 3, 4, 67}, sizes);
  ASSERT_TRUE(masks.ok());
  EXPECT_EQ(masks.value()[0], 0x9U);
  EXPECT_EQ(masks.value()[1], 0x8000000000000001U);
  const auto beyond = affinity_of(std::vector<std::uint32_t>{68}, sizes);
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.failure().detail, "-C: expected processors below 68, found 68");
}

}  // namespace
}  // namespace ptkit::capture
