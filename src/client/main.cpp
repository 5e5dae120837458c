// ptkit-capture: records with the driver ptkit.sys on Windows.
#include <windows.h>

#include <cstdio>
#include <string>
#include <vector>

#include "capture/windows/options.h"
#include "client/console.h"
#include "client/doctor.h"
#include "client/recorder.h"
#include "client/wide.h"

namespace {

using ptkit::base::Failure;
using ptkit::capture::WindowsCommand;

constexpr int kFailed = 1;
constexpr int kMisused = 2;

int report(const Failure& failure) {
  std::fprintf(stderr, "ptkit-capture: error: %s\n", failure.detail.c_str());
  return failure.status == ptkit::base::Status::BAD_CONFIG ? kMisused : kFailed;
}

int report(const std::optional<Failure>& failure) { return failure ? report(*failure) : 0; }

int run(const WindowsCommand& command) {
  using Verb = WindowsCommand::Verb;
  switch (command.verb) {
    case Verb::HELP:
      std::fputs(std::string(ptkit::capture::help_text()).c_str(), stdout);
      return 0;
    case Verb::VERSION:
      std::printf("ptkit-capture %s\n", PTKIT_VERSION);
      return 0;
    case Verb::SNAPSHOT:
      return report(ptkit::client::ask_for_snapshot(command.recorder));
    case Verb::DOCTOR:
      return ptkit::client::doctor();
    case Verb::LBR:
      return report(ptkit::client::print_last_branches());
    case Verb::RECORD:
      break;
  }
  auto result = ptkit::client::record(command);
  return result.ok() ? result.value() : report(result.failure());
}

}  // namespace

int wmain(int argc, wchar_t** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) words.push_back(ptkit::client::narrow(argv[i]));
  ::SetConsoleOutputCP(CP_UTF8);
  auto command = ptkit::capture::parse_command(words);
  return command.ok() ? run(command.value()) : report(command.failure());
}
