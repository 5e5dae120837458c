// Address spaces, images and their code of a recording on Windows, made of the driver's records.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "capture/windows/kernel_events.h"
#include "capture/windows/records.h"
#include "code/image/pe/pe_relocations.h"
#include "formats/ptk/writer.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// Where bytes of images come from. Tests have images of their own.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  // The file that the kernel names `path`. Empty: it cannot be read.
  [[nodiscard]] virtual trace::TraceBuffer file(const std::string& path) = 0;
  // The path as a user knows it: "C:\\Windows\\notepad.exe".
  [[nodiscard]] virtual std::string shown(const std::string& path) = 0;
  // Memory of a process. Empty: it cannot be read.
  [[nodiscard]] virtual std::vector<std::uint8_t> memory(std::int64_t pid, std::uint64_t address,
                                                         std::uint64_t bytes) = 0;
};

class WindowsImages {
 public:
  // `pid`: images of other processes are left out; 0: all processes. Images of the kernel are kept if
  // `kernel`.
  WindowsImages(formats::PtkWriter& writer, ImageSource& source, std::int64_t pid, bool kernel)
      : writer_(&writer), source_(&source), pid_(pid), kernel_(kernel) {}

  void apply(const WindowsRecord& record);
  // An image was unloaded: its code counts until then.
  void unload(const KernelEvent& event);
  // The space of a process, which is described when its page tables are known.
  [[nodiscard]] trace::SpaceId space_of(std::int64_t pid);
  // Images without code.
  [[nodiscard]] const std::vector<std::string>& unread() const noexcept { return unread_; }

 private:
  struct Process {
    trace::SpaceId space = trace::kAnySpace;
    bool has_program = false;
  };
  struct Range {
    trace::SpaceId space = trace::kAnySpace;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  // A file of code, as it was read once.
  struct CodeFile {
    std::int32_t number = -1;
    bool is_image = false;  // and has the size of the mapping
    trace::TraceBuffer contents;
    std::uint64_t linked_base = 0;
    std::uint64_t written_base = 0;  // at which the bundle has its parts
    bool is_written = false;
    std::shared_ptr<const code::image::PeRelocations> relocations;
    std::vector<trace::CodeRegion> parts;  // addresses are relative
  };

  [[nodiscard]] bool follows(std::int64_t pid) const noexcept { return pid_ == 0 || pid == pid_; }
  void begin(const WindowsRecord& record);
  void end(const WindowsRecord& record);
  void image(const WindowsRecord& record);
  void write_code(const WindowsRecord& record, CodeFile& file, trace::SpaceId space);
  [[nodiscard]] static trace::TraceBuffer relocated(const CodeFile& file, const trace::TraceBuffer& part,
                                                    std::uint32_t rva, std::uint64_t base);
  void write_memory(const WindowsRecord& record, trace::CodeRegion region);
  [[nodiscard]] std::uint64_t first_time(const WindowsRecord& record, trace::SpaceId space);
  [[nodiscard]] CodeFile& file_of(const WindowsRecord& record);
  void describe(trace::SpaceId id, const WindowsRecord& record);

  formats::PtkWriter* writer_;
  ImageSource* source_;
  std::int64_t pid_;
  bool kernel_;
  std::map<std::int64_t, Process> processes_;
  std::map<std::string, CodeFile> files_;
  std::vector<Range> mapped_;
  trace::SpaceId last_space_ = trace::kAnySpace;
  std::uint64_t code_bytes_ = 0;  // in the bundle
  std::vector<std::string> unread_;
};

}  // namespace ptkit::capture
