// ptkit-capture: records with the driver ptkit.sys on Windows.
#include <windows.h>

#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "capture/windows/descriptions.h"
#include "capture/windows/options.h"
#include "capture/windows/port.h"
#include "capture/windows/win32/console.h"
#include "capture/windows/win32/device.h"
#include "capture/windows/win32/doctor.h"
#include "capture/windows/win32/machine.h"
#include "capture/windows/win32/recorder.h"
#include "capture/windows/win32/wide.h"

namespace {

namespace capture = ptkit::capture;
using ptkit::base::Failure;
using ptkit::capture::WindowsCommand;

constexpr int kFailed = 1;
constexpr int kMisused = 2;

int report(const Failure& failure) {
  std::fprintf(stderr, "ptkit-capture: error: %s\n", failure.detail.c_str());
  return failure.status == ptkit::base::Status::BAD_CONFIG ? kMisused : kFailed;
}

int report(const std::optional<Failure>& failure) { return failure ? report(*failure) : 0; }

int doctor() {
  const capture::win32::Findings found = capture::win32::examine();
  for (const std::string& line : found.lines) std::printf("%s\n", line.c_str());
  return found.problem.empty() ? 0 : kFailed;
}

void say_end(capture::win32::Console& console, const WindowsCommand& command,
             const capture::win32::Outcome& outcome) {
  using capture::counted;
  const capture::RecordResult& end = outcome.result;
  for (const auto& warning : end.warnings) console.say("warning: " + warning.text());
  if (!command.options.record.argv.empty() && !outcome.exit_status) console.say("the program runs on");
  const std::string snapshots = end.snapshots == 0 ? "" : counted(end.snapshots, "snapshot") + ", ";
  console.say(command.options.record.output + ": " + std::to_string(end.trace_bytes) + " bytes of trace in " +
              counted(end.streams, "stream") + ", " + snapshots + std::to_string(end.bundle_bytes) +
              " bytes in all");
}

int record(const WindowsCommand& command) {
  capture::win32::Console console(command.quiet);
  auto outcome =
      capture::win32::record(command.options, console.requests(), console, capture::win32::ProgramEnd::LEFT);
  if (!outcome.ok()) return report(outcome.failure());
  say_end(console, command, outcome.value());
  return outcome.value().exit_status.value_or(0);
}

// The stacks of last branches (LBR), as they are.
std::optional<Failure> print_last_branches() {
  capture::win32::enable_privileges();
  auto device = capture::win32::Device::open();
  if (!device.ok()) return device.failure();
  auto query = capture::query_driver(*device.value());
  if (!query.ok()) return query.failure();
  for (std::uint32_t cpu = 0; cpu < query.value().query.cpus; ++cpu) {
    ptkit_windows_lbr stack{};
    stack.cpu = cpu;
    if (const auto error = capture::exchange(*device.value(), PTKIT_WINDOWS_LBR, stack); error != 0)
      return capture::refused_by(*device.value(), "read the stack of last branches", error);
    std::printf("CPU %u: %u branches, newest first%s\n", cpu, stack.count,
                stack.enabled != 0 ? "" : " (none is recorded now)");
    for (std::uint32_t i = 0; i < stack.count && i < std::size(stack.branches); ++i) {
      const ptkit_windows_branch& one = stack.branches[i];
      std::printf("  %016" PRIx64 " -> %016" PRIx64 "  info %016" PRIx64 "\n", one.from, one.to, one.info);
    }
  }
  return std::nullopt;
}

int run(const WindowsCommand& command) {
  using Verb = WindowsCommand::Verb;
  switch (command.verb) {
    case Verb::HELP:
      std::fputs(capture::help_text().c_str(), stdout);
      return 0;
    case Verb::VERSION:
      std::printf("ptkit-capture %s\n", PTKIT_VERSION);
      return 0;
    case Verb::SNAPSHOT:
      return report(capture::win32::ask_for_snapshot(command.recorder));
    case Verb::DOCTOR:
      return doctor();
    case Verb::LBR:
      return report(print_last_branches());
    case Verb::RECORD:
      break;
  }
  return record(command);
}

}  // namespace

int wmain(int argc, wchar_t** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) words.push_back(capture::win32::narrow(argv[i]));
  ::SetConsoleOutputCP(CP_UTF8);
  auto command = capture::parse_command(words);
  return command.ok() ? run(command.value()) : report(command.failure());
}
