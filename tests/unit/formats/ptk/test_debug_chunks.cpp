// Damaged debug information in bundles: what is left of it is used, and a warning says the rest.
#include <gtest/gtest.h>

#include "code/image/elf/debug_sections.h"
#include "code/source/dwarf/debug_info.h"
#include "sample.h"
#include "unit/support/makers/dwarf_maker.h"

namespace ptkit::formats {
namespace {

using ptkit::test::DwarfMaker;
using test::as_bytes;

// Debug information of a function with an inlined one, as recorders keep it.
std::string debug_information() {
  DwarfMaker maker;
  maker.has_line_section(true);
  const std::uint32_t inner = maker.named("inner");
  maker.function("outer", DwarfMaker::kText, 0x100);
  maker.inlined(inner, DwarfMaker::kText, 0x10, 1);
  maker.end();
  maker.end();
  return code::image::debug_sections(maker.make());
}

class DebugChunks : public ::testing::Test {
 protected:
  // Writes a bundle with this debug information of a file; returns its bytes.
  std::string written(const std::string& debug) {
    auto created = PtkWriter::create(scratch_.at("a.ptk"));
    EXPECT_TRUE(created.ok());
    PtkWriter& writer = created.value();
    RecordingInfo info;
    info.backend = "step";
    writer.info(info);
    writer.stream(0, trace::Stream{});
    trace::ImageFile file;
    file.path = "/bin/a";
    file.debug = test::buffer(debug);
    writer.file(0, file);
    EXPECT_TRUE(writer.finish().ok());
    return test::read_all(writer.path());
  }

  trace::TraceBundle reopened(const std::string& bytes) {
    auto bundle = open(scratch_.write("changed.ptk", bytes), {});
    EXPECT_TRUE(bundle.ok());
    return bundle.ok() ? std::move(bundle.value()) : trace::TraceBundle{};
  }

  static std::vector<ptk::IndexEntry> debug_chunks(const std::string& file) {
    std::vector<ptk::IndexEntry> found;
    const auto list = ptk::list_chunks("file", as_bytes(file));
    for (const ptk::IndexEntry& entry : list.value().entries)
      if (entry.header.type == static_cast<std::uint32_t>(ptk::ChunkType::DEBUG)) found.push_back(entry);
    return found;
  }

  static std::size_t frames_of(const trace::TraceBundle& bundle) {
    if (bundle.files.empty()) return 0;
    const auto info = code::dwarf::DebugInfo::open(bundle.files[0].debug);
    return info == nullptr ? 0 : info->frames_at(DwarfMaker::kText).size();
  }

  test::Scratch scratch_;
};

TEST_F(DebugChunks, AnyChangedByteIsSaid) {
  const std::string debug = debug_information();
  const std::string whole = written(debug);
  EXPECT_EQ(frames_of(reopened(whole)), 2u);
  EXPECT_FALSE(warns(reopened(whole), WarningCode::CHUNK_DAMAGED));
  const auto chunks = debug_chunks(whole);
  ASSERT_EQ(chunks.size(), 1u);
  const std::size_t begin = chunks[0].offset + ptk::kChunkHeaderBytes;
  for (std::size_t at = begin; at < begin + chunks[0].header.stored_size; at += 3) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const trace::TraceBundle bundle = reopened(damaged);
    EXPECT_TRUE(warns(bundle, WarningCode::CHUNK_DAMAGED)) << at;
    EXPECT_EQ(frames_of(bundle), 0u) << at;
  }
}

TEST_F(DebugChunks, ACutFileHasWhatCameBefore) {
  const std::string whole = written(debug_information());
  const auto chunks = debug_chunks(whole);
  ASSERT_EQ(chunks.size(), 1u);
  const std::size_t begin = chunks[0].offset;
  for (std::size_t size = begin; size < begin + ptk::kChunkHeaderBytes + chunks[0].header.stored_size;
       size += 7) {
    const trace::TraceBundle bundle = reopened(whole.substr(0, size));
    EXPECT_TRUE(warns(bundle, WarningCode::RECORDING_NOT_SAVED)) << size;
    EXPECT_EQ(warns(bundle, WarningCode::CHUNK_CUT, "DBUG"), size >= begin + ptk::kChunkHeaderBytes) << size;
    ASSERT_EQ(bundle.files.size(), 1u) << size;
    EXPECT_EQ(bundle.files[0].debug.size(), 0u) << size;
  }
}

// Checksums are right, contents are not: a stranger made it.
TEST_F(DebugChunks, HostileContentsEnd) {
  const std::string debug = debug_information();
  for (std::size_t at = 0; at < debug.size(); at += 5) {
    std::string hostile = debug;
    hostile[at] = static_cast<char>(hostile[at] ^ (1 << at % 8));
    EXPECT_LE(frames_of(reopened(written(hostile))), 3u) << at;
  }
  for (std::size_t size = 0; size < debug.size(); size += 31)
    EXPECT_LE(frames_of(reopened(written(debug.substr(0, size)))), 2u) << size;
}

TEST_F(DebugChunks, PositionsThatDoNotFollowAreReported) {
  const std::string whole = written(debug_information());
  const std::string head = whole.substr(0, debug_chunks(whole).at(0).offset);
  const std::string bytes = test::with_chunk(head, ptk::ChunkType::DEBUG,
                                             "\x7f"
                                             "ELF");
  EXPECT_EQ(reopened(bytes).files.at(0).debug.size(), 4u);
  const trace::TraceBundle bundle = reopened(test::with_chunk(bytes, ptk::ChunkType::DEBUG, "again"));
  EXPECT_TRUE(warns(bundle, WarningCode::CHUNK_RECORD_CUT, "DBUG"));
  EXPECT_EQ(bundle.files.at(0).debug.size(), 4u);
}

}  // namespace
}  // namespace ptkit::formats
