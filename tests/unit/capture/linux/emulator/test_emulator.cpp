// The emulator back end's recorder. This test program runs as QEMU: see fake_qemu().
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include "capture/linux/emulator/recorder.h"
#include "formats/registry.h"
#include "unit/capture/common/ignored_signal.h"
#include "unit/capture/linux/encode/fake_guest.h"
#include "unit/support/scratch.h"
#include "unit/support/warned.h"

namespace ptkit::capture {
namespace {

using formats::test::Scratch;
using plugin::LogKind;
using plugin::MarkKind;
using test::FakeGuest;

// ---- guests: what the fake QEMU executes

constexpr std::uint64_t kFirst = 0x401000;
constexpr std::uint64_t kSecond = 0x401010;
const std::string kFirstCode("\x90\xeb\x0d", 3);   // nop; jmp kSecond
const std::string kSecondCode("\x90\x75\xed", 3);  // nop; jne kFirst
constexpr std::size_t kInsns = 2;                  // per block
constexpr std::uint32_t kLoops = 100000;           // lines: more than a ring holds
constexpr int kUntraced = 3;                       // exit status of a refused guest

struct Loop {
  FakeGuest guest;
  std::vector<std::uint32_t> line;

  explicit Loop(const std::string& socket) {
    if (!guest.connect(socket)) ::_exit(kUntraced);
    guest.take_slot();
    const std::array blocks{guest.block(kFirst, kFirstCode), guest.block(kSecond, kSecondCode)};
    for (std::size_t i = 0; i < guest.line_blocks(); ++i) line.push_back(blocks[i % blocks.size()]);
  }
  void run(std::uint32_t lines) {
    for (std::uint32_t i = 0; i < lines; ++i)
      if (!guest.line(line)) return;
  }
};

int guest_loops(const std::string& socket) {
  Loop loop(socket);
  loop.run(kLoops);
  loop.guest.mark(MarkKind::PROCESS_EXIT, {3});
  return 3;
}

// Connects after the recording has ended.
int guest_connects_late(const std::string& socket) {
  ::usleep(200000);
  const Loop loop(socket);
  return 90;
}

int guest_is_killed(const std::string& socket) {
  Loop loop(socket);
  loop.run(10);
  loop.guest.begin_line(std::span(loop.line).first(5));
  return ::raise(SIGKILL);
}

int guest_waits(const std::string& socket) {
  Loop loop(socket);
  loop.run(10);
  for (;;) ::pause();
}

// Clients that close the socket before their hello is complete, and one with an invalid magic number.
int guest_has_invalid_clients(const std::string& socket) {
  Loop loop(socket);
  loop.run(1);
  FakeGuest::hang_up(socket, 0);
  FakeGuest::hang_up(socket, 4);
  FakeGuest::hang_up(socket, sizeof(plugin::Hello) - 1);
  FakeGuest other;
  if (other.connect(socket, {}, 0x12345678)) return 91;
  loop.run(1);
  return 0;
}

int guest_has_threads(const std::string& socket) {
  Loop loop(socket);
  std::thread other([&] {
    loop.guest.take_slot(1);
    loop.guest.line(loop.line, 1);
    loop.guest.mark(MarkKind::THREAD_EXIT, {0}, 1);
    loop.guest.end_slot(1);
  });
  other.join();
  loop.run(1);
  loop.guest.shared().lost_threads = 2;
  loop.guest.shared().lost_children = 1;
  return 0;
}

int guest_forks(const std::string& socket) {
  Loop loop(socket);
  loop.run(1);
  loop.guest.mark(MarkKind::SYSCALL, {57});
  const pid_t child = ::fork();
  if (child == 0) {
    FakeGuest guest;
    ::usleep(100000);  // the parent is gone by then
    if (!guest.connect(socket, {::getppid(), loop.guest.number(), 2})) ::_exit(90);
    guest.take_slot();
    guest.line(loop.line);
    const std::array own{guest.block(kFirst, kFirstCode)};
    guest.line(own);
    ::_exit(7);
  }
  loop.guest.mark(MarkKind::SYSCALL_END, {57, static_cast<std::uint64_t>(child)});
  return 0;
}

// A child that has more blocks of its parent than the parent has.
int guest_inherits_unknown_code(const std::string& socket) {
  Loop loop(socket);
  loop.run(1);
  FakeGuest child;
  if (child.connect(socket, {::getpid(), loop.guest.number(), 1000})) return 91;
  return 0;
}

int guest_executes(const std::string& socket) {
  Loop before(socket);
  before.run(2);
  before.guest.mark(MarkKind::EXEC);
  Loop after(socket);
  after.run(3);
  return 0;
}

int guest_notes(const std::string& socket) {
  Loop loop(socket);
  plugin::LogMap map{};
  const std::string path = std::filesystem::canonical("/proc/self/exe");  // as a process has it in its maps
  map.begin = kFirst;
  map.end = kFirst + 0x1000;
  map.offset = 0x2000;
  map.path_bytes = static_cast<std::uint32_t>(path.size());
  loop.guest.log(LogKind::MAP, map, path);
  const std::array mapped{loop.guest.block(kFirst + 0x20, std::string("\x90\xeb\xdd", 3))};
  plugin::LogNote note{};
  note.text_bytes = 12;
  note.kind = plugin::NoteKind::EXEC_FAILED;
  note.error = ENOMEM;
  loop.guest.log(LogKind::NOTE, note, "/bin/program");
  note.kind = plugin::NoteKind::PROGRAM_NATIVE;
  loop.guest.log(LogKind::NOTE, note, "/bin/program");
  loop.guest.line(mapped);
  loop.guest.mark(MarkKind::INTERRUPT, {kFirst});
  loop.guest.mark(MarkKind::RESUME, {kFirst, 0, 15, 1});
  loop.run(1);
  return 0;
}

int guest_changes_code(const std::string& socket) {
  Loop loop(socket);
  loop.run(1);
  const std::array changed{loop.guest.block(kFirst, std::string("\x66\x90\xeb\x0c", 4))};
  loop.guest.mark(MarkKind::TRANSLATED, {changed[0], kFirst});
  loop.guest.line(changed);
  return 0;
}

// ---- guests that write invalid data. Each ends with status 0.

int guest_sends_invalid_magic(const std::string& socket) {
  FakeGuest guest;
  return guest.connect(socket, {}, 0x12345678) ? 91 : 0;
}

template <typename Damage>
int damaged(const std::string& socket, Damage&& damage) {
  Loop loop(socket);
  loop.run(2);
  damage(loop.guest);
  loop.run(2);
  ::usleep(50000);
  return 0;
}

template <typename T>
T record_of(std::uint32_t bytes, LogKind kind) {
  T record{};
  record.record.bytes = bytes;
  record.record.kind = kind;
  return record;
}

// Makes the recorder read the log.
void mark_translated(FakeGuest& guest) { guest.mark(MarkKind::TRANSLATED, {2, kFirst}); }

using Guest = std::function<int(const std::string& socket)>;
using Damage = std::function<void(FakeGuest& guest)>;

const std::map<std::string, Damage>& damages() {
  static const std::map<std::string, Damage> all{
      {"block-number",
       [](FakeGuest& guest) {
         guest.line(std::array<std::uint32_t, 2>{0, 0x40000000});
       }},
      {"mark-kind", [](FakeGuest& guest) { guest.mark(static_cast<MarkKind>(77)); }},
      {"lines-ahead", [](FakeGuest& guest) { guest.slot().lines += 1U << 30U; }},
      {"lines-back",
       [](FakeGuest& guest) {
         while (guest.slot().consumed == 0) ::usleep(1000);
         guest.slot().lines = 0;
         ::_exit(0);
       }},
      {"log-kind",
       [](FakeGuest& guest) {
         guest.log(static_cast<LogKind>(9), plugin::LogNote{}, "");
         mark_translated(guest);
       }},
      {"log-record-of-no-size",
       [](FakeGuest& guest) {
         guest.log_raw(record_of<plugin::LogNote>(0, LogKind::NOTE), "");
         guest.shared().log_written += 64;
         mark_translated(guest);
       }},
      {"log-record-too-large",
       [](FakeGuest& guest) {
         guest.log_raw(record_of<plugin::LogNote>(0xfffffff8, LogKind::NOTE), "");
         mark_translated(guest);
       }},
      {"log-record-of-odd-size",
       [](FakeGuest& guest) {
         guest.log_raw(record_of<plugin::LogNote>(21, LogKind::NOTE), "");
         mark_translated(guest);
       }},
      {"log-written-ahead",
       [](FakeGuest& guest) {
         guest.shared().log_written += std::uint64_t{1} << 40U;
         mark_translated(guest);
       }},
      {"block-too-large",
       [](FakeGuest& guest) {
         plugin::LogBlock block{};
         block.size = 0xffffffff;
         guest.log(LogKind::BLOCK, block, "");
         mark_translated(guest);
       }},
      {"map-path-too-long",
       [](FakeGuest& guest) {
         plugin::LogMap map{};
         map.end = 1;
         map.path_bytes = 1000;
         guest.log(LogKind::MAP, map, "/");
         mark_translated(guest);
       }},
      {"map-ends-first",
       [](FakeGuest& guest) {
         guest.log(LogKind::MAP, plugin::LogMap{}, "");
         mark_translated(guest);
       }},
      {"note-too-long",
       [](FakeGuest& guest) {
         plugin::LogNote note{};
         note.text_bytes = 77;
         guest.log(LogKind::NOTE, note, "");
         mark_translated(guest);
       }},
      {"note-of-unknown-kind",
       [](FakeGuest& guest) {
         guest.log(LogKind::NOTE, plugin::LogNote{}, "");
         mark_translated(guest);
       }},
      {"header-of-noise",
       [](FakeGuest& guest) {
         std::memset(&guest.shared(), 0xa5, sizeof(plugin::SharedMemoryHeader));
         ::_exit(0);
       }},
      {"noise",
       [](FakeGuest& guest) {
         std::memset(&guest.slot(), 0x5a, std::size_t{64} << 10U);
         ::_exit(0);
       }},
  };
  return all;
}

const std::map<std::string, Guest>& guests() {
  static const std::map<std::string, Guest> all{
      {"loops", guest_loops},
      {"late", guest_connects_late},
      {"is-killed", guest_is_killed},
      {"waits", guest_waits},
      {"has-threads", guest_has_threads},
      {"forks", guest_forks},
      {"executes", guest_executes},
      {"inherits-unknown-code", guest_inherits_unknown_code},
      {"notes", guest_notes},
      {"changes-code", guest_changes_code},
      {"has-odd-callers", guest_has_invalid_clients},
      {"calls-in-another-way", guest_sends_invalid_magic},
      {"never-calls", [](const std::string&) { return 5; }},
  };
  return all;
}

// Parses QEMU's command line as the recorder writes it. The program's last argument selects the guest.
bool fake_qemu() {
  std::vector<std::string> words;
  std::ifstream file("/proc/self/cmdline");
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (words.size() == 2 && words[1] == "--version") {
    static_cast<void>(!::write(STDOUT_FILENO, "fake version 9.8.7 (test)\n", 26));
    ::_exit(0);
  }
  if (words.size() < 5 || words[1] != "-plugin") return false;
  const std::string socket = words[2].substr(words[2].find(",socket=") + 8);
  const std::string& what = words.back();
  if (const auto guest = guests().find(what); guest != guests().end()) ::_exit(guest->second(socket));
  if (const auto damage = damages().find(what); damage != damages().end())
    ::_exit(damaged(socket, damage->second));
  ::_exit(99);
}
// Runs before main(), after the initialization of the variables above.
[[maybe_unused]] const bool kIsFake = fake_qemu();

// ---- recordings

std::string loaded_library() {
  Dl_info info{};
  return ::dladdr(reinterpret_cast<void*>(&::getpid), &info) != 0 ? info.dli_fname : "";
}

RecordOptions options(const Scratch& scratch, const std::string& guest) {
  RecordOptions out;
  out.argv = {"/bin/true", guest};
  out.output = scratch.at("out.ptk");
  out.qemu = "/proc/self/exe";
  out.plugin = loaded_library();
  out.mtc_period = 8;
  return out;
}

struct Recorded {
  RecordResult result;
  trace::TraceBundle bundle;
};

Recorded record(const RecordOptions& options) {
  auto result = EmulatorRecorder(options).run();
  if (!result.ok()) {
    ADD_FAILURE() << result.failure().detail;
    return {};
  }
  auto bundle = formats::open(options.output, {});
  if (!bundle.ok()) {
    ADD_FAILURE() << bundle.failure().detail;
    return {};
  }
  EXPECT_EQ(bundle.value().warnings.size(), result.value().warnings.size());
  return {std::move(result.value()), std::move(bundle.value())};
}

Recorded record(const std::string& guest) {
  const Scratch scratch;
  return record(options(scratch, guest));
}

std::string failure_of(const RecordOptions& options) {
  const auto result = EmulatorRecorder(options).run();
  return result.ok() ? "(it ran)" : result.failure().detail;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count(const trace::TraceBundle& bundle, trace::SidebandKind kind) {
  return static_cast<std::size_t>(
      std::count_if(bundle.sideband.begin(), bundle.sideband.end(),
                    [kind](const trace::Sideband& record) { return record.kind == kind; }));
}

// The instructions of streams with `lines` full lines. The target of a stream's last jump is not known.
constexpr std::uint64_t insns_of_lines(std::uint64_t lines, std::uint64_t streams = 1,
                                       std::size_t line_bytes = plugin::kLongLineBytes) {
  return lines * plugin::line_blocks(line_bytes) * kInsns - streams;
}

TEST(EmulatorRecorder, ReadsMoreLinesThanTheRingHolds) {
  const Recorded all = record("loops");
  EXPECT_EQ(all.result.exit_status, 3);
  EXPECT_EQ(all.result.instructions, insns_of_lines(kLoops));
  EXPECT_TRUE(all.result.warnings.empty());
  ASSERT_EQ(all.bundle.streams.size(), 1U);
  EXPECT_EQ(all.bundle.streams[0].data.size(), all.result.trace_bytes);
  EXPECT_EQ(all.bundle.sideband.front().text, "/usr/bin/fake");
  EXPECT_TRUE(has(all.bundle.metadata, "QEMU 9.8.7"));
  EXPECT_TRUE(has(all.bundle.metadata, "\"backend\":\"emulator\""));
  ASSERT_EQ(count(all.bundle, trace::SidebandKind::EXIT), 1U);
  EXPECT_EQ(all.bundle.sideband.back().kind, trace::SidebandKind::EXIT);
  EXPECT_EQ(all.bundle.sideband.back().value, 3);
}

TEST(EmulatorRecorder, ReadsTheUnfinishedLineOfAKilledGuest) {
  const Recorded all = record("is-killed");
  EXPECT_EQ(all.result.exit_status, 128 + SIGKILL);
  EXPECT_EQ(all.result.instructions, insns_of_lines(10) + 5 * kInsns);
}

TEST(EmulatorRecorder, LinesAreShortWithCycPackets) {
  const Scratch scratch;
  RecordOptions one = options(scratch, "is-killed");
  one.timing = TimingPackets{.cyc = true};
  EXPECT_EQ(record(one).result.instructions, insns_of_lines(10, 1, plugin::kShortLineBytes) + 5 * kInsns);
  one.cyc_threshold = 9;
  EXPECT_EQ(record(one).result.instructions, insns_of_lines(10, 1, plugin::kShortLineBytes) + 5 * kInsns);
  one.cyc_threshold = 10;
  EXPECT_EQ(record(one).result.instructions, insns_of_lines(10) + 5 * kInsns);
}

TEST(EmulatorRecorder, WritesOneStreamPerThread) {
  const Recorded all = record("has-threads");
  EXPECT_EQ(all.result.streams, 2U);
  EXPECT_EQ(all.result.instructions, insns_of_lines(2, 2));
  EXPECT_EQ(all.result.warnings.size(), 2U);
  EXPECT_TRUE(warns(all.result.warnings, WarningCode::GUEST_THREAD_LIMIT, 2));
  EXPECT_TRUE(warns(all.result.warnings, WarningCode::GUEST_CHILDREN_UNREACHED, 1));
}

TEST(EmulatorRecorder, WarnsOfInvalidClients) {
  const Recorded all = record("has-odd-callers");
  EXPECT_EQ(all.result.exit_status, 0);
  EXPECT_EQ(all.result.instructions, insns_of_lines(2));
  EXPECT_EQ(all.result.warnings.size(), 1U);
  EXPECT_TRUE(warns(all.result.warnings, WarningCode::GUEST_CALL_INVALID));
}

TEST(EmulatorRecorder, FollowsChildrenThatOutliveTheirParent) {
  const Recorded all = record("forks");
  EXPECT_EQ(all.result.exit_status, 0);
  EXPECT_EQ(all.result.instructions, insns_of_lines(2) + kInsns);
  ASSERT_EQ(all.bundle.streams.size(), 2U);
  EXPECT_NE(all.bundle.streams[0].space, all.bundle.streams[1].space);
  // The child's space has the inherited code that the child executed.
  for (const trace::SpaceId space : {all.bundle.streams[0].space, all.bundle.streams[1].space}) {
    EXPECT_EQ(std::count_if(all.bundle.code.begin(), all.bundle.code.end(),
                            [&](const trace::CodeRegion& code) { return code.space == space; }),
              2);
  }
  const auto& sideband = all.bundle.sideband;
  EXPECT_TRUE(std::any_of(sideband.begin(), sideband.end(), [&](const trace::Sideband& record) {
    return record.kind == trace::SidebandKind::PROCESS && record.parent == all.bundle.streams[0].pid;
  }));
}

TEST(EmulatorRecorder, BeginsNewSpacesAtExec) {
  const Recorded all = record("executes");
  ASSERT_EQ(all.bundle.streams.size(), 2U);
  EXPECT_EQ(all.bundle.streams[0].pid, all.bundle.streams[1].pid);
  EXPECT_NE(all.bundle.streams[0].space, all.bundle.streams[1].space);
  EXPECT_EQ(all.result.instructions, insns_of_lines(5, 2));
  EXPECT_EQ(count(all.bundle, trace::SidebandKind::EXEC), 2U);
  EXPECT_EQ(count(all.bundle, trace::SidebandKind::EXIT), 1U);
}

TEST(EmulatorRecorder, RecordsMappingsSignalsAndNotes) {
  const Recorded all = record("notes");
  ASSERT_EQ(all.bundle.files.size(), 1U);
  EXPECT_FALSE(all.bundle.files[0].symbols.empty());
  EXPECT_EQ(count(all.bundle, trace::SidebandKind::MAP), 1U);
  const auto code =
      std::find_if(all.bundle.code.begin(), all.bundle.code.end(), [](const trace::CodeRegion& region) {
        return region.address == kFirst + 0x20 && region.bytes.size() != 0;
      });
  ASSERT_NE(code, all.bundle.code.end());
  EXPECT_EQ(code->file, 0);
  EXPECT_EQ(code->file_offset, code->address - kFirst + 0x2000);
  const auto& sideband = all.bundle.sideband;
  EXPECT_TRUE(std::any_of(sideband.begin(), sideband.end(), [](const trace::Sideband& record) {
    return record.kind == trace::SidebandKind::SIGNAL && record.value == SIGTERM;
  }));
  EXPECT_EQ(all.result.warnings.size(), 2U);
  EXPECT_TRUE(
      warns(all.result.warnings, WarningCode::GUEST_EXEC_FAILED, "/bin/program", "Cannot allocate memory"));
  EXPECT_TRUE(warns(all.result.warnings, WarningCode::GUEST_PROGRAM_NATIVE, "/bin/program"));
}

TEST(EmulatorRecorder, RecordsChangedCodeWithItsTime) {
  const Recorded all = record("changes-code");
  std::uint64_t changed_at = 0;
  for (const trace::CodeRegion& region : all.bundle.code) {
    if (region.address == kFirst && region.bytes.size() == 4) changed_at = region.tsc_from;
  }
  EXPECT_NE(changed_at, 0U);
}

TEST(EmulatorRecorder, WritesExecutionLogOfEveryInstruction) {
  const Scratch scratch;
  RecordOptions one = options(scratch, "is-killed");
  one.truth_folder = scratch.path();
  // Lines of this guest have no block times, but the header asks for them: a line has 7 blocks.
  const Recorded all = record(one);
  EXPECT_EQ(formats::test::read_all(scratch.at("stream-0.u64")).size(),
            all.result.instructions * sizeof(std::uint64_t));
}

class DamagedGuest : public ::testing::TestWithParam<std::string> {};

TEST_P(DamagedGuest, EndsItsRecordingWithAWarning) {
  const Recorded all = record(GetParam());
  EXPECT_EQ(all.result.exit_status, 0);
  EXPECT_LE(all.result.instructions, insns_of_lines(4));
  if (GetParam() == "header-of-noise") return;  // the recorder does not need what is there
  EXPECT_EQ(all.result.warnings.size(), 1U);
  EXPECT_TRUE(warns(all.result.warnings, WarningCode::GUEST_DATA_DAMAGED));
}

std::vector<std::string> names_of_damages() {
  std::vector<std::string> names;
  for (const auto& [name, damage] : damages()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(EmulatorRecorder, DamagedGuest, ::testing::ValuesIn(names_of_damages()),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(EmulatorRecorder, FailsIfThePluginWasNotLoaded) {
  const Scratch scratch;
  const std::string never = failure_of(options(scratch, "never-calls"));
  EXPECT_TRUE(has(never, "(version 9.8.7) ended with status 5 without having loaded ptkit's plugin"))
      << never;
  EXPECT_TRUE(has(failure_of(options(scratch, "calls-in-another-way")), "ended with status 0"));
}

TEST(EmulatorRecorder, NamesMissingFiles) {
  const Scratch scratch;
  RecordOptions one = options(scratch, "loops");
  one.argv[0] = "/no/such/program";
  EXPECT_TRUE(has(failure_of(one), "cannot run /no/such/program: No such file"));
  one.argv[0] = "no-such-program-in-PATH";
  EXPECT_TRUE(has(failure_of(one), "cannot run no-such-program-in-PATH: No such file"));
  one.argv[0] = scratch.path();
  EXPECT_TRUE(has(failure_of(one), "Permission denied"));
  one.argv[0] = scratch.write("text", "no program");
  EXPECT_TRUE(has(failure_of(one), "Permission denied"));
  std::filesystem::permissions(one.argv[0], std::filesystem::perms::owner_all);
  EXPECT_TRUE(has(failure_of(one), "the back end \"step\" records 32-bit x86 programs"));
  one = options(scratch, "loops");
  one.qemu = "/no/such/qemu";
  EXPECT_TRUE(has(failure_of(one), "there is no program /no/such/qemu"));
  one = options(scratch, "loops");
  one.plugin = "/no/such/plugin.so";
  EXPECT_TRUE(has(failure_of(one), "\"/no/such/plugin.so\""));
  one = options(scratch, "loops");
  one.output = scratch.at("no/such/folder/out.ptk");
  EXPECT_TRUE(has(failure_of(one), "cannot create"));
}

TEST(EmulatorRecorder, StopsOnRequest) {
  const Scratch scratch;
  const IgnoredSignal ignored(SIGINT);
  EmulatorRecorder recorder(options(scratch, "waits"));
  std::thread stopper([&] {
    while (recorder.status().instructions == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GT(recorder.status().pid, 0);
    recorder.stop();
  });
  const auto result = recorder.run();
  stopper.join();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().interrupted);
  EXPECT_EQ(result.value().exit_status, 128 + SIGINT);
  EXPECT_EQ(result.value().instructions, insns_of_lines(10));
  EXPECT_TRUE(formats::open(scratch.at("out.ptk"), {}).ok());
}

TEST(EmulatorRecorder, ProgramContinuesAfterMaxInstructions) {
  const Scratch scratch;
  RecordOptions one = options(scratch, "loops");
  one.max_instructions = 100000;
  const Recorded all = record(one);
  EXPECT_TRUE(all.result.limited);
  EXPECT_EQ(all.result.exit_status, 3);
  EXPECT_GE(all.result.instructions, 100000U);
  EXPECT_LT(all.result.instructions, insns_of_lines(kLoops));
}

TEST(EmulatorRecorder, DetachesAndPauses) {
  const Scratch scratch;
  EmulatorRecorder recorder(options(scratch, "loops"));
  EXPECT_FALSE(recorder.pause());
  const auto result = recorder.run();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(result.value().instructions, 0U);
  EXPECT_EQ(result.value().streams, 0U);
  for (const char* const guest : {"loops", "late"}) {
    EmulatorRecorder detached(options(scratch, guest));
    EXPECT_FALSE(detached.detach());
    const auto nothing = detached.run();
    ASSERT_TRUE(nothing.ok()) << nothing.failure().detail;
    EXPECT_EQ(nothing.value().exit_status, kUntraced);
    EXPECT_FALSE(nothing.value().interrupted);
  }
}

FilterRequest filter_of(FilterRequest::Kind kind, std::uint64_t first, std::uint64_t last) {
  FilterRequest filter;
  filter.kind = kind;
  filter.first = first;
  filter.last = last;
  return filter;
}

TriggerRequest trigger_of(TriggerRequest::Action action, std::uint64_t address, std::uint64_t times) {
  TriggerRequest trigger;
  trigger.event = TriggerRequest::Event::ADDRESS;
  trigger.action = action;
  trigger.address = address;
  trigger.count = times;
  return trigger;
}

TEST(EmulatorRecorder, TracesFilterRangesOnly) {
  const Scratch scratch;
  RecordOptions one = options(scratch, "loops");
  one.filters = {filter_of(FilterRequest::Kind::FILTER, kSecond, kSecond + 15)};
  const std::uint64_t blocks = std::uint64_t{kLoops} * plugin::line_blocks(plugin::kLongLineBytes);
  EXPECT_EQ(record(one).result.instructions, blocks / 2 * kInsns - 1);
  one.filters[0].last = kSecond - 1;
  EXPECT_TRUE(has(failure_of(one), "filters: expected a range"));
}

TEST(EmulatorRecorder, StartsAndStopsAtTriggers) {
  using Action = TriggerRequest::Action;
  const Scratch scratch;
  RecordOptions one = options(scratch, "is-killed");
  one.triggers = {trigger_of(Action::START, kSecond, 8)};  // the first block of line 2, or so
  const Recorded started = record(one);
  EXPECT_EQ(started.result.instructions,
            insns_of_lines(10, 1, plugin::kShortLineBytes) + 5 * kInsns - 15 * kInsns);
  EXPECT_FALSE(started.result.limited);

  one = options(scratch, "loops");
  one.triggers = {trigger_of(Action::STOP, kFirst, 700)};
  const Recorded stopped = record(one);
  EXPECT_TRUE(stopped.result.limited);
  EXPECT_EQ(stopped.result.exit_status, 3);
  EXPECT_NEAR(static_cast<double>(stopped.result.instructions), 1399 * kInsns, 14.0 * kInsns);

  one = options(scratch, "notes");
  one.triggers = {TriggerRequest{}};
  one.triggers[0].event = TriggerRequest::Event::SIGNAL;
  one.triggers[0].signal = SIGTERM;
  EXPECT_TRUE(record(one).result.limited);
}

TEST(EmulatorRecorder, RingKeepsTheLastBytes) {
  const Scratch scratch;
  RecordOptions one = options(scratch, "loops");
  one.psb_period = 2048;
  one.ring = std::uint64_t{32} << 10U;
  one.triggers = {trigger_of(TriggerRequest::Action::SNAPSHOT, kFirst, 400'000)};
  const Recorded all = record(one);
  EXPECT_EQ(all.result.instructions, insns_of_lines(kLoops, 1, plugin::kShortLineBytes));
  EXPECT_EQ(all.result.snapshots, 1U);
  EXPECT_GT(all.result.dropped_bytes, 0U);
  ASSERT_EQ(all.bundle.streams.size(), 1U);
  EXPECT_EQ(all.bundle.streams[0].data.size(), all.result.trace_bytes);
  EXPECT_FALSE(all.bundle.streams[0].losses.empty());
}

TEST(EmulatorRecorder, WarnsOfUnknownFunctions) {
  const Scratch scratch;
  RecordOptions one = options(scratch, "notes");
  FilterRequest filter;
  filter.symbol = "kIsFakeOrNot";
  one.filters = {filter};
  const Recorded all = record(one);
  EXPECT_EQ(all.result.instructions, 0U);
  EXPECT_EQ(all.result.warnings.size(), 3U);
  EXPECT_TRUE(warns_at(all.result.warnings, "Filter", WarningCode::FUNCTION_NOT_EXECUTED, "kIsFakeOrNot",
                       "any file"));
  one.filters[0].symbol = "mainn";
  const std::vector<trace::Warning> warnings = record(one).result.warnings;
  EXPECT_TRUE(warns_at(warnings, "Filter", WarningCode::FUNCTION_NOT_EXECUTED_LIKE, "mainn", "any file"));
  // Sanitizers add functions with similar names.
  EXPECT_TRUE(std::ranges::any_of(warnings, [](const trace::Warning& warning) {
    return warning.code == WarningCode::FUNCTION_NOT_EXECUTED_LIKE &&
           warning.arguments[2].starts_with("main");
  }));
}

TEST(EmulatorRecorder, WarnsOfFilesThatWereNotMapped) {
  const Scratch scratch;
  RecordOptions one = options(scratch, "loops");
  TriggerRequest trigger = trigger_of(TriggerRequest::Action::STOP, kFirst, 1);
  trigger.file = "/no/such/file";
  one.triggers = {trigger};
  EXPECT_TRUE(
      warns_at(record(one).result.warnings, "Trigger", WarningCode::FILE_NOT_MAPPED, "/no/such/file"));
}

TEST(EmulatorRecorder, WarnsOfCodeThatChangesAtUnknownTimes) {
  const Scratch scratch;
  RecordOptions one = options(scratch, "changes-code");
  one.timing = no_names<TimingPackets>();
  EXPECT_TRUE(warns(record(one).result.warnings, WarningCode::GUEST_CODE_UNTIMED));
}

TEST(EmulatorRecorder, WarnsOfChildrenOfUnknownCode) {
  EXPECT_TRUE(warns(record("inherits-unknown-code").result.warnings, WarningCode::GUEST_PARENT_UNKNOWN));
}

// The guest maps its file at addresses where it has executed two blocks.
TEST(EmulatorRecorder, WritesRangesThatHoldFromTheBeginning) {
  const Scratch scratch;
  RecordOptions one = options(scratch, "notes");
  const auto ranges_with = [&](FilterRequest::Kind kind, std::uint64_t address, const std::string& file) {
    const std::uint64_t first = file.empty() ? address : address - kFirst + 0x2000;
    one.filters = {FilterRequest{kind, file, {}, first, first + 2}};
    return record(one).bundle.configuration;
  };
  const auto expect = [](const trace::Configuration& found, trace::RangeKind kind, std::uint64_t first) {
    EXPECT_EQ(found.ranges[0].kind, kind);
    EXPECT_EQ(found.ranges[0].first, first);
    EXPECT_EQ(found.ranges[0].last, first == 0 ? 0 : first + 2);
    EXPECT_EQ(found.ranges[1].kind, trace::RangeKind::OFF);
    EXPECT_EQ(found.rtit_ctl >> 32U, static_cast<std::uint64_t>(kind));
  };
  using Kind = FilterRequest::Kind;
  const std::string exe = std::filesystem::canonical("/proc/self/exe");
  expect(ranges_with(Kind::FILTER, kFirst, exe), trace::RangeKind::FILTER, kFirst);
  expect(ranges_with(Kind::TRACESTOP, kFirst, {}), trace::RangeKind::TRACE_STOP, kFirst);
  expect(ranges_with(Kind::TRACESTOP, kFirst + 0x20, exe), trace::RangeKind::TRACE_STOP, kFirst + 0x20);
  expect(ranges_with(Kind::TRACESTOP, kFirst, exe), trace::RangeKind::OFF, 0);
  expect(ranges_with(Kind::START, kFirst, {}), trace::RangeKind::OFF, 0);
}

}  // namespace
}  // namespace ptkit::capture
