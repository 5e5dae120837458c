#include "code/source/pdb/pdb_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/ascii.h"
#include "base/memory_left.h"
#include "code/source/pdb/names.h"
#include "trace/file_cache.h"
#include "trace/warning_codes.h"

namespace ptkit::code::pdb {
namespace {

using trace::WarningCode;

// The memory of all names, or of all lines and inlined calls, of a file.
std::uint64_t most_memory(std::uint64_t file_bytes) {
  constexpr std::uint64_t kMostOfFile = 8;
  constexpr std::uint64_t kShare = 4;
  return std::min(kMostOfFile * file_bytes, base::memory_left().pages.usable() / kShare);
}

}  // namespace

bool is_pdb(base::Bytes file) noexcept {
  constexpr std::string_view kBegin = MsfFile::kMagic.substr(0, MsfFile::kMagic.find('\x1a'));
  return std::string_view(reinterpret_cast<const char*>(file.data()), file.size()).starts_with(kBegin);
}

std::string pdb_id(std::string_view guid, std::uint64_t age) {
  std::array<char, 16> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), age, 16).ptr;
  std::string id = base::ascii_lower(guid) + '-' + std::string(text.data(), end);
  return is_pdb_id(id) ? id : std::string();
}

bool is_pdb_id(std::string_view id) noexcept {
  constexpr std::size_t kGuidDigits = 32;
  constexpr std::string_view kDigits = "0123456789abcdef";
  return id.size() > kGuidDigits + 1 && id[kGuidDigits] == '-' &&
         id.substr(0, kGuidDigits).find_first_not_of(kDigits) == std::string_view::npos &&
         id.substr(kGuidDigits + 1).find_first_not_of(kDigits) == std::string_view::npos;
}

PdbFile::PdbFile(std::string path, trace::TraceBuffer contents)
    : path_(std::move(path)), contents_(std::move(contents)) {}

const PdbFile::Opened& PdbFile::opened() const {
  if (!opened_) opened_ = std::make_unique<const Opened>(bytes());
  return *opened_;
}

std::shared_ptr<const PdbId> PdbFile::id() const {
  const std::lock_guard lock(mutex_);
  return locked_id();
}

std::shared_ptr<const PdbId> PdbFile::locked_id() const {
  if (id_) return id_;
  const DebugStreams& streams = opened().streams;
  PdbId found{streams.id, {}};
  if (found.id.empty()) {
    const std::string problem = streams.problem.empty() ? "it has no GUID and age" : streams.problem;
    found.problem = trace::warn(WarningCode::PDB_UNREADABLE, path_, problem);
  }
  id_ = std::make_shared<const PdbId>(std::move(found));
  return id_;
}

std::shared_ptr<const PdbNames> PdbFile::names() const {
  const std::lock_guard lock(mutex_);
  if (names_) return names_;
  PdbNames found;
  found.problem = locked_id()->problem;
  if (!found.problem) {
    code::source::Budget memory(most_memory(bytes().size()));
    std::string problem;
    found.symbols = read_names(opened().file, opened().streams, memory, problem);
    if (!problem.empty()) found.problem = trace::warn(WarningCode::PDB_UNREADABLE, path_, problem);
  }
  names_ = std::make_shared<const PdbNames>(std::move(found));
  return names_;
}

std::shared_ptr<const Tables> PdbFile::tables() const {
  const std::lock_guard lock(mutex_);
  if (tables_) return tables_;
  Tables found;
  if (const auto& problem = locked_id()->problem) {
    found.problems.push_back(*problem);
  } else {
    found = read_tables(opened().file, opened().streams, path_, most_memory(bytes().size()));
  }
  tables_ = std::make_shared<const Tables>(std::move(found));
  return tables_;
}

std::shared_ptr<const PdbFile> shared_pdb(const std::string& path) {
  constexpr std::size_t kMost = 16;
  static auto* const files = new trace::FileCache<PdbFile>(kMost);  // threads may use it to the end
  auto file = files->get(path);
  return file && is_pdb(file->bytes()) ? file : nullptr;
}

}  // namespace ptkit::code::pdb
