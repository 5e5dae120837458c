// Code of a recording as perf has it: mappings of files, and the files that nobody else has. For .cpp files
// of this folder only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/interval_map.h"
#include "formats/perf_write.h"
#include "formats/perf_write_made.h"
#include "formats/perf_write_records.h"
#include "formats/perf_write_tasks.h"

namespace ptkit::formats::perf {

inline constexpr std::uint64_t kKernelStart = std::uint64_t{1} << 63U;
[[nodiscard]] inline bool is_kernel(const trace::CodeRegion& region) noexcept {
  return region.address >= kKernelStart;
}

// A file with code.
struct CodeFile {
  std::string path;
  std::string build_id;                         // hex; may be empty if it is not written
  trace::TraceBuffer contents;                  // all of it, if it is at hand
  std::map<std::uint64_t, base::Bytes> pieces;  // else what is known, by offset, disjoint
  std::vector<std::uint8_t> made;               // or made for perf, from MadeCode::kFirstOffset on
  std::vector<trace::SymbolEntry> symbols;
  bool is_mapped = false;
  bool is_written = false;  // for perf to find it
  bool is_32 = false;
};

class Code {
 public:
  // `is_32`: the processor ran nothing else.
  Code(const trace::TraceBundle& bundle, PerfCode wanted, bool is_32);

  // Mappings of all processes, in any order.
  void write(const std::vector<ProcessImage>& images, Records& records);
  [[nodiscard]] const std::vector<CodeFile>& files() const noexcept { return files_; }
  // Address ranges of the trace unit in perf's words, by places in what was mapped; empty: there are none, or
  // none that words can be made of.
  [[nodiscard]] std::string filter() const;

 private:
  struct Mapped {  // what a process has at an address, by what was written until now
    std::size_t file = 0;
    std::uint64_t delta = 0;  // address - offset
    [[nodiscard]] bool operator==(const Mapped&) const = default;
  };
  struct Place {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  // in the file
    std::size_t file = 0;
  };
  struct Process {
    const ProcessImage& image;
    std::size_t made_file = 0;  // where `made` goes
    base::IntervalMap<Mapped> mappings{};
    MadeCode made{};
  };
  struct Item {
    std::uint64_t tsc = 0;
    unsigned rank = 0;  // at the same time, higher ones are mapped over lower ones
    std::size_t region = 0;
    const MadeCode::Chunk* chunk = nullptr;  // of what is shared, instead of a region
  };
  // What lies in no file, and is seen by all processes: in one file for those that have nothing else there.
  struct Shared {
    struct Version {
      std::uint64_t tsc = 0;
      MadeCode::Chunk chunk;
    };
    std::map<std::uint64_t, std::uint64_t> places;  // begins, and how far what begins until there reaches
    std::uint64_t until = trace::kTscMax;           // processes that begin later do not see all of it
    std::size_t file = 0;
    std::vector<Version> versions;  // by time
    [[nodiscard]] bool touches(std::uint64_t begin, std::uint64_t end) const;
  };

  using Regions = std::map<trace::SpaceId, std::vector<std::size_t>>;

  void find_file(std::size_t number);
  void compare_with_files();
  [[nodiscard]] bool agrees(const trace::CodeRegion& region);
  [[nodiscard]] static bool add_piece(CodeFile& file, std::uint64_t offset, base::Bytes bytes);
  void name_files();
  [[nodiscard]] Regions user_regions() const;  // by space
  [[nodiscard]] std::vector<Item> items_of(const ProcessImage& image, const Regions& regions) const;
  [[nodiscard]] Shared find_shared(const Regions& regions) const;
  void share(const std::vector<ProcessImage>& images, const Regions& regions);
  [[nodiscard]] bool shares(const ProcessImage& image, const Regions& regions) const;
  void write_process(const ProcessImage& image, const std::vector<Item>& items, Records& records);
  void add_made_file(const std::string& whose, const std::vector<Item>& items);
  void finish_made_file(std::size_t number, MadeCode& made);
  void put(Process& process, const Item& item, Records& records);
  [[nodiscard]] bool map(Process& process, std::uint64_t tsc, const Place& place, Records& records);
  void map_made(Process& process, std::uint64_t tsc, Records& records);
  void note_filters(const Place& place);
  void name_code();

  const trace::TraceBundle& bundle_;
  const PerfCode wanted_;
  const bool is_32_;
  std::vector<CodeFile> files_;  // the bundle's, what is shared, then one for each process that made code
  std::vector<bool> agrees_;     // regions: what they have is what their file has
  Shared shared_;
  std::set<std::string> used_paths_;  // perf tells files apart by these
  std::set<std::string> filters_;
  bool is_filter_whole_ = true;
};

// The feature that tells build-ids of files by their paths.
[[nodiscard]] std::vector<std::uint8_t> build_id_table(const std::vector<CodeFile>& files);

// What `perf --buildid-dir` takes: all files that are to be written, by build-id.
[[nodiscard]] std::optional<base::Failure> write_code_folder(const std::vector<CodeFile>& files,
                                                             const std::string& folder);

}  // namespace ptkit::formats::perf
