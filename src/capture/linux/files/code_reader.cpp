#include "capture/linux/files/code_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <utility>

#include "base/addresses.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

namespace {

using base::kPageBytes;
constexpr std::uint64_t kReadBytes = std::uint64_t{4} << 20U;
constexpr std::size_t kReadPages = kReadBytes / kPageBytes;

// The clock of file systems.
std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// The limit for a file that is held in memory as a whole: a quarter of the available memory.
std::uint64_t share_of_memory() {
  constexpr std::uint64_t kParts = 4;
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::uint64_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) return kib * 1024 / kParts;
  }
  return std::numeric_limits<std::uint64_t>::max();
}

std::uint64_t size_of(const Fd& file) {
  struct stat info {};
  return ::fstat(file.get(), &info) == 0 && info.st_size > 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

std::string names_in(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Which pages of a process are present (/proc/PID/pagemap).
class PageMap {
 public:
  explicit PageMap(pid_t pid)
      : file_(::open((process_folder(pid) + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC)) {}

  // Reads the entries of pages from `address` on. If the file cannot be read, all pages count as present.
  void read_entries(std::uint64_t address, std::size_t pages) {
    const std::span<std::uint64_t> words = std::span(words_).first(pages);
    const std::uint64_t offset = address / kPageBytes * sizeof(std::uint64_t);
    const std::size_t bytes = words.size_bytes();
    if (read_at(file_, offset, {reinterpret_cast<std::uint8_t*>(words.data()), bytes}) != bytes)
      std::ranges::fill(words, kPresent);
  }
  [[nodiscard]] bool is_present(std::size_t page) const {
    return (words_[page] & (kPresent | kSwapped)) != 0;
  }

 private:
  static constexpr std::uint64_t kPresent = std::uint64_t{1} << 63U;
  static constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62U;
  Fd file_;
  std::array<std::uint64_t, kReadPages> words_{};
};

}  // namespace

CodeReader::CodeReader(FileParser& parser, ReadLimits limits)
    : parser_(parser), limits_(limits), began_ns_(now_ns()) {}

MappedFile CodeReader::open(pid_t pid, const Mapping& mapping) const {
  return reopened(locate_mapped(pid, mapping, began_ns_, [&](const Fd& file) {
    const ParseRequest request{ParseRequest::Kind::BUILD_ID, std::min(size_of(file), limits_.file_bytes)};
    return parser_.parse(request, file, mapping.path).build_id;
  }));
}

// Takes up to `wanted` bytes from the limits, at most `limit`. Returns the number of bytes to read.
std::uint64_t CodeReader::grant(const std::string& path, std::uint64_t wanted, std::uint64_t limit) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t granted = std::min({wanted, limit, limits_.all_bytes - read_bytes_});
  if (granted < wanted) cut_.insert(path);
  read_bytes_ += granted;
  return granted;
}

void CodeReader::has_shrunk(const std::string& path) {
  const std::lock_guard lock(mutex_);
  shrunk_.insert(path);
}

// The number of bytes to read from the beginning of a file.
std::uint64_t CodeReader::grant_whole(const MappedFile& file, const std::string& path) {
  if (file.found != MappedFile::Found::FILE) return 0;
  const std::uint64_t size = size_of(file.file);
  // Small files (nearly all) need no check of the available memory.
  const std::uint64_t most =
      size <= kReadBytes ? limits_.file_bytes : std::min(limits_.file_bytes, share_of_memory());
  const std::uint64_t end = std::min(size, most);
  std::uint64_t blocks = 0;
  FileExtents extents(file.file, 0, end);
  while (const auto extent = extents.next()) blocks += extent->end - extent->begin;
  return grant(path, blocks + (size - end), blocks) < blocks ? 0 : end;
}

trace::TraceBuffer CodeReader::read(const MappedFile& file, const std::string& path) {
  const std::uint64_t granted = grant_whole(file, path);
  if (granted == 0) return {};
  bool shrunk = false;
  trace::TraceBuffer out = read_whole(file.file, granted, shrunk);
  if (shrunk) has_shrunk(path);
  return out;
}

ParsedFile CodeReader::parse(const MappedFile& file, const std::string& path, ParseRequest request) {
  if (request.file_bytes == 0) request.file_bytes = grant_whole(file, path);
  if (request.file_bytes == 0) return {};
  ParsedFile out = parser_.parse(request, file.file, path);
  if (out.shrunk) has_shrunk(path);
  return out;
}

ParsedFile CodeReader::parse_memory(base::Bytes memory, const std::string& name) {
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  const Fd file(::memfd_create("ptkit-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool written =
      file.get() >= 0 && !memory.empty() &&
      ::write(file.get(), memory.data(), memory.size()) == static_cast<ssize_t>(memory.size());
  if (!written || ::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return {};
  return parser_.parse({ParseRequest::Kind::SYMBOLS, memory.size()}, file, name);
}

void CodeReader::read_part(const MappedFile& file, const std::string& path, std::uint64_t offset,
                           std::uint64_t bytes, const Take& take) {
  if (file.found != MappedFile::Found::FILE) return;
  const std::uint64_t size = size_of(file.file);
  if (offset >= size) return has_shrunk(path);
  std::uint64_t left = limits_.file_bytes;
  FileExtents extents(file.file, offset, offset + std::min(bytes, size - offset));
  while (const auto extent = extents.next()) {
    for (std::uint64_t at = extent->begin; at < extent->end;) {
      const std::uint64_t wanted = std::min(kReadBytes, extent->end - at);
      std::vector<std::uint8_t> out(grant(path, wanted, left));
      const bool cut = out.size() < wanted;
      left -= out.size();
      out.resize(read_at(file.file, at, out));
      const std::uint64_t got = out.size();
      if (got != 0) take(at - offset, trace::TraceBuffer::from_vector(std::move(out)));
      if (cut) return;
      if (got < wanted) return has_shrunk(path);
      at += got;
    }
  }
}

void CodeReader::read_memory(pid_t pid, const Mapping& mapping, const Take& take) {
  const Memory memory(pid);
  PageMap pages(pid);
  const std::uint64_t bytes = mapping.end - mapping.begin;
  const std::uint64_t most = std::min(bytes, limits_.file_bytes);
  std::uint64_t got = 0;
  for (std::uint64_t at = 0; at < most; at += kReadBytes) {
    const std::uint64_t part = std::min(kReadBytes, most - at);
    const std::size_t count = (part + kPageBytes - 1) / kPageBytes;
    pages.read_entries(mapping.begin + at, count);
    for (std::size_t first = 0; first < count;) {
      std::size_t last = first;
      while (last < count && pages.is_present(last)) ++last;
      const std::uint64_t begin = at + first * kPageBytes;
      const std::uint64_t end = std::min(at + last * kPageBytes, most);
      first = last + 1;
      if (begin >= end) continue;
      std::vector<std::uint8_t> out(grant(mapping.path, end - begin, most));
      out.resize(memory.read(mapping.begin + begin, out));
      got += out.size();
      if (!out.empty()) take(begin, trace::TraceBuffer::from_vector(std::move(out)));
    }
  }
  if (got != 0 && most < bytes) static_cast<void>(grant(mapping.path, bytes - most, 0));
}

std::vector<trace::Warning> CodeReader::warnings() const {
  const std::lock_guard lock(mutex_);
  std::vector<trace::Warning> out;
  if (!cut_.empty()) {
    out.push_back(warn(WarningCode::FILES_TOO_LARGE, limits_.file_bytes >> 20U, limits_.all_bytes >> 20U,
                       names_in(cut_)));
  }
  if (!shrunk_.empty()) out.push_back(warn(WarningCode::FILES_SHRUNK, names_in(shrunk_)));
  for (trace::Warning& warning : parser_.warnings()) out.push_back(std::move(warning));
  return out;
}

}  // namespace ptkit::capture
