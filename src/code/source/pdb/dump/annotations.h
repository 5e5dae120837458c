// The code and lines of an inlined call, as `llvm-pdbutil dump --symbols` writes the binary annotations of
// S_INLINESITE. Internal to src/code/source/pdb.
//
//   0B25      code 0x14 (+0x5) line 2 (+1)
//   0530      setfile 30 0x1
//   0409      code end 0x29 (+0x9)
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ptkit::code::pdb {

// One line of this text.
struct Annotation {
  std::optional<std::uint32_t> code;    // bytes from the last place in the code
  std::optional<std::uint32_t> length;  // of the code that begins there
  std::optional<std::int32_t> line;     // from the line of the function's declaration
  std::optional<std::uint32_t> file;    // offset in the checksums of the module's files
};
// Nothing: the form is not known.
[[nodiscard]] std::optional<Annotation> annotation_in(std::string_view text) noexcept;

// Code from `offset` in the function to the next row.
struct SiteRow {
  static constexpr std::uint32_t kOwnFile = UINT32_MAX;      // that of the inlined function
  static constexpr std::uint32_t kOutside = UINT32_MAX - 1;  // it is no code of the call
  std::uint32_t offset = 0;
  std::uint32_t file = kOwnFile;  // as in Annotation
  std::int32_t line = 0;          // as in Annotation
};

// Makes rows of annotations, one after another.
class SiteRows {
 public:
  // `size`: of the function. `rows` gets the rows, behind those of other calls.
  SiteRows(std::uint32_t size, std::vector<SiteRow>& rows) : size_(size), first_(rows.size()), rows_(rows) {}

  void add(const Annotation& annotation);
  // After the last annotation.
  void finish();

 private:
  void add(std::uint32_t offset, std::uint32_t file, std::int32_t line);

  std::uint32_t size_;
  std::size_t first_;
  std::vector<SiteRow>& rows_;
  SiteRow at_;
  bool is_open_ = false;  // the last row has no end
};

}  // namespace ptkit::code::pdb
