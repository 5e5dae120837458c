// The command line of ptkit-capture. Options have the names that `ptkit record` gives them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capture/windows/session.h"

namespace ptkit::capture {

struct WindowsCommand {
  enum class Verb : std::uint8_t {
    HELP,
    VERSION,
    RECORD,
    SNAPSHOT,  // of the recorder `recorder`
    DOCTOR,
    LBR,  // the stacks of last branches, as they are
  };
  Verb verb = Verb::HELP;
  WindowsOptions options;
  std::uint32_t recorder = 0;
  bool quiet = false;
};

// BAD_CONFIG names the option and what was expected. `words` is without the name of the program.
[[nodiscard]] base::Result<WindowsCommand> parse_command(const std::vector<std::string>& words);

// Text that --help prints.
[[nodiscard]] std::string help_text();

// "64M": bytes. BAD_CONFIG names `option`.
[[nodiscard]] base::Result<std::uint64_t> parse_size(std::string_view text, std::string_view option);

}  // namespace ptkit::capture
