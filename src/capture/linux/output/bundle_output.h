// The bundle of a recording. Thread-safe: all recording threads write to it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capture/linux/files/code_reader.h"
#include "capture/linux/files/file_table.h"
#include "capture/linux/output/trace_ring.h"
#include "formats/ptk/writer.h"
#include "trace/warning.h"

namespace ptkit::capture {

// Maximum time between flushes of the bundle file.
inline constexpr std::chrono::milliseconds kFlushInterval{1000};

// Files with names of code, and the ranges that these name. Files of ranges are indices of `files`.
struct NameList {
  std::vector<trace::ImageFile> files;
  std::vector<trace::NameRange> ranges;

  // Gives files of ranges the numbers that they have in the bundle. `add` adds a file under a key of its own:
  // its path may be there already, as PIDs are used again.
  using Add = std::function<std::int32_t(const std::string& key, const trace::ImageFile& file)>;
  void number_files(const Add& add);
};

class BundleOutput {
 public:
  // `ring_bytes`: trace goes to a ring of that size, and snapshot() writes the ring to the bundle. 0: no
  // ring.
  BundleOutput(formats::PtkWriter writer, std::uint64_t ring_bytes, FileParser& parser,
               ReadLimits limits = {});

  void info(const formats::RecordingInfo& info);
  void configuration(const trace::Configuration& configuration);
  void metadata(const std::string& json_object);
  [[nodiscard]] trace::SpaceId space(std::int64_t pid);
  void describe(trace::SpaceId id, const trace::Space& space);  // replaces the description of a space
  [[nodiscard]] std::uint32_t stream(const trace::Stream& stream);
  void add_to(std::uint32_t stream, const trace::Stream& more);             // switches
  void switch_offsets(std::uint32_t stream, const trace::Stream& aligned);  // after all data
  void data(std::uint32_t stream, base::Bytes bytes);
  // Only without a ring. See PtkWriter::loss().
  void loss(std::uint32_t stream, std::uint64_t bytes, base::Status cause);
  void code(const std::vector<trace::CodeRegion>& regions);
  void names(NameList list);
  void sideband(const trace::Sideband& record);
  void warning(const trace::Warning& warning);
  // A file that process `pid` has mapped.
  struct File {
    std::int32_t number = -1;  // -1: anonymous memory
    std::string build_id;
  };
  [[nodiscard]] File file(pid_t pid, const Mapping& mapping);
  // The number of a file of a program with the rights of this process. -1: no path.
  [[nodiscard]] std::int32_t file(pid_t pid, const std::string& path);
  // The number of an image without a file (the kernel, the vDSO), or of a jitdump. Only the first call for
  // `name` calls `make`.
  [[nodiscard]] std::int32_t file(const std::string& name, const std::function<trace::ImageFile()>& make);

  // Reads files and memory of processes.
  [[nodiscard]] CodeReader& reader() noexcept { return reader_; }

  void snapshot();  // writes the ring, if any, to the bundle
  [[nodiscard]] std::uint64_t dropped_bytes() const;

  void flush();
  [[nodiscard]] const std::string& path() const noexcept { return writer_.path(); }
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t streams() const noexcept { return streams_.load(std::memory_order_relaxed); }
  [[nodiscard]] base::Result<std::uint64_t> finish();  // the size of the file

 private:
  template <typename Write>
  void write(Write&& write);
  [[nodiscard]] File find(const std::string& key, const std::string& path,
                          const std::function<MappedFile()>& open);

  std::mutex mutex_;  // guards writer_
  formats::PtkWriter writer_;
  std::unique_ptr<TraceRing> ring_;
  CodeReader reader_;
  std::mutex files_mutex_;
  FileTable files_;
  std::atomic<std::uint32_t> streams_{0};
  std::atomic<std::uint32_t> spaces_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace ptkit::capture
