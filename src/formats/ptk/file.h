// Writes the file of a bundle: packed chunks one after the other, then the index. If writing stops early
// (full disk, killed process), the file consists of complete chunks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/system/output_file.h"
#include "formats/ptk/layout.h"

struct ZSTD_CCtx_s;

namespace ptkit::formats::ptk {

// When the file gets its name.
enum class Naming : std::uint8_t {
  AT_ONCE,     // with its header: a recording that is killed is a bundle
  AT_ITS_END,  // when it is complete
};

class ChunkFile {
 public:
  // Mode 0600, as base::OutputFile makes it; `owner` gets the complete file.
  [[nodiscard]] static base::Result<ChunkFile> create(const std::string& path, Naming naming,
                                                      const std::optional<base::Owner>& owner);

  // Writes a chunk at once. The first failure is kept: the file is truncated after its last complete chunk,
  // and later chunks are dropped.
  void append(ChunkType type, std::uint32_t id, std::uint64_t position, base::Bytes payload);
  // Writes index and trailer, and returns the file's size. After a failure the space that the truncation
  // freed is used for `failure_meta` (a META chunk) and the index. The failure is still returned.
  [[nodiscard]] base::Result<std::uint64_t> finish(const std::string& failure_meta);

  [[nodiscard]] const std::optional<base::Failure>& failure() const noexcept { return failure_; }
  // The failure's detail without the path.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };

  ChunkFile(std::string path, base::OutputFile file, const std::optional<base::Owner>& owner);
  [[nodiscard]] bool put(ChunkType type, std::uint32_t id, std::uint64_t position, base::Bytes payload);
  [[nodiscard]] bool put(base::Bytes bytes);
  [[nodiscard]] bool put_index();
  void fail();
  void name();

  std::string path_;
  std::optional<base::Owner> owner_;
  base::OutputFile file_;  // a chunk is one write
  bool named_ = false;
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> packer_;
  std::uint64_t size_ = 0;  // bytes of the file header and of complete chunks
  std::vector<IndexEntry> index_;
  std::vector<std::uint8_t> scratch_;  // the chunk that is being packed
  std::optional<base::Failure> failure_;
  std::string reason_;
};

}  // namespace ptkit::formats::ptk
