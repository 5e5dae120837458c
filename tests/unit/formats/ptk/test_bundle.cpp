#include <gtest/gtest.h>

#include "sample.h"

namespace ptkit::formats {
namespace {

using test::sample;
using test::Scratch;
using test::text_of;
using test::with_chunk;

void expect_equal(const trace::TraceBundle& a, const trace::TraceBundle& b) {
  EXPECT_EQ(a.configuration.cpu.model, b.configuration.cpu.model);
  EXPECT_EQ(a.configuration.clock.time_zero, b.configuration.clock.time_zero);
  EXPECT_EQ(a.configuration.clock.time_cycles, b.configuration.clock.time_cycles);
  EXPECT_EQ(a.configuration.clock.time_mask, b.configuration.clock.time_mask);
  EXPECT_EQ(a.configuration.clock.mtc_period, b.configuration.clock.mtc_period);
  EXPECT_EQ(a.configuration.clock.tsc_ctc_numerator, b.configuration.clock.tsc_ctc_numerator);
  EXPECT_EQ(a.configuration.rtit_ctl, b.configuration.rtit_ctl);
  EXPECT_EQ(a.configuration.ranges[1].last, b.configuration.ranges[1].last);
  EXPECT_EQ(a.configuration.ranges[1].kind, b.configuration.ranges[1].kind);
  ASSERT_EQ(a.configuration.space_ranges.size(), b.configuration.space_ranges.size());
  for (std::size_t i = 0; i < a.configuration.space_ranges.size(); ++i) {
    EXPECT_EQ(a.configuration.space_ranges[i].space, b.configuration.space_ranges[i].space);
    EXPECT_EQ(a.configuration.space_ranges[i].range.kind, b.configuration.space_ranges[i].range.kind);
    EXPECT_EQ(a.configuration.space_ranges[i].range.last, b.configuration.space_ranges[i].range.last);
  }
  ASSERT_EQ(a.spaces.size(), b.spaces.size());
  EXPECT_EQ(a.spaces[2].cr3, b.spaces[2].cr3);
  EXPECT_FALSE(b.spaces[1].cr3_known);
  ASSERT_EQ(a.files.size(), b.files.size());
  EXPECT_EQ(a.files[0].build_id, b.files[0].build_id);
  ASSERT_EQ(a.files[0].symbols.size(), b.files[0].symbols.size());
  EXPECT_EQ(a.files[0].symbols[1].name, b.files[0].symbols[1].name);
  EXPECT_EQ(a.files[0].symbols[1].file_offset, b.files[0].symbols[1].file_offset);
  EXPECT_EQ(a.files[0].unwind, b.files[0].unwind);
  EXPECT_TRUE(b.files[1].unwind.empty());
  EXPECT_EQ(a.files[0].imports, b.files[0].imports);
  EXPECT_TRUE(b.files[1].imports.empty());
  ASSERT_EQ(a.streams.size(), b.streams.size());
  for (std::size_t i = 0; i < a.streams.size(); ++i) {
    EXPECT_EQ(a.streams[i].kind, b.streams[i].kind);
    EXPECT_EQ(a.streams[i].name, b.streams[i].name);
    EXPECT_EQ(a.streams[i].tid, b.streams[i].tid);
    EXPECT_EQ(a.streams[i].cpu, b.streams[i].cpu);
    EXPECT_EQ(a.streams[i].space, b.streams[i].space);
    EXPECT_EQ(text_of(a.streams[i].data.bytes()), text_of(b.streams[i].data.bytes()));
    EXPECT_EQ(a.streams[i].switches_by_offset, b.streams[i].switches_by_offset);
    ASSERT_EQ(a.streams[i].switches.size(), b.streams[i].switches.size());
    for (std::size_t s = 0; s < a.streams[i].switches.size(); ++s) {
      EXPECT_EQ(a.streams[i].switches[s].tsc, b.streams[i].switches[s].tsc);
      EXPECT_EQ(a.streams[i].switches[s].offset, b.streams[i].switches[s].offset);
      EXPECT_EQ(a.streams[i].switches[s].tid, b.streams[i].switches[s].tid);
      EXPECT_EQ(a.streams[i].switches[s].departure, b.streams[i].switches[s].departure);
    }
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

  // Returns the offset of the n-th chunk of this type.
  std::size_t chunk(const std::string& type, int n = 0) const {
    std::size_t at = 0;
    for (int i = 0; i <= n; ++i) at = bytes_.find("PTKC" + type, at + 1);
    return at;
  }

  Scratch scratch_;
  std::string path_;
  std::string bytes_;
};

TEST_F(Ptk, KeepsTheKindOfIpPayloads) {
  trace::TraceBundle bundle = sample();
  EXPECT_EQ(bytes_.find("ip_payloads"), std::string::npos);
  for (const auto payloads :
       {trace::IpPayloads::UNKNOWN, trace::IpPayloads::LINEAR, trace::IpPayloads::EFFECTIVE}) {
    bundle.configuration.ip_payloads = payloads;
    bundle.configuration.cs_base = 0x1000;  // a decoder's option, which is not saved
    ASSERT_TRUE(save_ptk(bundle, path_).ok());
    const auto back = open(path_, {});
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back.value().configuration.ip_payloads, payloads);
    EXPECT_EQ(back.value().configuration.cs_base, 0U);
  }
  const std::string cut = bytes_.substr(0, chunk("META"));
  const auto other = reopen(with_chunk(cut, ptk::ChunkType::META, R"({"ip_payloads": "odd"})"));
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.failure().detail.find("ip_payloads: expected \"linear\" or \"effective\""),
            std::string::npos)
      << other.failure().detail;
}

TEST_F(Ptk, ReadsWhatWasWritten) {
  const auto bundle = open(path_, {});
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  EXPECT_EQ(bundle.value().format, "ptk");
  EXPECT_EQ(bundle.value().warnings, std::vector<trace::Warning>());
  expect_equal(sample(), bundle.value());
  const auto& exit = bundle.value().sideband.back();
  EXPECT_EQ(exit.kind, trace::SidebandKind::EXIT);
  EXPECT_EQ(exit.value, 139);
  EXPECT_NE(bundle.value().metadata.find("\"clock\""), std::string::npos);
}

TEST_F(Ptk, KeepsTheKindOfStreams) {
  trace::TraceBundle bundle = sample();
  bundle.streams[0].kind = trace::StreamKind::BRANCH_RECORDS;
  ASSERT_TRUE(save_ptk(bundle, path_).ok());
  const auto again = open(path_, {});
  ASSERT_TRUE(again.ok()) << again.failure().detail;
  expect_equal(bundle, again.value());
}

// A recorder aligns context switches to stream offsets after the recording.
TEST_F(Ptk, SwitchOffsetsReplaceSwitchTimes) {
  trace::Stream stream;
  stream.data = test::buffer(std::string(100, '\0'));
  stream.switches = {{5, 100, 102, 1}, {9, 100, 103, 1}};
  trace::Stream aligned = stream;
  aligned.losses = {{60, base::Status::RING_WRAPPED, 10}};
  aligned.switches = {{5, 100, 102, 1, 16}, {7, 200, 201, 2, 59}, {9, 100, 103, 1, 60}};
  for (const bool whole : {true, false}) {
    auto writer = PtkWriter::create(scratch_.at("aligned"));
    ASSERT_TRUE(writer.ok());
    writer.value().metadata("{}");
    writer.value().space(1, {100, 0, false});
    writer.value().space(2, {200, 0, false});
    writer.value().stream(0, stream);
    writer.value().data(0, stream.data.bytes().first(60));
    writer.value().loss(0, 10, base::Status::RING_WRAPPED);
    writer.value().data(0, stream.data.bytes().subspan(60));
    if (whole) writer.value().switch_offsets(0, aligned);
    ASSERT_TRUE(writer.value().finish().ok());
    const auto read = open(scratch_.at("aligned"), {});
    ASSERT_TRUE(read.ok());
    const trace::Stream& found = read.value().streams.at(0);
    EXPECT_EQ(found.switches_by_offset, whole);
    const auto& expected = whole ? aligned.switches : stream.switches;
    ASSERT_EQ(found.switches.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found.switches[i].offset, expected[i].offset);
      EXPECT_EQ(found.switches[i].tsc, expected[i].tsc);
      EXPECT_EQ(found.switches[i].tid, expected[i].tid);
      EXPECT_EQ(found.switches[i].space, expected[i].space);
    }
  }
}

// Without "placed_all" the list may be cut by a full disk.
TEST_F(Ptk, IgnoresIncompleteSwitchOffsets) {
  const std::string some = R"("placed": [{"space": 1, "offset": 3, "tsc": 1}])";
  const auto with = [&](const std::string& members) {
    return reopen(with_chunk(bytes_.substr(0, chunk("INDX")), ptk::ChunkType::STREAM, "{" + members + "}"));
  };
  const auto part = with(some);
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part.value().streams[0].switches.size(), sample().streams[0].switches.size());
  const auto all = with(some + R"(, "placed_all": true)");
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all.value().streams[0].switches.size(), 1U);
  EXPECT_EQ(all.value().streams[0].switches[0].offset, 3U);
}

TEST_F(Ptk, RefusesUnknownKindsOfStreams) {
  const auto bundle =
      reopen(with_chunk(bytes_.substr(0, chunk("INDX")), ptk::ChunkType::STREAM, R"({"kind": "smells"})"));
  ASSERT_FALSE(bundle.ok());
  EXPECT_NE(bundle.failure().detail.find("a newer ptkit may know"), std::string::npos)
      << bundle.failure().detail;
}

TEST_F(Ptk, ReadsWithoutIndex) {
  const auto bundle = reopen(bytes_.substr(0, bytes_.size() - 1));
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  expect_equal(sample(), bundle.value());
  ASSERT_EQ(bundle.value().warnings.size(), 1U);
  EXPECT_TRUE(warns(bundle.value(), WarningCode::CHUNK_INDEX_DAMAGED));
}

TEST_F(Ptk, OpensTruncatedFilesOrFailsWithDetail) {
  for (std::size_t size = 0; size < bytes_.size(); size += size < 4000 ? 7 : 97) {
    const auto bundle = reopen(bytes_.substr(0, size));
    if (bundle.ok()) {
      EXPECT_FALSE(bundle.value().warnings.empty()) << size;
    } else {
      EXPECT_FALSE(bundle.failure().detail.empty());
      EXPECT_LT(size, 600U) << bundle.failure().detail;  // a file with META opens
    }
  }
}

TEST_F(Ptk, DetectsFlippedBits) {
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
  ASSERT_EQ(bundle.value().warnings.size(), 2U);  // the chunk, and the bytes missing from the stream
  EXPECT_EQ(bundle.value().warnings[0].code, WarningCode::CHUNK_DAMAGED);
  EXPECT_NE(bundle.value().warnings[0].arguments[0].find("checksum"), std::string::npos);
  EXPECT_EQ(bundle.value().streams[1].losses.size(), 2U);
}

TEST_F(Ptk, LosesOneChunkByDamageInTheMiddle) {
  std::string changed = bytes_.substr(0, bytes_.size() - 1);
  changed.replace(chunk("CODE"), 8, "XXXXXXXX");
  const auto bundle = reopen(changed);
  ASSERT_TRUE(bundle.ok());
  EXPECT_TRUE(bundle.value().code.empty());
  EXPECT_EQ(bundle.value().streams.size(), 2U);
  EXPECT_EQ(bundle.value().streams[1].data.size(), sample().streams[1].data.size());
  EXPECT_TRUE(warns(bundle.value(), WarningCode::CHUNK_BYTES_SKIPPED));
}

TEST_F(Ptk, RefusesOtherMajorVersions) {
  std::string newer = bytes_;
  newer[8] = 2;
  const auto refused = reopen(newer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().status, base::Status::UNSUPPORTED);
  EXPECT_NE(refused.failure().detail.find("version 2." + std::to_string(ptk::kMinor) + " "),
            std::string::npos)
      << refused.failure().detail;
  EXPECT_NE(refused.failure().detail.find("pip install -U ptkit"), std::string::npos);
  newer[8] = 1;
  newer[10] = ptk::kMinor + 1;
  EXPECT_TRUE(reopen(newer).ok());
}

TEST_F(Ptk, SkipsUnknownChunksWithAWarning) {
  const std::string cut = bytes_.substr(0, chunk("INDX"));
  const auto type = static_cast<ptk::ChunkType>(ptk::fourcc("NEWS"));
  const auto bundle = reopen(with_chunk(with_chunk(cut, type, "one"), type, "two"));
  ASSERT_TRUE(bundle.ok());
  ASSERT_EQ(bundle.value().warnings.size(), 2U);
  EXPECT_TRUE(warns(bundle.value(), WarningCode::CHUNK_TYPE_UNKNOWN, "NEWS"));
}

TEST_F(Ptk, LeavesOutTablesOfFunctionsThatAreNoTables) {
  const std::string cut = bytes_.substr(0, chunk("INDX"));
  const auto bundle = reopen(with_chunk(cut, ptk::ChunkType::UNWIND, "\x01\x01"));
  ASSERT_TRUE(bundle.ok());
  EXPECT_TRUE(warns(bundle.value(), WarningCode::CHUNK_RECORD_CUT, "UNWD"));
  EXPECT_EQ(bundle.value().files[0].unwind, sample().files[0].unwind);
}

TEST_F(Ptk, LeavesOutImportSlotsThatAreNone) {
  const std::string cut = bytes_.substr(0, chunk("INDX"));
  const auto bundle = reopen(with_chunk(cut, ptk::ChunkType::IMPORTS, "\x01\x01"));
  ASSERT_TRUE(bundle.ok());
  EXPECT_TRUE(warns(bundle.value(), WarningCode::CHUNK_RECORD_CUT, "IMPT"));
  EXPECT_EQ(bundle.value().files[0].imports, sample().files[0].imports);
}

TEST_F(Ptk, NamesMalformedMembers) {
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
  std::string ranges;
  for (int i = 0; i < 129; ++i)
    ranges += std::string(i == 0 ? "" : ", ") + R"({"space": 1, "kind": 1, "first": 0, "last": 1})";
  EXPECT_NE(failure(ptk::ChunkType::META, "{\"space_ranges\": [" + ranges + "]}")
                .find("space_ranges: too many ranges of one address space"),
            std::string::npos);
  EXPECT_NE(failure(ptk::ChunkType::STREAM, R"({"name": 1})").find("name: expected text"), std::string::npos);
  EXPECT_NE(failure(ptk::ChunkType::SPACE, "[]").find("the document: expected an object"), std::string::npos);
  EXPECT_NE(failure(ptk::ChunkType::FILE, "{}").find("path: expected text"), std::string::npos);
  EXPECT_NE(failure(ptk::ChunkType::SIDEBAND, "[{}]").find("[0].kind: expected text"), std::string::npos);
}

TEST_F(Ptk, ReportsMissingMetaAndStreamChunks) {
  const std::string header = bytes_.substr(0, ptk::kFileHeaderBytes);
  const auto none = reopen(header);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.failure().detail.find("no readable META chunk"), std::string::npos);
  // Data without a STRM chunk is a stream all the same.
  const std::string meta = with_chunk(header, ptk::ChunkType::META, "{}");
  const auto bare = reopen(with_chunk(meta, ptk::ChunkType::DATA, test::small_stream()));
  ASSERT_TRUE(bare.ok()) << bare.failure().detail;
  ASSERT_EQ(bare.value().streams.size(), 1U);
  EXPECT_TRUE(warns(bare.value(), WarningCode::STREAM_NOT_DESCRIBED, 0));
}

TEST_F(Ptk, ChunksThatDoNotFitAreWarnings) {
  const std::string cut = bytes_.substr(0, chunk("INDX"));
  const auto with = [&](ptk::ChunkType type, const std::string& text) {
    const auto bundle = reopen(with_chunk(cut, type, text));
    return bundle.ok() ? bundle.value() : trace::TraceBundle{};
  };
  EXPECT_TRUE(
      warns(with(ptk::ChunkType::CODE, "no record"), WarningCode::CHUNK_RECORD_CUT, "CODE", cut.size()));
  EXPECT_TRUE(
      warns(with(ptk::ChunkType::SYMBOLS, "none"), WarningCode::CHUNK_RECORD_CUT, "SYMB", cut.size()));
  EXPECT_TRUE(warns(with(ptk::ChunkType::STREAM, R"({"name": "x", "space": 77})"),
                    WarningCode::REFERENCES_DROPPED, 1));
  const std::string bare = with_chunk(bytes_.substr(0, ptk::kFileHeaderBytes), ptk::ChunkType::META, "{}");
  const std::string once = with_chunk(bare, ptk::ChunkType::DATA, "data");
  const auto twice = reopen(with_chunk(once, ptk::ChunkType::DATA, "data"));
  ASSERT_TRUE(twice.ok()) << twice.failure().detail;
  EXPECT_TRUE(warns(twice.value(), WarningCode::CHUNK_REPEATED, once.size(), 0));
}

TEST(PtkFormat, ChecksumIsCrc32c) {
  const std::string text = "123456789";
  EXPECT_EQ(ptk::crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}), 0xe3069283U);
}

}  // namespace
}  // namespace ptkit::formats
