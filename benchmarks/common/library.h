// libipt in its fastest use: it maps code from files, with an image section cache.
#pragma once

#include <intel-pt.h>

#include <memory>
#include <string>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::bench {

// Writes the bundle's code to files, one for each group of near regions. The destructor removes them.
class Sections {
 public:
  explicit Sections(const trace::TraceBundle& bundle);
  ~Sections();
  Sections(const Sections&) = delete;
  Sections& operator=(const Sections&) = delete;

  // Adds the sections to the image of a decoder. Returns false on failure.
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

// The sections of this process, created at the first call: files are mapped once, as by a user.
[[nodiscard]] const Sections& sections_of(const trace::TraceBundle& bundle);

// The configuration of the stream, with its clock, and erratum BDM70 (see the corpus' documentation), which
// ptkit's decoder also sets for an unknown processor.
[[nodiscard]] pt_config library_config(const trace::TraceBundle& bundle);

}  // namespace ptkit::bench
