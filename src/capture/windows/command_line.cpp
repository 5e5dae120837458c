#include "capture/windows/command_line.h"

namespace ptkit::capture {

namespace {

// Backslashes are doubled only where a quote follows them.
void append_quoted(std::string& out, const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n\v\"") == std::string::npos) {
    out += word;
    return;
  }
  std::size_t slashes = 0;
  out += '"';
  for (const char letter : word) {
    if (letter == '\\') {
      ++slashes;
    } else {
      if (letter == '"') out.append(slashes + 1, '\\');
      slashes = 0;
    }
    out += letter;
  }
  out.append(slashes, '\\');
  out += '"';
}

}  // namespace

std::string command_line(const std::vector<std::string>& argv) {
  std::string out;
  for (const std::string& word : argv) {
    if (!out.empty()) out += ' ';
    append_quoted(out, word);
  }
  return out;
}

}  // namespace ptkit::capture
