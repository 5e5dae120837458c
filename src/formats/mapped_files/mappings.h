// Executable mappings of a recording, as evidence of which files they were. For .cpp files of this folder and
// of formats without build-ids.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "code/image/files/contradictions.h"
#include "formats/perf_event/sideband.h"

namespace ptkit::formats::perf {

// A file's number on its device, as MMAP2 records have it. 0: not recorded.
struct FileNumber {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;
  [[nodiscard]] bool operator==(const FileNumber&) const = default;
  [[nodiscard]] bool operator<(const FileNumber& other) const noexcept {
    return std::tie(major, minor, inode) < std::tie(other.major, other.minor, other.inode);
  }
};

// An executable mapping.
struct Mapping {
  std::uint64_t owner = 0;  // the process, or its page tables
  std::uint64_t address = 0;
  std::uint64_t size = 0;  // 0: not known
  std::uint64_t file_offset = 0;
  std::string path;
  std::string build_id{};  // hex; empty: not recorded
  FileNumber number{};
};

[[nodiscard]] Mapping mapping_of(const Event& event);  // MMAP or MMAP2

// Returns true for anonymous memory, which has no file.
[[nodiscard]] bool is_memory(const std::string& path);

// The mappings of all processes.
class Mappings {
 public:
  void add(const Mapping& mapping);
  // The parts of a file that one process mapped at the load address of `mapping`, which was added: sorted,
  // each once. Empty if they are too many.
  [[nodiscard]] std::vector<code::image::FileMapping> parts_of(const Mapping& mapping) const;
  // The parts at other load addresses in the process, where they differ: sorted, each once. Not all if they
  // are too many.
  [[nodiscard]] std::vector<std::vector<code::image::FileMapping>> other_parts_of(
      const Mapping& mapping) const;

 private:
  // By process, path and load address.
  using Key = std::tuple<std::uint64_t, std::string, std::uint64_t>;
  [[nodiscard]] static Key key_of(const Mapping& mapping) {
    return {mapping.owner, mapping.path, mapping.address - mapping.file_offset};
  }
  [[nodiscard]] std::vector<code::image::FileMapping> parts_at(const Key& key) const;
  [[nodiscard]] bool has_memory(std::uint64_t owner, std::uint64_t address) const;

  std::map<Key, std::vector<code::image::FileMapping>> parts_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> memory_;  // end, by process and begin
};

}  // namespace ptkit::formats::perf
