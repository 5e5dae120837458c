// Names, source lines and inlined functions in a PDB, the debug information of a program or driver of
// Windows. docs/modules.md has the bounds of memory and time.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "code/source/pdb/debug_streams.h"
#include "code/source/pdb/tables.h"
#include "trace/buffer.h"
#include "trace/bundle.h"
#include "trace/warning.h"

namespace ptkit::code::pdb {

// Whether the file begins as a PDB does.
[[nodiscard]] bool is_pdb(base::Bytes file) noexcept;

// As ImageFile::build_id has the GUID and the age of a PDB: "0123456789abcdef0123456789abcdef-1". Empty: the
// text is no GUID of 32 digits.
[[nodiscard]] std::string pdb_id(std::string_view guid, std::uint64_t age);
// Whether a build-id is of this form.
[[nodiscard]] bool is_pdb_id(std::string_view id) noexcept;

// Contents of a PDB, or why they cannot be read.
struct PdbId {
  std::string id;
  std::optional<trace::Warning> problem;
};
struct PdbNames {
  // Procedures with their sizes, then publics where no procedure begins, sorted by address; `file_offset` is
  // the RVA. Of one address, the name that is shown comes first.
  std::vector<trace::SymbolEntry> symbols;
  std::optional<trace::Warning> problem;
};

// Each part is read at the first call. Thread-safe.
class PdbFile {
 public:
  PdbFile(std::string path, trace::TraceBuffer contents);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] base::Bytes bytes() const noexcept { return contents_.bytes(); }
  [[nodiscard]] std::shared_ptr<const PdbId> id() const;
  [[nodiscard]] std::shared_ptr<const PdbNames> names() const;
  [[nodiscard]] std::shared_ptr<const Tables> tables() const;

 private:
  struct Opened {
    explicit Opened(base::Bytes bytes) : file(bytes), streams(read_debug_streams(file)) {}
    MsfFile file;
    DebugStreams streams;
  };
  [[nodiscard]] const Opened& opened() const;
  [[nodiscard]] std::shared_ptr<const PdbId> locked_id() const;

  std::string path_;
  trace::TraceBuffer contents_;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::unique_ptr<const Opened> opened_;
  mutable std::shared_ptr<const PdbId> id_;
  mutable std::shared_ptr<const PdbNames> names_;
  mutable std::shared_ptr<const Tables> tables_;
};

// The file at a path; null: it is no PDB. Traces of this process share the last 16 of them as long as they do
// not change.
[[nodiscard]] std::shared_ptr<const PdbFile> shared_pdb(const std::string& path);

}  // namespace ptkit::code::pdb
