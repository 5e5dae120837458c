#include "capture/windows/records.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "capture/windows/requests.h"

namespace ptkit::capture {

namespace {

constexpr std::size_t kAlignment = 8;

// The structure at the beginning of a record. Fields beyond the end of a short record are zero.
template <typename T>
T read_as(base::Bytes record) {
  T out{};
  std::memcpy(&out, record.data(), std::min(record.size(), sizeof out));
  return out;
}

void set_space(const ptkit_record_space& space, WindowsRecord& out) {
  out.kernel_cr3 = space.kernel_cr3;
  out.user_cr3 = space.user_cr3;
}

bool read_image(base::Bytes record, WindowsRecord& out) {
  const auto image = read_as<ptkit_record_image>(record);
  if (record.size() < sizeof image || image.path_bytes > record.size() - sizeof image) return false;
  out.address = image.address;
  out.bytes = image.bytes;
  out.kernel = (image.flags & PTKIT_IMAGE_KERNEL) != 0;
  out.before = (image.flags & PTKIT_IMAGE_BEFORE) != 0;
  out.path = utf8_of(record.subspan(sizeof image, image.path_bytes));
  return true;
}

// False: an unknown type, or a body that does not fit.
bool read_body(std::uint16_t type, base::Bytes record, WindowsRecord& out) {
  using Kind = WindowsRecord::Kind;
  switch (type) {
    case PTKIT_RECORD_FORK: {
      const auto fork = read_as<ptkit_record_fork>(record);
      out.kind = Kind::BEGIN;
      set_space(fork.space, out);
      out.parent_pid = fork.parent_pid;
      return true;
    }
    case PTKIT_RECORD_SPACE:
      out.kind = Kind::SPACE;
      set_space(read_as<ptkit_record_space>(record), out);
      return true;
    case PTKIT_RECORD_EXIT:
      out.kind = Kind::END;
      out.status = read_as<ptkit_record_exit>(record).status;
      return true;
    case PTKIT_RECORD_LOST:
      out.kind = Kind::LOST;
      out.count = read_as<ptkit_record_lost>(record).count;
      return true;
    case PTKIT_RECORD_IMAGE:
      out.kind = Kind::IMAGE;
      return read_image(record, out);
    default:
      return false;
  }
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto byte = [&out](std::uint32_t value) { out += static_cast<char>(value); };
  if (point < 0x80) return byte(point);
  if (point < 0x800) {
    byte(0xc0U | point >> 6U);
  } else {
    if (point < 0x10000) {
      byte(0xe0U | point >> 12U);
    } else {
      byte(0xf0U | point >> 18U);
      byte(0x80U | (point >> 12U & 0x3fU));
    }
    byte(0x80U | (point >> 6U & 0x3fU));
  }
  byte(0x80U | (point & 0x3fU));
}

}  // namespace

std::string utf8_of(base::Bytes utf16) {
  constexpr std::uint32_t kReplacement = 0xfffd;
  std::string out;
  const std::size_t units = utf16.size() / 2;
  const auto unit = [&](std::size_t i) {
    return static_cast<std::uint32_t>(base::load_le<2>(utf16.data() + 2 * i));
  };
  for (std::size_t i = 0; i < units; ++i) {
    std::uint32_t point = unit(i);
    const bool high = point >= 0xd800 && point < 0xdc00;
    const bool low = point >= 0xdc00 && point < 0xe000;
    if (high && i + 1 < units && unit(i + 1) >= 0xdc00 && unit(i + 1) < 0xe000)
      point = 0x10000 + ((point - 0xd800) << 10U) + (unit(++i) - 0xdc00);
    else if (high || low)
      point = kReplacement;
    append_utf8(out, point);
  }
  return out;
}

WindowsRecords parse_records(base::Bytes bytes) {
  WindowsRecords out;
  while (bytes.size() >= sizeof(ptkit_record)) {
    const auto record = read_as<ptkit_record>(bytes);
    if (record.size < sizeof record || record.size % kAlignment != 0 || record.size > bytes.size()) break;
    WindowsRecord one;
    one.tsc = record.tsc;
    one.pid = record.pid;
    one.tid = record.tid;
    if (read_body(record.type, bytes.first(record.size), one)) out.records.push_back(std::move(one));
    bytes = bytes.subspan(record.size);
  }
  out.bad_bytes = bytes.size();
  return out;
}

}  // namespace ptkit::capture
