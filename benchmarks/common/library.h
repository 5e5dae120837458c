// libipt in its best use: code in files that it maps, by an image section cache.
#pragma once

#include <intel-pt.h>

#include <memory>
#include <string>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::bench {

// Writes the bundle's code to files, one per run of regions that are near each other, and removes them in the
// end.
class Sections {
 public:
  explicit Sections(const trace::TraceBundle& bundle);
  ~Sections();
  Sections(const Sections&) = delete;
  Sections& operator=(const Sections&) = delete;

  // To be added to the image of every decoder of this process; false if that failed.
  [[nodiscard]] bool add_to(pt_image* image) const;
  // Copies what is at `address`, for checks.
  [[nodiscard]] std::size_t read(std::uint64_t address, std::uint8_t* out, std::size_t size) const;

 private:
  struct Run {
    std::uint64_t address = 0;
    std::vector<std::uint8_t> bytes;
    int section = 0;
  };
  std::vector<Run> runs_;
  std::vector<std::string> paths_;
  std::string folder_;
  pt_image_section_cache* cache_ = nullptr;
};

// The sections of this process, made at the first call: files are mapped once, as a user would.
[[nodiscard]] const Sections& sections_of(const trace::TraceBundle& bundle);

// For the stream, with what is known of its clock, and with erratum BDM70 (see the corpus' documentation), as
// our own decoder has it for an unknown processor.
[[nodiscard]] pt_config library_config(const trace::TraceBundle& bundle);

}  // namespace ptkit::bench
