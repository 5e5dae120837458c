// A bundle with a value in every member, and the raw chunks of its file.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/ptk/chunks.h"
#include "formats/ptk/writer.h"
#include "formats/registry.h"
#include "unit/support/makers/stored_functions.h"
#include "unit/support/makers/stored_imports.h"
#include "unit/support/scratch.h"
#include "unit/support/warned.h"

namespace ptkit::formats::test {

inline trace::TraceBuffer buffer(const std::string& text) {
  return trace::TraceBuffer::from_vector({text.begin(), text.end()});
}

inline std::string text_of(base::Bytes bytes) { return {bytes.begin(), bytes.end()}; }

// Returns a bundle with a value in every member.
inline trace::TraceBundle sample() {
  trace::TraceBundle bundle;
  auto& configuration = bundle.configuration;
  configuration.cpu = {true, true, 6, 143, 8};
  configuration.clock = {300, 2, true, 5, 24, 2400000000, true, 10, 426, ~std::uint64_t{0} - 7, 77, 0xffff};
  configuration.rtit_ctl = 0x2a08;
  configuration.rtit_ctl_known = true;
  configuration.ranges[1] = {trace::RangeKind::FILTER, 0x1000, 0x1fff};
  configuration.space_ranges = {{1, {trace::RangeKind::FILTER, 0x3000, 0x3fff}},
                                {2, {trace::RangeKind::TRACE_STOP, 0x5000, 0x5fff}}};
  bundle.spaces.push_back({100, 0, false});
  bundle.spaces.push_back({200, 0x5000, true});
  bundle.files.push_back({"/bin/a", "00ff", {}, {{"main", 0x40, 12}, {"_Z1fv", 0x50, 0}}});
  bundle.files[0].unwind = ptkit::test::stored_functions({{0x40, 0x4c}, {0x80, 0x90}});
  bundle.files[0].imports = ptkit::test::stored_imports({"libc.so.6"}, {{0x3000, 1, "puts"}});
  bundle.files.push_back({"b \xff.so", "", {}, {}});
  for (int i = 0; i < 2; ++i) {
    trace::Stream stream;
    stream.name = "thread " + std::to_string(i);
    stream.pid = 100;
    stream.tid = 101 + i;
    stream.space = 1;
    stream.data = buffer(small_stream() + std::string(static_cast<std::size_t>(i) * 1200000, 'x'));
    bundle.streams.push_back(std::move(stream));
    bundle.threads.push_back({100, 101 + i, "worker"});
  }
  bundle.streams[1].switches = {{5, 100, 102, 1}, {9, trace::kNoId, trace::kNoId, 0}};
  bundle.streams[0].switches = {{0, 100, 101, 1, 16}, {0, 100, trace::kNoId, 1, 20}};
  bundle.streams[0].switches_by_offset = true;
  bundle.streams[0].switches[1].departure = trace::Departure::PREEMPTED;
  bundle.streams[1].switches[1].departure = trace::Departure::WAITS;
  bundle.streams[1].losses = {{64, base::Status::RING_WRAPPED, 10}};
  trace::CodeRegion mapping;
  mapping.space = 1;
  mapping.address = 0x400000;
  mapping.size = 0x3000;
  mapping.file = 0;
  bundle.code.push_back(mapping);
  mapping.size = 0x1000;
  mapping.bytes = buffer(std::string(0x1000, '\x90'));
  mapping.tsc_from = 77;
  bundle.code.push_back(mapping);
  trace::Sideband record;
  record.kind = trace::SidebandKind::EXIT;
  record.tsc = 99;
  record.pid = record.tid = 100;
  record.value = 139;
  bundle.sideband.push_back(record);
  return bundle;
}

// Appends a chunk of this type and text to the file's bytes. The result has no index.
inline std::string with_chunk(std::string bytes, ptk::ChunkType type, const std::string& text) {
  ptk::ChunkHeader header;
  header.type = static_cast<std::uint32_t>(type);
  header.stored_size = header.plain_size = text.size();
  header.payload_check = ptk::crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  std::vector<std::uint8_t> head;
  ptk::append_header(head, header);
  bytes.append(head.begin(), head.end());
  bytes += text;
  bytes.append(ptk::padded(text.size()) - text.size(), '\0');
  return bytes;
}

inline base::Bytes as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Returns the names and the unpacked payloads of all chunks.
inline std::string unpacked(const std::string& bytes) {
  std::string text;
  auto list = ptk::list_chunks("file", as_bytes(bytes));
  EXPECT_TRUE(list.ok());
  for (const ptk::IndexEntry& entry : list.value().entries) {
    const auto payload = ptk::read_chunk(as_bytes(bytes), entry);
    EXPECT_TRUE(payload.ok());
    text += ptk::type_name(entry.header.type) + " " + text_of(payload.value()) + "\n";
  }
  return text;
}

}  // namespace ptkit::formats::test
