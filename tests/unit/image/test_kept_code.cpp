// Decoded code that is kept in a folder: what comes back, what is refused, and what several writers do.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "image/code_folder.h"

namespace ptkit::image {
namespace {

namespace fs = std::filesystem;
using insn::ExecMode;
using insn::Insn;

const std::string kId = "0123456789abcdef0123456789abcdef01234567";

class KeptCodeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "ptkit-kept-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    (void)::chmod(folder_.c_str(), 0700);
    fs::remove_all(folder_);
  }
  [[nodiscard]] CodeFolder folder() const { return CodeFolder(folder_ + "/code"); }
  [[nodiscard]] fs::path only_file() const {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/code"), fs::directory_iterator()), 1);
    return fs::directory_iterator(folder_ + "/code")->path();
  }

  std::string folder_;
};

struct Placed {
  std::uint64_t offset;
  std::vector<std::uint8_t> code;
};

// All near forms, at the ends of lines and pages, too.
const std::vector<Placed> kCode64 = {
    {0, {0x90}},
    {1, {0x48, 0x89, 0xE5}},
    {60, {0x48, 0xB8, 1, 2, 3, 4, 5, 6, 7, 8}},    // goes on in the next line
    {0x1000 - 2, {0x0F, 0x1F, 0x44, 0x00, 0x00}},  // and in the next page
    {0x1003, {0x74, 0xF0}},
    {0x1005, {0x0F, 0x84, 0x10, 0x20, 0x30, 0x40}},
    {0x100B, {0xEB, 0x7F}},
    {0x100D, {0xE9, 0xFF, 0xFF, 0xFF, 0xFF}},
    {0x1012, {0xE8, 0x00, 0x01, 0x00, 0x80}},
    {0x1017, {0xC3}},
    {0x1018, {0xC2, 0x08, 0x00}},
    {0x101B, {0xFF, 0xE0}},
    {0x101D, {0xFF, 0x15, 1, 2, 3, 4}},
    {0x9003F, {0x66, 0x66, 0x2E, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0}},
};

KeptLines lines_of(const std::vector<Placed>& code, ExecMode mode = ExecMode::BITS64) {
  KeptLines lines(mode);
  for (const Placed& one : code) lines.add(one.offset, one.code);
  return lines;
}

bool recall(const KeptCode& kept, std::uint64_t offset, base::Bytes now, Insn& out) {
  const KeptLine* line = kept.line(offset);
  return line != nullptr && line->recall(offset, kept.mode(), now, out);
}

void expect_all(const KeptCode& kept, const std::vector<Placed>& code) {
  for (const Placed& one : code) {
    // With anything behind it, and alone.
    for (const std::size_t more : {0U, 1U, 20U}) {
      std::vector<std::uint8_t> now = one.code;
      now.insert(now.end(), more, 0xCC);
      Insn want;
      Insn got;
      ASSERT_EQ(insn::decode_exactly(kept.mode(), one.code, want), base::Status::OK);
      ASSERT_TRUE(recall(kept, one.offset, now, got)) << one.offset;
      EXPECT_EQ(got.size, want.size);
      EXPECT_EQ(got.cls, want.cls);
      EXPECT_EQ(got.kind, want.kind);
      EXPECT_EQ(got.rep, want.rep);
      EXPECT_EQ(got.displacement, want.displacement);
      EXPECT_EQ(got.target_bits, want.target_bits);
      EXPECT_EQ(got.absolute, want.absolute);
    }
  }
}

TEST_F(KeptCodeTest, ComesBack) {
  KeptLines lines = lines_of(kCode64);
  EXPECT_EQ(lines.instructions(), kCode64.size());
  ASSERT_TRUE(folder().save(kId, lines, ExecMode::BITS64));
  const auto kept = folder().open(kId, ExecMode::BITS64);
  ASSERT_NE(kept, nullptr);
  expect_all(*kept, kCode64);
  EXPECT_EQ(folder().open(kId, ExecMode::BITS32), nullptr);
  EXPECT_EQ(folder().open(std::string(40, 'a'), ExecMode::BITS64), nullptr);
}

TEST_F(KeptCodeTest, OtherBytesAreNotBelieved) {
  KeptLines lines = lines_of(kCode64);
  ASSERT_TRUE(folder().save(kId, lines, ExecMode::BITS64));
  const auto kept = folder().open(kId, ExecMode::BITS64);
  ASSERT_NE(kept, nullptr);
  for (const Placed& one : kCode64) {
    Insn insn;
    for (std::size_t at = 0; at < one.code.size(); ++at) {
      std::vector<std::uint8_t> now = one.code;
      now[at] ^= 0x10;
      EXPECT_FALSE(recall(*kept, one.offset, now, insn));
      // The code ends inside the instruction.
      EXPECT_FALSE(recall(*kept, one.offset, base::Bytes(one.code).first(at), insn));
    }
    EXPECT_FALSE(recall(*kept, one.offset + 0x2000000, one.code, insn));
  }
}

TEST_F(KeptCodeTest, OtherModes) {
  const std::vector<Placed> code = {{7, {0x40}}, {8, {0x0F, 0x84, 1, 2, 3, 4}}, {40, {0xE8, 1, 2, 3, 0xF4}}};
  KeptLines lines = lines_of(code, ExecMode::BITS32);
  ASSERT_TRUE(folder().save(kId, lines, ExecMode::BITS32));
  expect_all(*folder().open(kId, ExecMode::BITS32), code);
  // 16-bit displacements are decoded again.
  KeptLines small = lines_of({{0, {0xE8, 1, 2}}, {3, {0xEB, 0x10}}}, ExecMode::BITS16);
  EXPECT_EQ(small.instructions(), 1u);
}

TEST_F(KeptCodeTest, WhatEventsBindToIsNotKept) {
  EXPECT_EQ(lines_of({{0, {0x0F, 0x05}},
                      {2, {0xF3, 0xA4}},
                      {4, {0xCC}},
                      {5, {0xF4}},
                      {6, {0xE2, 0x01}},
                      {8, {0x0F, 0x22, 0xD8}},
                      {11, {0xFF, 0x28}},
                      {13, {0x06}}})
                .instructions(),
            0u);
}

TEST_F(KeptCodeTest, MergesWithWhatIsThere) {
  KeptLines first = lines_of({{0, {0x90}}, {10, {0x48, 0x89, 0xE5}}});
  KeptLines second = lines_of({{10, {0x48, 0x01, 0xE5}}, {5000, {0xC3}}});
  ASSERT_TRUE(folder().save(kId, first, ExecMode::BITS64));
  ASSERT_TRUE(folder().save(kId, second, ExecMode::BITS64));
  const auto kept = folder().open(kId, ExecMode::BITS64);
  // Where they differ, what was decoded last stays.
  expect_all(*kept, {{0, {0x90}}, {10, {0x48, 0x01, 0xE5}}, {5000, {0xC3}}});
  Insn insn;
  EXPECT_FALSE(recall(*kept, 10, std::vector<std::uint8_t>{0x48, 0x89, 0xE5}, insn));
}

std::vector<char> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Whatever byte is changed: what is still given is right.
TEST_F(KeptCodeTest, DamageIsNoticed) {
  KeptLines lines = lines_of(kCode64);
  ASSERT_TRUE(folder().save(kId, lines, ExecMode::BITS64));
  const fs::path path = only_file();
  const std::vector<char> good = read_file(path);
  for (std::size_t at = 0; at < good.size(); at += at < 96 ? 1 : 29) {
    std::vector<char> bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x21);
    write_file(path, bad);
    const auto kept = folder().open(kId, ExecMode::BITS64);
    if (kept == nullptr) continue;
    (void)kept->lines();
    std::size_t found = 0;
    for (const Placed& one : kCode64) {
      Insn got;
      Insn want;
      if (!recall(*kept, one.offset, one.code, got)) continue;
      ++found;
      (void)insn::decode_exactly(ExecMode::BITS64, one.code, want);
      EXPECT_EQ(got.size, want.size);
      EXPECT_EQ(got.cls, want.cls);
      EXPECT_EQ(got.displacement, want.displacement);
    }
    EXPECT_LT(found, kCode64.size()) << "byte " << at << " is not checked";
  }
  for (std::size_t size = 0; size < good.size(); size += 61) {
    write_file(path, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_EQ(folder().open(kId, ExecMode::BITS64), nullptr);
  }
  // It is written anew.
  ASSERT_TRUE(folder().save(kId, lines, ExecMode::BITS64));
  expect_all(*folder().open(kId, ExecMode::BITS64), kCode64);
}

TEST_F(KeptCodeTest, WritersAtOnce) {
  std::vector<std::thread> writers;
  for (unsigned writer = 0; writer < 4; ++writer) {
    writers.emplace_back([this, writer] {
      for (unsigned round = 0; round < 10; ++round) {
        KeptLines lines = lines_of({{std::uint64_t{writer} << 12U, {0x90}}, {1, {0xC3}}});
        EXPECT_TRUE(folder().save(kId, lines, ExecMode::BITS64));
        const auto kept = folder().open(kId, ExecMode::BITS64);
        ASSERT_NE(kept, nullptr);
        Insn insn;
        EXPECT_TRUE(recall(*kept, 1, std::vector<std::uint8_t>{0xC3}, insn));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  (void)only_file();  // nothing temporary is left
}

TEST_F(KeptCodeTest, OldestGoFirst) {
  KeptLines lines = lines_of(kCode64);
  const std::size_t one = lines.file_bytes(kId).size();
  const CodeFolder small(folder_ + "/code", 2 * one + one / 2);
  for (const char digit : {'a', 'b', 'c', 'd'}) {
    const std::string id(40, digit);
    ASSERT_TRUE(small.save(id, lines, ExecMode::BITS64));
    // Times of files are coarse: say which is older.
    const fs::path path = folder_ + "/code/" + id + "-64.code";
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours('z' - digit));
  }
  EXPECT_EQ(small.open(std::string(40, 'a'), ExecMode::BITS64), nullptr);
  EXPECT_EQ(small.open(std::string(40, 'b'), ExecMode::BITS64), nullptr);
  EXPECT_NE(small.open(std::string(40, 'c'), ExecMode::BITS64), nullptr);
  EXPECT_NE(small.open(std::string(40, 'd'), ExecMode::BITS64), nullptr);
}

TEST_F(KeptCodeTest, OddNamesAndPlaces) {
  KeptLines lines = lines_of(kCode64);
  for (const char* id : {"", "../../../etc/passwd", "ABCDEF0123", "12/34567890", "1234"})
    EXPECT_FALSE(folder().save(id, lines, ExecMode::BITS64)) << id;
  EXPECT_FALSE(fs::exists(folder_ + "/code"));
  EXPECT_FALSE(CodeFolder("").save(kId, lines, ExecMode::BITS64));
  EXPECT_EQ(CodeFolder("").open(kId, ExecMode::BITS64), nullptr);
  write_file(folder_ + "/file", {'x'});
  EXPECT_FALSE(CodeFolder(folder_ + "/file/code").save(kId, lines, ExecMode::BITS64));
  EXPECT_EQ(CodeFolder(folder_ + "/file/code").open(kId, ExecMode::BITS64), nullptr);
}

TEST_F(KeptCodeTest, FolderOfTheUser) {
  const auto with = [](const char* own, const char* caches, const char* home) {
    const std::pair<const char*, const char*> all[] = {
        {"PTKIT_CACHE", own}, {"XDG_CACHE_HOME", caches}, {"HOME", home}};
    std::vector<std::pair<const char*, std::string>> before;
    for (const auto& [name, value] : all) {
      if (const char* old = std::getenv(name)) before.emplace_back(name, old);
      value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
    }
    std::string path = CodeFolder::of_user().path();
    for (const auto& [name, value] : all) ::unsetenv(name);
    for (const auto& [name, value] : before) ::setenv(name, value.c_str(), 1);
    return path;
  };
  EXPECT_EQ(with("/x", "/y", "/z"), "/x/code");
  EXPECT_EQ(with("", "/y", "/z"), "");
  EXPECT_EQ(with(nullptr, "/y", "/z"), "/y/ptkit/code");
  EXPECT_EQ(with(nullptr, "relative", "/z"), "/z/.cache/ptkit/code");
  EXPECT_EQ(with(nullptr, nullptr, "/z"), "/z/.cache/ptkit/code");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
}

}  // namespace
}  // namespace ptkit::image
