// Bundles of recorders that stopped early, and damaged bundles: the reader reads all valid chunks and reports
// missing bytes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <map>
#include <random>

#include "sample.h"

namespace ptkit::formats {
namespace {

using test::as_bytes;
using test::Scratch;
using test::text_of;

// Incompressible bytes, so that chunks have predictable sizes.
std::string noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

trace::Stream thread(int tid) {
  trace::Stream stream;
  stream.pid = 7;
  stream.tid = tid;
  stream.name = "thread " + std::to_string(tid);
  return stream;
}

RecordingInfo begun() {
  RecordingInfo info;
  info.backend = "step";
  info.command = {"loop"};
  info.begin_ns = 1700000000000000000;
  return info;
}

// Two threads, flushed four times, as a recorder writes them.
class Damage : public ::testing::Test {
 protected:
  static constexpr std::size_t kPart = 1000;
  static constexpr int kFlushes = 4;

  void SetUp() override {
    auto created = PtkWriter::create(scratch_.at("a.ptk"));
    ASSERT_TRUE(created.ok());
    PtkWriter& writer = created.value();
    writer.info(begun());
    for (int i = 0; i < 2; ++i) writer.stream(static_cast<std::uint32_t>(i), thread(10 + i));
    for (unsigned flush = 0; flush < kFlushes; ++flush) {
      for (unsigned i = 0; i < 2; ++i) {
        const std::string part = noise(kPart, flush * 2 + i);
        data_[i] += part;
        writer.data(i, as_bytes(part));
      }
      writer.flush();
    }
    unfinished_ = test::read_all(writer.path());  // as after SIGKILL
    RecordingInfo info = begun();
    info.exit_status = 0;
    writer.info(info);
    ASSERT_TRUE(writer.finish().ok());
    finished_ = test::read_all(writer.path());
  }

  base::Result<trace::TraceBundle> reopen(const std::string& bytes) {
    return open(scratch_.write("changed.ptk", bytes), {});
  }

  // Returns the bytes of each stream in complete chunks.
  static std::map<std::uint32_t, std::size_t> whole_bytes(const std::string& file) {
    std::map<std::uint32_t, std::size_t> sizes;
    const auto list = ptk::list_chunks("file", as_bytes(file));
    for (const auto& entry : list.value().entries)
      if (ptk::type_name(entry.header.type) == "DATA") sizes[entry.header.id] += entry.header.plain_size;
    return sizes;
  }

  Scratch scratch_;
  std::string data_[2];
  std::string unfinished_;
  std::string finished_;
};

TEST_F(Damage, ReadsAllFlushedDataOfAKilledRecorder) {
  const auto opened = reopen(unfinished_);
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  const trace::TraceBundle& bundle = opened.value();
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(text_of(bundle.streams[i].data.bytes()), data_[i]);
  ASSERT_EQ(bundle.warnings.size(), 2U);
  EXPECT_EQ(bundle.warnings[0].code, WarningCode::RECORDING_UNFINISHED);
  const std::string& saved = bundle.warnings[0].arguments.at(0);
  EXPECT_NE(saved.find(" UTC, "), std::string::npos) << saved;
  EXPECT_NE(saved.find(" s after it began"), std::string::npos) << saved;
  EXPECT_TRUE(warns(bundle, WarningCode::PROGRAM_RUNNING, 2, 2));
}

TEST_F(Damage, ReadsCompleteChunksOfACutFile) {
  bool opens = false;
  for (std::size_t size = 0; size < unfinished_.size(); size += 13) {
    const std::string cut = unfinished_.substr(0, size);
    const auto opened = reopen(cut);
    if (!opened.ok()) {
      EXPECT_FALSE(opens) << size << opened.failure().detail;  // the first chunk is not there yet
      EXPECT_FALSE(opened.failure().detail.empty());
      continue;
    }
    opens = true;
    const trace::TraceBundle& bundle = opened.value();
    EXPECT_TRUE(warns(bundle, WarningCode::RECORDING_UNFINISHED) ||
                warns(bundle, WarningCode::RECORDING_NOT_SAVED));
    auto sizes = whole_bytes(cut);
    for (std::size_t i = 0; i < bundle.streams.size(); ++i) {
      const std::string got = text_of(bundle.streams[i].data.bytes());
      EXPECT_EQ(got, data_[i].substr(0, sizes[static_cast<std::uint32_t>(i)]));
    }
  }
  EXPECT_TRUE(opens);
}

TEST_F(Damage, LosesNothingByACutInTheIndex) {
  const std::size_t index = finished_.rfind("PTKCINDX");
  for (std::size_t size = index + ptk::kChunkHeaderBytes; size < finished_.size(); size += 5) {
    const auto opened = reopen(finished_.substr(0, size));
    ASSERT_TRUE(opened.ok()) << opened.failure().detail;
    EXPECT_EQ(text_of(opened.value().streams[1].data.bytes()), data_[1]);
    EXPECT_TRUE(warns(opened.value(), WarningCode::CHUNK_INDEX_DAMAGED));
    EXPECT_FALSE(warns(opened.value(), WarningCode::RECORDING_UNFINISHED));
  }
}

// Bytes that cannot be read are losses at their offset.
TEST_F(Damage, ReportsOverwrittenBytesAsLosses) {
  const std::size_t first = finished_.find("PTKCDATA");
  const std::size_t index = finished_.rfind("PTKCINDX");
  for (std::size_t at = 0; at + 8 < finished_.size(); at += 11) {
    std::string changed = finished_;
    for (std::size_t i = 0; i < 8; ++i) changed[at + i] = static_cast<char>(~changed[at + i]);
    const auto opened = reopen(changed);
    if (!opened.ok()) {
      EXPECT_LT(at, first) << opened.failure().detail;
      continue;
    }
    if (at < first || at >= index) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      const trace::Stream& stream = opened.value().streams[i];
      std::uint64_t lost = 0;
      for (const auto& loss : stream.losses) lost += loss.lost_bytes;
      EXPECT_EQ(stream.data.size() + lost, data_[i].size()) << at;
      const auto is_of_stream = [&](const trace::Warning& one) {
        return one.code == WarningCode::STREAM_BYTES_MISSING && one.arguments[1] == std::to_string(i);
      };
      EXPECT_EQ(lost != 0, std::ranges::any_of(opened.value().warnings, is_of_stream)) << at;
      if (lost == 0) {
        EXPECT_EQ(text_of(stream.data.bytes()), data_[i]);
      }
    }
  }
}

// A file system may leave zeros after a power loss.
TEST_F(Damage, SkipsZerosAtTheEnd) {
  const auto opened = reopen(unfinished_ + std::string(5000, '\0'));
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(text_of(opened.value().streams[0].data.bytes()), data_[0]);
  EXPECT_TRUE(warns(opened.value(), WarningCode::CHUNK_BYTES_SKIPPED, 5000, unfinished_.size()));
}

TEST(PtkReader, PutsLossesOfAnEmptyStreamAtItsEnd) {
  const Scratch scratch;
  auto created = PtkWriter::create(scratch.at("a.ptk"));
  ASSERT_TRUE(created.ok());
  PtkWriter& writer = created.value();
  writer.info(begun());
  writer.stream(0, thread(10));
  writer.loss(0, 100, base::Status::BUFFER_FULL);
  ASSERT_TRUE(writer.finish().ok());
  const auto bundle = open(scratch.at("a.ptk"), {});
  ASSERT_TRUE(bundle.ok());
  ASSERT_EQ(bundle.value().streams.size(), 1U);
  ASSERT_EQ(bundle.value().streams[0].losses.size(), 1U);
  EXPECT_EQ(bundle.value().streams[0].losses[0].offset, 0U);
}

TEST(PtkWriter, KeepsOffsetsAndCausesOfLosses) {
  const Scratch scratch;
  auto created = PtkWriter::create(scratch.at("a.ptk"));
  ASSERT_TRUE(created.ok());
  PtkWriter& writer = created.value();
  writer.info({});
  writer.stream(3, thread(1));
  writer.loss(3, 500, base::Status::RING_WRAPPED);
  writer.data(3, as_bytes("first"));
  writer.loss(3, 70, base::Status::RING_WRAPPED);
  writer.data(3, as_bytes("second"));
  writer.loss(3, 0, base::Status::SWITCH_DAMAGED);
  writer.data(3, as_bytes("third"));
  writer.loss(3, 9, base::Status::RING_WRAPPED);
  ASSERT_TRUE(writer.finish().ok());
  const auto check = [&](const std::string& path) {
    const auto opened = open(path, {});
    ASSERT_TRUE(opened.ok()) << opened.failure().detail;
    const trace::Stream& stream = opened.value().streams[0];
    EXPECT_EQ(text_of(stream.data.bytes()), "firstsecondthird");
    ASSERT_EQ(stream.losses.size(), 4U);
    const std::uint64_t offsets[] = {0, 5, 11, 16};
    const std::uint64_t lost[] = {500, 70, 0, 9};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(stream.losses[i].offset, offsets[i]);
      EXPECT_EQ(stream.losses[i].lost_bytes, lost[i]);
    }
    EXPECT_EQ(stream.losses[2].cause, base::Status::SWITCH_DAMAGED);
    EXPECT_FALSE(warns(opened.value(), WarningCode::STREAM_BYTES_MISSING));
    ASSERT_TRUE(save_ptk(opened.value(), scratch.at("again.ptk")).ok());
  };
  check(scratch.at("a.ptk"));
  check(scratch.at("again.ptk"));
}

// Limits files of this process to `bytes`: writing more fails as on a full disk.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileLimit() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    ::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(PtkFullDisk, KeepsCompleteChunksAndTheCause) {
  const Scratch scratch;
  const std::string data = noise(3000000, 1);
  auto created = PtkWriter::create(scratch.at("full.ptk"));
  ASSERT_TRUE(created.ok());
  PtkWriter& writer = created.value();
  {
    const FileLimit limit(2500000);
    writer.info(begun());
    writer.stream(0, thread(1));
    writer.data(0, as_bytes(data));
    writer.flush();
    ASSERT_TRUE(writer.failure());
    const std::string first = writer.failure()->detail;
    writer.flush();
    writer.data(0, as_bytes(data));
    EXPECT_EQ(writer.failure()->detail, first);
    const auto finished = writer.finish();
    ASSERT_FALSE(finished.ok());
    EXPECT_EQ(finished.failure().status, base::Status::IO_ERROR);
    EXPECT_EQ(finished.failure().detail, first);
    EXPECT_NE(first.find("full.ptk: cannot write: File too large"), std::string::npos) << first;
  }
  const auto opened = open(scratch.at("full.ptk"), {});
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  EXPECT_EQ(text_of(opened.value().streams[0].data.bytes()), data.substr(0, 2U << 20U));
  EXPECT_TRUE(warns(opened.value(), WarningCode::RECORDING_FAILED_AT, "cannot write: File too large"));
  EXPECT_FALSE(warns(opened.value(), WarningCode::CHUNK_BYTES_SKIPPED));
}

TEST(PtkFullDisk, KeepsChunksWithoutSpaceForTheIndex) {
  const Scratch scratch;
  auto created = PtkWriter::create(scratch.at("full.ptk"));
  ASSERT_TRUE(created.ok());
  PtkWriter& writer = created.value();
  std::size_t written = 0;
  {
    const FileLimit limit(5000);
    writer.info(begun());
    writer.stream(0, thread(1));
    for (; !writer.failure(); ++written) {
      writer.data(0, as_bytes("x"));
      writer.flush();
    }
    ASSERT_FALSE(writer.finish().ok());
  }
  const std::string file = test::read_all(scratch.at("full.ptk"));
  EXPECT_LE(file.size(), 5000U);
  const auto opened = open(scratch.at("full.ptk"), {});
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  EXPECT_GE(opened.value().streams[0].data.size(), written - 1);
  EXPECT_TRUE(warns(opened.value(), WarningCode::RECORDING_UNFINISHED));
  EXPECT_FALSE(warns(opened.value(), WarningCode::CHUNK_CUT));  // it was cut after its last whole chunk
}

TEST(PtkFullDisk, LeavesNoFileWithoutSpaceForTheHeader) {
  const Scratch scratch;
  {
    const FileLimit limit(4);
    auto created = PtkWriter::create(scratch.at("full.ptk"));
    ASSERT_TRUE(created.ok());
    created.value().metadata("{}");
    const auto finished = created.value().finish();
    ASSERT_FALSE(finished.ok());
    EXPECT_NE(finished.failure().detail.find("full.ptk: cannot write: File too large"), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(PtkWriter, NamesRecordingsAtOnceAndOtherFilesAtTheirEnd) {
  const Scratch scratch;
  auto recording = PtkWriter::create(scratch.at("recording.ptk"));
  auto other = PtkWriter::create(scratch.at("other.ptk"), {.naming = ptk::Naming::AT_ITS_END});
  ASSERT_TRUE(recording.ok() && other.ok());
  EXPECT_TRUE(std::filesystem::exists(scratch.at("recording.ptk")));
  EXPECT_FALSE(std::filesystem::exists(scratch.at("other.ptk")));
  EXPECT_TRUE(other.value().finish().ok());
  EXPECT_TRUE(std::filesystem::exists(scratch.at("other.ptk")));
}

TEST(PtkWriter, FailsInAMissingFolder) {
  const Scratch scratch;
  const auto missing = PtkWriter::create(scratch.at("no/such/folder.ptk"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.failure().status, base::Status::IO_ERROR);
}

TEST(PtkWriter, BoundsMemoryOfManyStreams) {
  const Scratch scratch;
  auto created = PtkWriter::create(scratch.at("many.ptk"));
  ASSERT_TRUE(created.ok());
  const std::string part = noise(100000, 5);
  for (std::uint32_t i = 0; i < 400; ++i) created.value().data(i, as_bytes(part));
  // 40 MB were written without flush(): the file has all but 16 MiB.
  EXPECT_GE(test::read_all(created.value().path()).size(), 40000000U - (17U << 20U));
  created.value().metadata("{}");
  ASSERT_TRUE(created.value().finish().ok());
  const auto opened = open(scratch.at("many.ptk"), {});
  ASSERT_TRUE(opened.ok());
  for (const auto& stream : opened.value().streams) EXPECT_EQ(text_of(stream.data.bytes()), part);
}

}  // namespace
}  // namespace ptkit::formats
