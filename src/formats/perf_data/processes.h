// Tracks the processes of a recording by perf and their mappings. Turns events into address spaces and code
// regions. For .cpp files of this folder only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/interval_map.h"
#include "code/image/files/segments.h"
#include "formats/mapped_files/binaries.h"
#include "formats/perf_event/sideband.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

class Processes {
 public:
  // `is_here`: the processes ran on this machine. `file_bytes`: size of the recording, which limits the
  // number of inherited mappings.
  Processes(trace::TraceBundle& bundle, Binaries& binaries, bool is_here, std::uint64_t file_bytes);

  // Tells of a later event, which must live until then: mappings are evidence of which file is mapped.
  void expect(const Event& event);
  void apply(const Event& event);  // in the order of time
  // Returns the current space of a process; a new one if the process is unknown.
  [[nodiscard]] trace::SpaceId space_of(std::int64_t pid);
  void finish();  // after the last event

 private:
  void map(const Event& event);
  void load_jit(const Event& event);
  void fork(const Event& event);
  void inherit(trace::SpaceId parent, trace::SpaceId child, std::uint64_t tsc);
  void inherit_texts(trace::SpaceId parent, trace::SpaceId child);
  void drop_covered(trace::SpaceId space, std::uint64_t tsc);
  void exec(const Event& event);
  void add_sideband(trace::SidebandKind kind, const Event& event);
  struct AddressSpan {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  [[nodiscard]] bool names_jit_code(std::int32_t map, const trace::CodeRegion& region) const;
  void note_text(const trace::CodeRegion& region, const Mapping& mapping);
  [[nodiscard]] AddressSpan text_around(const trace::CodeRegion& region, const Mapping& mapping,
                                        const AddressSpan& segment, std::uint64_t delta) const;
  void note_untimed_text(std::int64_t pid);
  // Gives an anonymous mapping over code of a file that code. Returns false if there is none, or if `map`, a
  // file with names of JIT code (-1: none), says that it is JIT code.
  [[nodiscard]] bool take_text(trace::CodeRegion& region, std::int64_t pid, std::int32_t map);
  void warn_of_moved_code();
  void check_untimed_overlap(const trace::CodeRegion& region);

  struct Untimed {
    std::uint64_t end = 0;
    std::int32_t file = -1;
    std::uint64_t begin_in_file = 0;  // address that the file's first byte would have
  };
  // Where a byte of an executable segment lies: `address` - `delta` is its offset in the file.
  struct Text {
    std::int32_t file = -1;
    std::uint64_t delta = 0;
    [[nodiscard]] bool operator==(const Text&) const = default;
  };
  trace::TraceBundle& bundle_;
  Binaries& binaries_;
  std::map<std::int32_t, std::vector<code::image::FileSegment>> segments_;  // by file
  std::map<trace::SpaceId, base::IntervalMap<Text>> texts_;                 // executable segments
  std::map<std::int64_t, std::vector<const Event*>> untimed_files_;         // by pid, until they are needed
  std::set<std::string> moved_;  // addresses and files of take_text()
  bool is_here_;
  std::set<trace::SpaceId> has_jitdump_;                       // spaces with JIT code from a jitdump
  std::map<std::int64_t, trace::SpaceId> spaces_;              // by pid
  std::map<trace::SpaceId, std::vector<std::size_t>> mapped_;  // current regions by space
  std::size_t may_inherit_ = 0;                                // limit of regions that fork() may still copy
  std::size_t may_inherit_texts_ = 0;                          // the same of entries of texts_
  bool inherits_all_ = true;
  bool inherits_texts_ = true;
  // Mappings without a time, by space and address.
  std::map<std::pair<trace::SpaceId, std::uint64_t>, Untimed> untimed_;
  bool is_ambiguous_ = false;                                           // two mappings without a time overlap
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names_;  // thread names by pid and tid
};

}  // namespace ptkit::formats::perf
