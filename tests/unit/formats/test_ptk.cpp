#include <gtest/gtest.h>

#include "formats/ptk_writer.h"
#include "formats/registry.h"
#include "unit/formats/scratch.h"

namespace ptkit::formats {
namespace {

using test::Scratch;

trace::TraceBuffer buffer(const std::string& text) {
  return trace::TraceBuffer::from_vector({text.begin(), text.end()});
}

std::string text_of(base::Bytes bytes) { return {bytes.begin(), bytes.end()}; }

// Something in every member.
trace::TraceBundle sample() {
  trace::TraceBundle bundle;
  auto& configuration = bundle.configuration;
  configuration.cpu = {true, true, 6, 143, 8};
  configuration.clock = {300, 2, true, 5, 24, 2400000000, true, 10, 426, ~std::uint64_t{0} - 7};
  configuration.rtit_ctl = 0x2a08;
  configuration.rtit_ctl_known = true;
  configuration.ranges[1] = {trace::RangeKind::FILTER, 0x1000, 0x1fff};
  bundle.spaces.push_back({100, 0, false});
  bundle.spaces.push_back({200, 0x5000, true});
  bundle.files.push_back({"/bin/a", "00ff", {}, {{"main", 0x40, 12}, {"_Z1fv", 0x50, 0}}});
  bundle.files.push_back({"b \xff.so", "", {}, {}});
  for (int i = 0; i < 2; ++i) {
    trace::Stream stream;
    stream.name = "thread " + std::to_string(i);
    stream.pid = 100;
    stream.tid = 101 + i;
    stream.space = 1;
    stream.data = buffer(test::small_stream() + std::string(static_cast<std::size_t>(i) * 1200000, 'x'));
    bundle.streams.push_back(std::move(stream));
    bundle.threads.push_back({100, 101 + i, "worker"});
  }
  bundle.streams[1].switches = {{5, 100, 102, 1}, {9, trace::kNoId, trace::kNoId, 0}};
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

void expect_equal(const trace::TraceBundle& a, const trace::TraceBundle& b) {
  EXPECT_EQ(a.configuration.cpu.model, b.configuration.cpu.model);
  EXPECT_EQ(a.configuration.clock.time_zero, b.configuration.clock.time_zero);
  EXPECT_EQ(a.configuration.clock.mtc_period, b.configuration.clock.mtc_period);
  EXPECT_EQ(a.configuration.clock.tsc_ctc_numerator, b.configuration.clock.tsc_ctc_numerator);
  EXPECT_EQ(a.configuration.rtit_ctl, b.configuration.rtit_ctl);
  EXPECT_EQ(a.configuration.ranges[1].last, b.configuration.ranges[1].last);
  EXPECT_EQ(a.configuration.ranges[1].kind, b.configuration.ranges[1].kind);
  ASSERT_EQ(a.spaces.size(), b.spaces.size());
  EXPECT_EQ(a.spaces[2].cr3, b.spaces[2].cr3);
  EXPECT_FALSE(b.spaces[1].cr3_known);
  ASSERT_EQ(a.files.size(), b.files.size());
  EXPECT_EQ(a.files[0].build_id, b.files[0].build_id);
  ASSERT_EQ(a.files[0].symbols.size(), b.files[0].symbols.size());
  EXPECT_EQ(a.files[0].symbols[1].name, b.files[0].symbols[1].name);
  EXPECT_EQ(a.files[0].symbols[1].file_offset, b.files[0].symbols[1].file_offset);
  ASSERT_EQ(a.streams.size(), b.streams.size());
  for (std::size_t i = 0; i < a.streams.size(); ++i) {
    EXPECT_EQ(a.streams[i].name, b.streams[i].name);
    EXPECT_EQ(a.streams[i].tid, b.streams[i].tid);
    EXPECT_EQ(a.streams[i].cpu, b.streams[i].cpu);
    EXPECT_EQ(a.streams[i].space, b.streams[i].space);
    EXPECT_EQ(text_of(a.streams[i].data.bytes()), text_of(b.streams[i].data.bytes()));
    EXPECT_EQ(a.streams[i].switches.size(), b.streams[i].switches.size());
    EXPECT_EQ(a.streams[i].losses.size(), b.streams[i].losses.size());
  }
  ASSERT_EQ(a.code.size(), b.code.size());
  for (std::size_t i = 0; i < a.code.size(); ++i) {
    EXPECT_EQ(a.code[i].address, b.code[i].address);
    EXPECT_EQ(a.code[i].size, b.code[i].size);
    EXPECT_EQ(a.code[i].tsc_from, b.code[i].tsc_from);
    EXPECT_EQ(a.code[i].tsc_to, b.code[i].tsc_to);
    EXPECT_EQ(a.code[i].file, b.code[i].file);
    EXPECT_EQ(text_of(a.code[i].bytes.bytes()), text_of(b.code[i].bytes.bytes()));
  }
  ASSERT_EQ(a.threads.size(), b.threads.size());
  EXPECT_EQ(a.threads[1].name, b.threads[1].name);
}

class Ptk : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = scratch_.at("sample.ptk");
    ASSERT_TRUE(save_ptk(sample(), path_).ok());
    bytes_ = test::read_all(path_);
  }

  base::Result<trace::TraceBundle> reopen(const std::string& bytes) {
    return open(scratch_.write("changed.ptk", bytes), {});
  }

  // Offset of the chunk of this type, the n-th one.
  std::size_t chunk(const std::string& type, int n = 0) const {
    std::size_t at = 0;
    for (int i = 0; i <= n; ++i) at = bytes_.find("PTKC" + type, at + 1);
    return at;
  }

  // The file with a chunk of this type and text before its end, without an index.
  static std::string with_chunk(std::string bytes, ptk::ChunkType type, const std::string& text) {
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

  Scratch scratch_;
  std::string path_;
  std::string bytes_;
};

TEST_F(Ptk, ReadsWhatWasWritten) {
  const auto bundle = open(path_, {});
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  EXPECT_EQ(bundle.value().format, "ptk");
  EXPECT_TRUE(bundle.value().warnings.empty()) << bundle.value().warnings[0];
  expect_equal(sample(), bundle.value());
  const auto& exit = bundle.value().sideband.back();
  EXPECT_EQ(exit.kind, trace::SidebandKind::EXIT);
  EXPECT_EQ(exit.value, 139);
  EXPECT_NE(bundle.value().metadata.find("\"clock\""), std::string::npos);
}

TEST_F(Ptk, ReadsWithoutIndex) {
  const auto bundle = reopen(bytes_.substr(0, bytes_.size() - 1));
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  expect_equal(sample(), bundle.value());
  ASSERT_EQ(bundle.value().warnings.size(), 1U);
  EXPECT_NE(bundle.value().warnings[0].find("no sound index"), std::string::npos);
}

TEST_F(Ptk, AnyTruncationOpensOrSaysWhy) {
  for (std::size_t size = 0; size < bytes_.size(); size += size < 4000 ? 7 : 97) {
    const auto bundle = reopen(bytes_.substr(0, size));
    if (bundle.ok()) {
      EXPECT_FALSE(bundle.value().warnings.empty()) << size;
    } else {
      EXPECT_FALSE(bundle.failure().detail.empty());
      EXPECT_LT(size, 600U) << bundle.failure().detail;  // once META is there, it opens
    }
  }
}

TEST_F(Ptk, FlippedBitsAreNoticed) {
  for (std::size_t at = 0; at < bytes_.size(); at += at < 2000 ? 5 : 131) {
    std::string changed = bytes_;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    const auto bundle = reopen(changed);
    if (bundle.ok()) static_cast<void>(bundle.value().streams.size());
  }
  std::string changed = bytes_;
  changed[chunk("DATA") + ptk::kChunkHeaderBytes + 20] ^= 1;
  const auto bundle = reopen(changed);
  ASSERT_TRUE(bundle.ok());
  ASSERT_EQ(bundle.value().warnings.size(), 2U);  // the chunk, and what is then missing from the stream
  EXPECT_NE(bundle.value().warnings[0].find("checksum"), std::string::npos);
  EXPECT_EQ(bundle.value().streams[1].losses.size(), 2U);
}

TEST_F(Ptk, DamageInTheMiddleCostsOneChunk) {
  std::string changed = bytes_.substr(0, bytes_.size() - 1);
  changed.replace(chunk("CODE"), 8, "XXXXXXXX");
  const auto bundle = reopen(changed);
  ASSERT_TRUE(bundle.ok());
  EXPECT_TRUE(bundle.value().code.empty());
  EXPECT_EQ(bundle.value().streams.size(), 2U);
  EXPECT_EQ(bundle.value().streams[1].data.size(), sample().streams[1].data.size());
  EXPECT_NE(bundle.value().warnings[1].find("are no chunk"), std::string::npos);
}

TEST_F(Ptk, OtherVersions) {
  std::string newer = bytes_;
  newer[8] = 2;
  const auto refused = reopen(newer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().status, base::Status::UNSUPPORTED);
  EXPECT_NE(refused.failure().detail.find("version 2.0"), std::string::npos);
  EXPECT_NE(refused.failure().detail.find("pip install -U ptkit"), std::string::npos);
  newer[8] = 1;
  newer[10] = 9;
  EXPECT_TRUE(reopen(newer).ok());
}

TEST_F(Ptk, UnknownChunksAreSkippedWithAWarning) {
  const std::string cut = bytes_.substr(0, chunk("INDX"));
  const auto type = static_cast<ptk::ChunkType>(ptk::fourcc("NEWS"));
  const auto bundle = reopen(with_chunk(with_chunk(cut, type, "one"), type, "two"));
  ASSERT_TRUE(bundle.ok());
  ASSERT_EQ(bundle.value().warnings.size(), 2U);
  EXPECT_NE(bundle.value().warnings[1].find("type NEWS"), std::string::npos);
}

TEST_F(Ptk, MalformedMembersAreNamed) {
  const std::string cut = bytes_.substr(0, chunk("INDX"));
  const auto failure = [&](ptk::ChunkType type, const std::string& text) {
    const auto bundle = reopen(with_chunk(cut, type, text));
    return bundle.ok() ? std::string("(it opened)") : bundle.failure().detail;
  };
  EXPECT_NE(failure(ptk::ChunkType::META, "{").find("META chunk at byte"), std::string::npos);
  EXPECT_NE(failure(ptk::ChunkType::META, R"({"clock": 1})").find("clock: expected an object"),
            std::string::npos);
  EXPECT_NE(failure(ptk::ChunkType::META, R"({"clock": {"mtc_period": 16}})")
                .find("clock.mtc_period: expected at most 15"),
            std::string::npos);
  EXPECT_NE(failure(ptk::ChunkType::STREAM, R"({"name": 1})").find("name: expected text"), std::string::npos);
  EXPECT_NE(failure(ptk::ChunkType::SPACE, "[]").find("the document: expected an object"), std::string::npos);
  EXPECT_NE(failure(ptk::ChunkType::FILE, "{}").find("path: expected text"), std::string::npos);
  EXPECT_NE(failure(ptk::ChunkType::SIDEBAND, "[{}]").find("[0].kind: expected text"), std::string::npos);
}

TEST_F(Ptk, MissingMembersAreSaid) {
  const std::string header = bytes_.substr(0, ptk::kFileHeaderBytes);
  const auto none = reopen(header);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.failure().detail.find("no META chunk"), std::string::npos);
  // Data without a STRM chunk is a stream all the same.
  const std::string meta = with_chunk(header, ptk::ChunkType::META, "{}");
  const auto bare = reopen(with_chunk(meta, ptk::ChunkType::DATA, test::small_stream()));
  ASSERT_TRUE(bare.ok()) << bare.failure().detail;
  ASSERT_EQ(bare.value().streams.size(), 1U);
  EXPECT_NE(bare.value().warnings.back().find("no STRM chunk"), std::string::npos);
}

TEST_F(Ptk, UnfinishedRecordingsOpen) {
  const auto path = scratch_.at("unfinished.ptk");
  {
    auto writer = PtkWriter::create(path);
    ASSERT_TRUE(writer.ok());
    writer.value().info({});
    writer.value().stream(0, trace::Stream{});
    const std::string data = test::small_stream();
    writer.value().data(0, {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()});
    writer.value().flush();
    writer.value().data(0, {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()});
  }
  const auto bundle = open(path, {});
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  EXPECT_EQ(bundle.value().streams[0].data.size(), test::small_stream().size());
  EXPECT_EQ(bundle.value().warnings.size(), 1U);
}

TEST(PtkWriter, SaysWhyItCannotWrite) {
  const Scratch scratch;
  const auto missing = PtkWriter::create(scratch.at("no/such/folder.ptk"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.failure().status, base::Status::IO_ERROR);
  auto full = PtkWriter::create("/dev/full");
  if (!full.ok()) GTEST_SKIP() << "/dev/full is not there";
  full.value().metadata("{}");
  const auto finished = full.value().finish();
  ASSERT_FALSE(finished.ok());
  EXPECT_NE(finished.failure().detail.find("No space left"), std::string::npos);
}

TEST(PtkFormat, ChecksumIsCrc32c) {
  const std::string text = "123456789";
  EXPECT_EQ(ptk::crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}), 0xe3069283U);
}

}  // namespace
}  // namespace ptkit::formats
