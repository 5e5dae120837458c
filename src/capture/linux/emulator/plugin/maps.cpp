// The mapped files of the guest's code.
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#include "capture/linux/emulator/plugin/process.h"

namespace ptkit::capture::plugin {

namespace {

struct Range {
  uint64_t begin;
  uint64_t end;
};

struct MapLine {
  Range range;
  uint64_t offset;
  bool writable;
  const char* path;  // "": no file
};

// Ranges of mappings that were logged or are anonymous. When the table is full, it is emptied and ranges are
// logged again.
constexpr size_t kMaxRanges = 1024;
Range ranges[kMaxRanges];
size_t range_count;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void remember(const Range& range) {
  if (range_count == kMaxRanges) range_count = 0;
  ranges[range_count++] = range;
}

bool is_logged(uint64_t pc) {
  for (size_t i = 0; i < range_count; ++i) {
    if (pc >= ranges[i].begin && pc < ranges[i].end) return true;
  }
  return false;
}

// "begin-end rwxp offset major:minor inode   path"
bool parse(char* text, MapLine& out) {
  char* at = text;
  out.range.begin = strtoull(at, &at, 16);
  if (*at++ != '-') return false;
  out.range.end = strtoull(at, &at, 16);
  if (*at == 0 || strlen(at) < 6) return false;
  out.writable = at[2] == 'w';
  at += 6;
  out.offset = strtoull(at, &at, 16);
  for (int field = 0; field < 2; ++field) {  // device, inode
    at += strspn(at, " ");
    at += strcspn(at, " \n");
  }
  at += strspn(at, " ");
  at[strcspn(at, "\n")] = 0;
  out.path = *at == '/' ? at : "";
  return true;
}

// Calls `take` with each line until it returns true.
template <typename Take>
void for_each_mapping(Take take) {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  static char buffer[4 * PATH_MAX];
  size_t filled = 0;
  bool done = false;
  while (!done) {
    const ssize_t got = read(file, buffer + filled, sizeof buffer - 1 - filled);
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
    buffer[filled] = 0;
    char* at = buffer;
    while (char* const end =
               static_cast<char*>(memchr(at, '\n', filled - static_cast<size_t>(at - buffer)))) {
      *end = 0;
      MapLine line{};
      if (parse(at, line) && take(line)) {
        done = true;
        break;
      }
      at = end + 1;
    }
    filled -= static_cast<size_t>(at - buffer);
    memmove(buffer, at, filled);
  }
  close(file);
}

// Where the ELF header of a file was mapped last before its other mappings: RVAs of its code count from
// there. Only the header: the pages after it may be mapped again, as code, and names must not be found
// twice.
class BeginOfFile {
 public:
  void take(const MapLine& line) {
    if (line.offset != 0 || *line.path == 0) return;
    line_ = line;
    line_.range.end = line.range.begin + sizeof(Elf64_Ehdr);
    strncpy(path_, line.path, sizeof path_ - 1);
    line_.path = path_;
  }
  // Null if `line` is of another file, or is this mapping.
  const MapLine* of(const MapLine& line) const {
    const bool is_other = line.range.begin == line_.range.begin || strcmp(line.path, path_) != 0;
    return is_other ? nullptr : &line_;
  }

 private:
  MapLine line_{};
  char path_[PATH_MAX] = "";
};

void write_map(const MapLine& line) {
  const size_t size = strlen(line.path);
  auto* const record = static_cast<LogMap*>(begin_record(LogKind::MAP, sizeof(LogMap) + size));
  if (record == nullptr) return;
  record->begin = line.range.begin;
  record->end = line.range.end;
  record->offset = line.offset;
  record->tsc = __rdtsc();
  record->writable = line.writable ? 1 : 0;
  record->path_bytes = static_cast<uint32_t>(size);
  memcpy(record + 1, line.path, size);
  publish_record(record);
}

}  // namespace

void log_mapping(uint64_t pc) {
  pthread_mutex_lock(&lock);
  if (!is_logged(pc)) {
    static BeginOfFile begin;
    begin = BeginOfFile();
    for_each_mapping([&](const MapLine& line) {
      begin.take(line);
      if (pc < line.range.begin || pc >= line.range.end) return false;
      remember(line.range);
      if (*line.path == 0) return true;
      if (const MapLine* const first = begin.of(line); first != nullptr && !is_logged(first->range.begin)) {
        remember(first->range);
        write_map(*first);
      }
      write_map(line);
      return true;
    });
  }
  pthread_mutex_unlock(&lock);
}

void invalidate_mappings(uint64_t begin, uint64_t end) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < range_count;) {
    if (ranges[i].begin < end && begin < ranges[i].end) {
      ranges[i] = ranges[--range_count];
    } else {
      ++i;
    }
  }
  pthread_mutex_unlock(&lock);
}

}  // namespace ptkit::capture::plugin
