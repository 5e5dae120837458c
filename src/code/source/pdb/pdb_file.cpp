#include "code/source/pdb/pdb_file.h"

#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "code/source/pdb/dump/dump_reader.h"
#include "code/source/pdb/dump/output_lines.h"
#include "code/source/pdb/names.h"
#include "code/source/pdb/tool.h"
#include "trace/file_cache.h"
#include "trace/warning_codes.h"

namespace ptkit::code::pdb {
namespace {

using trace::WarningCode;

constexpr std::string_view kMagic = "Microsoft C/C++ MSF 7.00\r\n";

// The part of the file's YAML that has GUID, age and machine.
class IdReader {
 public:
  bool take(std::string_view part) {
    lines_.take(part, [this](std::string_view line) { read_line(line); });
    return true;
  }
  // The age in the debug information is the one that a program has; tools that change a PDB raise the other.
  [[nodiscard]] PdbId found() const {
    const auto age = debug_age_ ? debug_age_ : age_;
    return {age ? pdb_id(guid_, *age) : std::string(), is_32_bit_, {}};
  }

 private:
  void read_line(std::string_view line) {
    if (!line.starts_with(' ')) part_ = trim(line);
    const std::string_view text = trim(line);
    const auto age = text.starts_with("Age:")
                         ? number_after(text, text.substr(0, text.find_first_of("0123456789")))
                         : std::nullopt;
    if (age && part_ == "PdbStream:") age_ = age;
    if (age && part_ == "DbiStream:") debug_age_ = age;
    if (text.starts_with("Guid:") && part_ == "PdbStream:") {
      guid_ = text.substr(5);
      std::erase_if(guid_, [](char letter) {
        return std::string_view("'{}- ").find(letter) != std::string_view::npos;
      });
    }
    if (text.starts_with("MachineType:")) is_32_bit_ = text.ends_with(" x86") || text.ends_with(" X86");
  }

  OutputLines lines_;
  std::string part_;
  std::string guid_;
  std::optional<std::uint64_t> age_;
  std::optional<std::uint64_t> debug_age_;
  bool is_32_bit_ = false;
};

}  // namespace

bool is_pdb(base::Bytes file) noexcept {
  return std::string_view(reinterpret_cast<const char*>(file.data()), file.size()).starts_with(kMagic);
}

std::string pdb_id(std::string guid, std::uint64_t age) {
  for (char& digit : guid) digit = static_cast<char>(std::tolower(static_cast<unsigned char>(digit)));
  std::array<char, 16> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), age, 16).ptr;
  std::string id = guid + '-' + std::string(text.data(), end);
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

// The path of the tool. Forgets what another one gave.
std::string PdbFile::use_tool() const {
  std::string tool = find_tool();
  if (tool != tool_) {
    id_.reset();
    names_.reset();
    tables_.reset();
    tool_ = tool;
  }
  return tool;
}

std::shared_ptr<const PdbId> PdbFile::id() const {
  const std::lock_guard lock(mutex_);
  return id_by(use_tool());
}

std::shared_ptr<const PdbId> PdbFile::id_by(const std::string& tool) const {
  if (id_) return id_;
  if (tool.empty()) {
    id_ =
        std::make_shared<const PdbId>(PdbId{{}, false, trace::warn(WarningCode::PDB_READER_MISSING, path_)});
    return id_;
  }
  IdReader reader;
  constexpr std::uint64_t kMostOutput = std::uint64_t{1} << 20U;
  std::string problem = Tool(tool, bytes())
                            .run(
                                {"pdb2yaml", "--pdb-stream", "--dbi-stream"},
                                [&](std::string_view part) { return reader.take(part); }, kMostOutput);
  PdbId found = problem.empty() ? reader.found() : PdbId{};
  if (problem.empty() && found.id.empty()) problem = "llvm-pdbutil finds no GUID and age in it";
  if (!problem.empty()) found.problem = trace::warn(WarningCode::PDB_UNREADABLE, path_, problem);
  id_ = std::make_shared<const PdbId>(std::move(found));
  return id_;
}

std::shared_ptr<const PdbNames> PdbFile::names() const {
  constexpr std::size_t kMostOfFile = 8;  // the memory of names
  const std::lock_guard lock(mutex_);
  const std::string tool = use_tool();
  if (names_) return names_;
  PdbNames found;
  const std::shared_ptr<const PdbId> identity = id_by(tool);
  found.problem = identity->problem;
  if (!found.problem) {
    DumpReader reader(kMostOfFile * bytes().size());
    std::string problem = Tool(tool, bytes())
                              .run({"dump", "--publics", "--symbols", "--section-headers"},
                                   [&](std::string_view part) { return reader.take(part); });
    if (problem.empty()) problem = reader.problem();
    if (problem.empty()) {
      found.symbols = names_in(std::move(reader), identity->is_32_bit);
    } else {
      found.problem = trace::warn(WarningCode::PDB_UNREADABLE, path_, problem);
    }
  }
  names_ = std::make_shared<const PdbNames>(std::move(found));
  return names_;
}

std::shared_ptr<const Tables> PdbFile::tables() const {
  const std::lock_guard lock(mutex_);
  const std::string tool = use_tool();
  if (tables_) return tables_;
  const std::shared_ptr<const PdbId> identity = id_by(tool);
  Tables found;
  if (identity->problem) {
    found.problems.push_back(*identity->problem);
  } else {
    found = read_tables(Tool(tool, bytes()), path_);
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
