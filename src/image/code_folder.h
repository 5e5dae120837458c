// The folder in which decoded code of files is kept from one process to the next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "image/kept_code.h"
#include "trace/bundle.h"

namespace ptkit::image {

// Nothing here fails for the user: what cannot be read or written is not kept.
class CodeFolder {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{512} << 20U;

  // `path` need not exist. Empty: nothing is kept.
  explicit CodeFolder(std::string path, std::uint64_t most_bytes = kMostBytes)
      : path_(std::move(path)), most_bytes_(most_bytes) {}
  // $PTKIT_CACHE/code (nothing is kept if the variable is empty), else $XDG_CACHE_HOME/ptkit/code, else
  // ~/.cache/ptkit/code.
  [[nodiscard]] static CodeFolder of_user();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::unique_ptr<KeptCode> open(const std::string& build_id, insn::ExecMode mode) const;
  // Writes `lines` and what is kept already, then drops the oldest files beyond the limit. Safe beside other
  // processes: who comes last wins, and no file is ever seen half written.
  bool save(const std::string& build_id, KeptLines& lines, insn::ExecMode mode) const;

 private:
  [[nodiscard]] std::string file_of(const std::string& build_id, insn::ExecMode mode) const;
  void drop_oldest() const;

  std::string path_;
  std::uint64_t most_bytes_;
};

// Does `work`, or as much of it as there is memory for.
void if_memory_allows(const std::function<void()>& work) noexcept;

// What is kept of the files of one bundle: opened when first asked for.
class KeptFiles {
 public:
  KeptFiles(const trace::TraceBundle& bundle, CodeFolder folder)
      : bundle_(bundle), folder_(std::move(folder)) {}

  [[nodiscard]] bool off() const noexcept { return folder_.path().empty(); }
  // Null: nothing is kept of it, or it has no build-id. Lives as long as this. Thread-safe.
  [[nodiscard]] const KeptCode* of(std::int32_t file, insn::ExecMode mode);
  [[nodiscard]] bool can_keep(std::int32_t file) const noexcept;
  bool save(std::int32_t file, insn::ExecMode mode, KeptLines& lines) const;

 private:
  const trace::TraceBundle& bundle_;
  const CodeFolder folder_;
  std::mutex mutex_;
  std::map<std::pair<std::int32_t, insn::ExecMode>, std::unique_ptr<KeptCode>> opened_;
};

}  // namespace ptkit::image
