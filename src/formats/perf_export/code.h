// Writes code of a recording for perf: MMAP2 records of files, and files for code that no file has. For .cpp
// files of this folder only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/interval_map.h"
#include "formats/perf_export/jit_elf.h"
#include "formats/perf_export/records.h"
#include "formats/perf_export/tasks.h"
#include "formats/perf_export/writer.h"

namespace ptkit::formats::perf {

inline constexpr std::uint64_t kKernelStart = std::uint64_t{1} << 63U;
[[nodiscard]] inline bool is_kernel(const trace::CodeRegion& region) noexcept {
  return region.address >= kKernelStart;
}

// True if address ranges of the trace unit are known.
[[nodiscard]] bool has_ranges(const trace::Configuration& configuration);

// A file with code.
struct CodeFile {
  std::string path;
  std::string build_id;                        // hex; may be empty if the file is not written
  trace::TraceBuffer contents;                 // the whole file, if available
  std::map<std::uint64_t, base::Bytes> parts;  // else known parts, by offset, disjoint
  std::vector<std::uint8_t> jit;               // else JitElf's bytes, from JitElf::kFirstOffset on
  std::vector<trace::SymbolEntry> symbols;
  bool is_mapped = false;
  bool is_written = false;  // into the folder for `perf --buildid-dir`
  bool is_32 = false;
};

class Code {
 public:
  // `is_32`: the trace has 32-bit code only.
  Code(const trace::TraceBundle& bundle, PerfCode wanted, bool is_32);

  // Writes the mappings of all processes, in any order.
  void write(const std::vector<ProcessImage>& images, Records& records);
  [[nodiscard]] const std::vector<CodeFile>& files() const noexcept { return files_; }
  // Returns the address ranges of the trace unit as perf's --filter, by offsets in mapped files. Empty: there
  // were none. nullopt: it is unknown whether there were any, or perf's syntax cannot express them.
  [[nodiscard]] std::optional<std::string> filter() const;

 private:
  struct Mapped {  // mapping at an address, by the records written so far
    std::size_t file = 0;
    std::uint64_t delta = 0;  // address - offset
    [[nodiscard]] bool operator==(const Mapped&) const = default;
  };
  struct FileRange {  // bytes of a file at an address
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  // file offset
    std::size_t file = 0;
  };
  struct Process {
    const ProcessImage& image;
    std::size_t jit_file = 0;  // file of `jit`
    base::IntervalMap<Mapped> mappings{};
    JitElf jit{};
  };
  struct Item {
    std::uint64_t tsc = 0;
    unsigned rank = 0;  // at the same time, higher ranks replace lower ones
    std::size_t region = 0;
    const JitElf::Chunk* chunk = nullptr;  // a chunk of shared code instead of a region
  };
  // Code of all address spaces that no file has. One file holds it for all processes that map nothing else
  // there.
  struct Shared {
    struct Version {
      std::uint64_t tsc = 0;
      JitElf::Chunk chunk;
    };
    std::map<std::uint64_t, std::uint64_t> ranges;  // begin -> greatest end of ranges that begin up to it
    std::uint64_t until = trace::kTscMax;           // processes that begin later lack some of the code
    std::size_t file = 0;
    std::vector<Version> versions;  // by time
    [[nodiscard]] bool touches(std::uint64_t begin, std::uint64_t end) const;
  };

  using Regions = std::map<trace::SpaceId, std::vector<std::size_t>>;

  void find_file(std::size_t number);
  void compare_with_files();
  [[nodiscard]] bool agrees(const trace::CodeRegion& region);
  [[nodiscard]] static bool add_part(CodeFile& file, std::uint64_t offset, base::Bytes bytes);
  void name_files();
  [[nodiscard]] Regions user_regions() const;  // by space
  [[nodiscard]] std::vector<Item> items_of(const ProcessImage& image, const Regions& regions) const;
  [[nodiscard]] Shared find_shared(const Regions& regions) const;
  void share(const std::vector<ProcessImage>& images, const Regions& regions);
  [[nodiscard]] bool shares(const ProcessImage& image, const Regions& regions) const;
  void write_process(const ProcessImage& image, const std::vector<Item>& items, Records& records);
  void add_jit_file(const std::string& owner, const std::vector<Item>& items);
  void finish_jit_file(std::size_t number, JitElf& jit);
  void put(Process& process, const Item& item, Records& records);
  [[nodiscard]] bool map(Process& process, std::uint64_t tsc, const FileRange& span, Records& records);
  void map_jit(Process& process, std::uint64_t tsc, Records& records);
  void note_filters(trace::SpaceId space, const FileRange& span);
  void name_code();

  const trace::TraceBundle& bundle_;
  const PerfCode wanted_;
  const bool is_32_;
  std::vector<CodeFile> files_;  // the bundle's files, the shared file, then one JitElf per process
  std::vector<bool> agrees_;     // by region: its bytes equal its file's
  Shared shared_;
  std::set<std::string> used_paths_;  // perf identifies files by path
  std::set<std::string> filters_;
  bool is_filter_whole_ = true;
};

// Returns the feature BUILD_ID: build-ids of files by path.
[[nodiscard]] std::vector<std::uint8_t> build_id_table(const std::vector<CodeFile>& files);

// Writes a folder for `perf --buildid-dir`, with all files that have is_written, by build-id.
[[nodiscard]] std::optional<base::Failure> write_code_folder(const std::vector<CodeFile>& files,
                                                             const std::string& folder);

}  // namespace ptkit::formats::perf
