// Text as `llvm-pdbutil dump` writes it.
#pragma once

#include <string>
#include <string_view>

namespace ptkit::code::pdb::test {

inline std::string part(const std::string& title, const std::string& records) {
  return "\n         " + title + "        \n" + std::string(60, '=') + "\n" + records;
}

inline const std::string kSections = part("Section Headers",
                                          "  \n"
                                          "  SECTION HEADER #1\n"
                                          "     .text name\n"
                                          "       200 virtual size\n"
                                          "      1000 virtual address\n"
                                          "           IMAGE_SCN_CNT_CODE\n"
                                          "           IMAGE_SCN_MEM_EXECUTE\n"
                                          "  \n"
                                          "  SECTION HEADER #2\n"
                                          "     .data name\n"
                                          "       100 virtual size\n"
                                          "      2000 virtual address\n"
                                          "           IMAGE_SCN_MEM_READ\n");

// The text is read in small parts, as a pipe may give it.
template <typename Reader>
void read_in_parts(Reader& reader, const std::string& text) {
  for (std::size_t at = 0; at < text.size(); at += 7) {
    if (!reader.take(std::string_view(text).substr(at, 7))) break;
  }
}

}  // namespace ptkit::code::pdb::test
