#include "capture/linux/files/file_parser.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "capture/linux/confined/privileges.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

namespace {

using confined::ConfinedProcesses;
using std::chrono::milliseconds;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
// Parsers need memory of a few times the file's size. Symbols take less than the file.
constexpr std::uint64_t kMemoryBytes = 256 * kMiB;
constexpr std::uint64_t kMemoryFactor = 8;
constexpr std::uint64_t kAnswerBytes = kMiB;
constexpr std::uint64_t kAnswerFactor = 4;
// A disk may be slow.
constexpr milliseconds kParseTime{10000};
constexpr milliseconds kParseTimePerMiB{100};
// Upper bound of all timeouts together.
constexpr milliseconds kMaxLostTime{60000};
constexpr milliseconds kMinParseTime{1000};
constexpr std::size_t kMostNames = 20;  // in a warning

// ptkit-parser in the folder of this module or program; empty if it is missing.
std::string executable() {
  Dl_info module{};
  if (::dladdr(reinterpret_cast<const void*>(&capture::parse), &module) == 0) return {};
  std::string path = std::filesystem::path(module.dli_fname).replace_filename("ptkit-parser");
  return ::access(path.c_str(), X_OK) == 0 ? path : std::string();
}

std::unique_ptr<ConfinedProcesses> confined_processes() {
  if (!confined::has_privileges()) return nullptr;
  const std::string program = executable();
  if (program.empty()) return std::make_unique<ConfinedProcesses>(capture::parse);
  return std::make_unique<ConfinedProcesses>(program);
}

}  // namespace

FileParser::FileParser() : FileParser(confined_processes()) {}

ConfinedProcesses::Limits FileParser::limits_of(const ParseRequest& request) const {
  const std::lock_guard lock(mutex_);
  const milliseconds own = kParseTime + request.file_bytes / kMiB * kParseTimePerMiB;
  return {.answer_bytes = kAnswerBytes + kAnswerFactor * request.file_bytes,
          .memory_bytes = kMemoryBytes + kMemoryFactor * request.file_bytes,
          .time = std::min(own, std::max(kMaxLostTime - lost_time_, kMinParseTime))};
}

ParsedFile FileParser::parse(ParseRequest request, const Fd& file, const std::string& path) {
  request.debug = keeps_debug_ && request.kind == ParseRequest::Kind::SYMBOLS;
  ConfinedProcesses::Answer answer;
  const std::vector<std::uint8_t> asked = encode(request);
  if (confined_ == nullptr) {
    answer.bytes = capture::parse(asked, file);
  } else {
    const ConfinedProcesses::Limits limits = limits_of(request);
    answer = confined_->ask(asked, file, limits, on_wait_);
    const std::lock_guard lock(mutex_);
    if (answer.late) lost_time_ += limits.time;
  }
  std::optional<ParsedFile> parsed;
  if (answer.problem.empty()) {
    parsed = decode(request, answer.bytes);
    if (!parsed) answer.problem = "the process gave an invalid answer";
  }
  if (!parsed) missed(path, answer.problem);
  return std::move(parsed).value_or(ParsedFile{});
}

void FileParser::missed(const std::string& path, const std::string& problem) {
  const std::lock_guard lock(mutex_);
  missed_[problem].insert(path);
}

std::vector<trace::Warning> FileParser::warnings() const {
  const std::lock_guard lock(mutex_);
  std::vector<trace::Warning> out;
  for (const auto& [problem, paths] : missed_) {
    std::string names;
    std::size_t left = kMostNames;
    for (auto path = paths.begin(); path != paths.end() && left != 0; ++path, --left)
      names.append(names.empty() ? "" : ", ").append(*path);
    if (paths.size() > kMostNames)
      names.append(" and ").append(std::to_string(paths.size() - kMostNames)).append(" more");
    out.push_back(warn(trace::WarningCode::FILES_NOT_PARSED, names, problem));
  }
  return out;
}

}  // namespace ptkit::capture
