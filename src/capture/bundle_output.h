// The bundle that a recording writes, for the threads that write it together.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "capture/code_reader.h"
#include "capture/file_table.h"
#include "capture/stream_ring.h"
#include "formats/ptk_writer.h"

namespace ptkit::capture {

class BundleOutput {
 public:
  // `ring_bytes`: trace goes to a ring of that size, and from there to the bundle by snapshot(); 0: at once.
  BundleOutput(formats::PtkWriter writer, std::uint64_t ring_bytes, ReadLimits limits = {});

  void info(const formats::RecordingInfo& info);
  void configuration(const trace::Configuration& configuration);
  void metadata(const std::string& json_object);
  [[nodiscard]] trace::SpaceId space(std::int64_t pid);
  void describe(trace::SpaceId id, const trace::Space& space);  // one that is there: it is known better
  [[nodiscard]] std::uint32_t stream(const trace::Stream& stream);
  void add_to(std::uint32_t stream, const trace::Stream& more);    // switches
  void places(std::uint32_t stream, const trace::Stream& placed);  // of its switches, behind all of it
  void data(std::uint32_t stream, base::Bytes bytes);
  // Without a ring: as PtkWriter has it.
  void loss(std::uint32_t stream, std::uint64_t bytes, base::Status cause);
  void code(const std::vector<trace::CodeRegion>& regions);
  void sideband(const trace::Sideband& record);
  void warning(const std::string& sentence);
  // A file that process `pid` has mapped.
  struct File {
    std::int32_t number = -1;  // of anonymous memory
    std::string build_id;
  };
  [[nodiscard]] File file(pid_t pid, const Mapping& mapping);
  // The number of a file that a program has, which runs with the rights of this process; -1: no path.
  [[nodiscard]] std::int32_t file(pid_t pid, const std::string& path);
  // Of one that is none: the kernel, or what it maps. `make` is called if nobody asked for it before.
  [[nodiscard]] std::int32_t file(const std::string& name, const std::function<trace::ImageFile()>& make);

  // Of files and memory of processes.
  [[nodiscard]] CodeReader& reader() noexcept { return reader_; }

  void snapshot();  // of the ring, if there is one
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

  std::mutex mutex_;  // of the writer
  formats::PtkWriter writer_;
  std::unique_ptr<StreamRing> ring_;
  CodeReader reader_;
  std::mutex files_mutex_;
  FileTable files_;
  std::atomic<std::uint32_t> streams_{0};
  std::atomic<std::uint32_t> spaces_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace ptkit::capture
