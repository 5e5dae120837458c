// Contents of files on this machine, shared by all traces of this process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/system/file_identity.h"
#include "trace/buffer.h"

namespace ptkit::trace {

// The last `most` files, each as a `File`, made of its path and contents. A file is known by its identity: a
// build-id would let one recording name another one's functions. Thread-safe.
template <typename File>
class FileCache {
 public:
  explicit FileCache(std::size_t most) : most_(most) {}

  // Null: there is no regular file at the path, or it cannot be read.
  [[nodiscard]] std::shared_ptr<const File> get(const std::string& path) {
    const auto identity = base::file_identity(path);
    if (!identity) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(files_, *identity, &Entry::identity);
    if (known != files_.end()) {
      files_.splice(files_.begin(), files_, known);
      return files_.front().file;
    }
    auto contents = TraceBuffer::map_file(path);
    if (!contents.ok()) return nullptr;
    files_.push_front({*identity, std::make_shared<const File>(path, std::move(contents.value()))});
    if (files_.size() > most_) files_.pop_back();
    return files_.front().file;
  }

 private:
  struct Entry {
    base::FileIdentity identity;
    std::shared_ptr<const File> file;
  };

  std::size_t most_;
  std::mutex mutex_;
  std::list<Entry> files_;  // the last used one first
};

}  // namespace ptkit::trace
