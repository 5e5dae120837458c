// Which files perf.data recordings are believed to have mapped: build-ids, segments, inodes, times, machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/system/file_identity.h"
#include "base/system/this_linux.h"
#include "code/image/image.h"
#include "formats/registry.h"
#include "unit/support/makers/elf_maker.h"
#include "unit/support/makers/perf_sample.h"
#include "unit/support/scratch.h"
#include "unit/support/traces/missing.h"
#include "unit/support/warned.h"

namespace ptkit::formats {
namespace {

using ptkit::test::ByteVector;
using test::Bytes;
using test::kEach;

constexpr std::uint64_t kText = 0x7000;  // where programs are mapped

// One page of code at offset 0x1000, with an id in a note.
std::string program(const std::string& code, const ByteVector& id = {}, std::uint16_t machine = EM_X86_64) {
  ptkit::test::Elf64Maker maker;
  maker.type = ET_DYN;
  maker.machine = machine;
  maker.add({".note", SHT_NOTE, SHF_ALLOC, 0, ptkit::test::build_id_note(id), 0, 0, 0});
  maker.segments.push_back({PT_LOAD, 0x1000, 0x1000, 0x1000, 0x1000});
  if (!id.empty()) {
    const auto& note = maker.sections[0];
    maker.segments.push_back({PT_NOTE, 0, note.offset, note.contents.size(), 0, 4});
  }
  ByteVector bytes = maker.make();
  bytes.resize(0x2000);
  std::copy(code.begin(), code.end(), bytes.begin() + 0x1000);
  return {bytes.begin(), bytes.end()};
}

ByteVector some_id(std::size_t size) {
  ByteVector id;
  for (std::size_t i = 0; i < size; ++i) id.push_back(static_cast<std::uint8_t>(0xa0 + i));
  return id;
}

// A row of perf's build-id table. `size` 0: without a length.
std::string id_row(const ByteVector& id, const std::string& path, std::uint8_t size = 0) {
  Bytes body;
  body.add(std::uint32_t{10});
  for (std::size_t i = 0; i < 20; ++i) body.add(i < id.size() ? id[i] : std::uint8_t{0});
  body.add(size, std::uint8_t{0}, std::uint16_t{0}).text(path);
  return test::record(67, static_cast<std::uint16_t>(2U | (size != 0 ? 1U << 15U : 0U)), body.str());
}

std::string map(const std::string& path, std::uint64_t address = kText, std::uint64_t size = 0x1000,
                std::uint64_t offset = 0x1000, std::uint64_t tsc = 100) {
  return test::mmap2({.tsc = tsc}, address, size, offset, path);
}

std::string map_of_inode(const std::string& path, std::uint32_t major, std::uint32_t minor,
                         std::uint64_t inode) {
  Bytes body;
  body.add(std::uint32_t{10}, std::uint32_t{10}, kText, std::uint64_t{0x1000}, std::uint64_t{0x1000}, major,
           minor, inode, std::uint64_t{0}, std::uint32_t{5}, std::uint32_t{2});
  return test::event(10, 2, body.text(path).str(), {.tsc = 100});
}

class PerfIdentity : public ::testing::Test {
 protected:
  void open_file(const std::string& records, const test::Features& features = {},
                 const std::vector<std::string>& folders = {}) {
    const std::string trace = test::auxtrace(0, kEach, 0, 0, test::small_stream());
    auto opened = open(
        scratch_.write("perf.data", test::perf_file({{}}, test::auxtrace_info() + records + trace, features)),
        {.binaries = folders});
    ASSERT_TRUE(opened.ok()) << opened.failure().detail;
    bundle_ = std::make_shared<trace::TraceBundle>(std::move(opened.value()));
  }
  std::string code(std::uint64_t address = kText, std::uint64_t tsc = 100, trace::SpaceId space = 1) {
    const code::image::Image image(bundle_);
    std::string out(4, '\0');
    const std::size_t there =
        image.view(space, tsc).read(address, {reinterpret_cast<std::uint8_t*>(out.data()), out.size()});
    return out.substr(0, there);
  }
  std::string reason() {
    const auto missing = ptkit::test::missing_files(*bundle_);
    return missing.empty() ? "" : missing.front().reason;
  }
  std::string path_of(std::uint64_t address, std::uint64_t tsc = 100) {
    const code::image::Image image(bundle_);
    const auto from = image.view(1, tsc).provenance(address);
    return from.file < 0 ? "" : bundle_->files[static_cast<std::size_t>(from.file)].path;
  }
  test::Scratch scratch_;
  std::shared_ptr<trace::TraceBundle> bundle_;
};

// ---- build-ids

TEST_F(PerfIdentity, TakesIdsOfAllSizesFromTheTable) {
  for (const std::size_t size : {8U, 16U, 20U}) {
    SCOPED_TRACE(size);
    const std::string path = scratch_.write("app", program("code", some_id(size)));
    for (const std::uint8_t recorded : {std::uint8_t{0}, static_cast<std::uint8_t>(size)}) {
      open_file(map(path), {{2, id_row(some_id(size), path, recorded)}});
      EXPECT_EQ(code(), "code");
      EXPECT_TRUE(ptkit::test::missing_files(*bundle_).empty());
      // Of another build.
      ByteVector other = some_id(size);
      other.back() ^= 1U;
      open_file(map(path), {{2, id_row(other, path, recorded)}});
      EXPECT_EQ(code(), "");
    }
    // With a length, zeros count.
    open_file(map(path), {{2, id_row(some_id(4), path, static_cast<std::uint8_t>(size))}});
    EXPECT_EQ(code(), "");
  }
}

// Of 32 bytes, perf records the first 20, and some versions the length 32.
TEST_F(PerfIdentity, TakesIdsThatPerfCuts) {
  ByteVector id = some_id(32);
  const std::string path = scratch_.write("app", program("code", id));
  for (const int recorded : {0, 20, 32}) {
    const auto size = static_cast<std::uint8_t>(recorded);
    id[19] = some_id(32)[19];
    open_file(map(path), {{2, id_row(id, path, size)}});
    EXPECT_EQ(code(), "code");
    id[19] ^= 1U;
    open_file(map(path), {{2, id_row(id, path, size)}});
    EXPECT_EQ(code(), "");
  }
}

TEST_F(PerfIdentity, FindsFilesOfPaddedIdsByNameAndById) {
  for (const std::size_t size : {8U, 16U, 20U}) {
    SCOPED_TRACE(size);
    const test::Features table{{2, id_row(some_id(size), "/nowhere/app")}};
    scratch_.write("named/app", program("name", some_id(size)));
    open_file(map("/nowhere/app"), table, {scratch_.at("named")});
    EXPECT_EQ(code(), "name");
    std::string digits;
    for (std::size_t i = 1; i < size; ++i) digits += "a" + std::string(1, "0123456789abcdef"[i % 16]);
    if (size > 16) {
      digits.clear();
      for (const std::uint8_t byte : some_id(size)) {
        digits += "0123456789abcdef"[byte >> 4U];
        digits += "0123456789abcdef"[byte & 15U];
      }
      digits = digits.substr(2);
    }
    const std::string store = "store" + std::to_string(size);
    scratch_.write(store + "/.build-id/a0/" + digits + "/elf", program("byid", some_id(size)));
    open_file(map("/nowhere/app"), table, {scratch_.at(store)});
    EXPECT_EQ(code(), "byid");
  }
}

TEST_F(PerfIdentity, IdsOfZerosAreNone) {
  const std::string path = scratch_.write("app", program("code", ByteVector(20, 0)));
  open_file(map(path), {{2, id_row({}, path)}});
  EXPECT_EQ(code(), "code");
  EXPECT_EQ(bundle_->files.at(0).build_id, "");
  open_file(map(path), {{2, id_row(some_id(8), path)}});
  EXPECT_EQ(code(), "");
}

// ---- segments

TEST_F(PerfIdentity, RefusesFilesWithOtherSegments) {
  const std::string path = scratch_.write("app", program("code"));
  open_file(map(path));
  EXPECT_EQ(code(), "code");
  EXPECT_FALSE(warns(*bundle_, WarningCode::FILES_CONTRADICT));
  const std::string all[] = {map(path, kText, 0x1000, 0), map(path, kText, 0x2000, 0x1000),
                             map(path, kText, 0x1000, 0x2000), map(path, kText, 0x3000, 0)};
  for (const std::string& records : all) {
    open_file(records);
    EXPECT_EQ(code(), "");
    EXPECT_TRUE(warns(*bundle_, WarningCode::FILES_CONTRADICT, 1));
    EXPECT_NE(reason().find("app has code at [0x1000, 0x2000), the recording at"), std::string::npos);
  }
}

// A process maps a part of its file once more; another process maps one alone.
TEST_F(PerfIdentity, TakesFurtherPartsOfAFile) {
  ptkit::test::Elf64Maker maker;
  maker.type = ET_DYN;
  maker.segments.push_back({PT_LOAD, 0x1000, 0x1000, 0x2000, 0x2000});
  ByteVector bytes = maker.make();
  bytes.resize(0x3000);
  std::ranges::copy(std::string("more"), bytes.begin() + 0x2000);
  const std::string path = scratch_.write("app", {bytes.begin(), bytes.end()});
  const std::string twice = map(path, kText, 0x2000) + map(path, 0x20000, 0x1000, 0x2000);
  open_file(twice);
  EXPECT_EQ(code(0x20000), "more");
  EXPECT_FALSE(warns(*bundle_, WarningCode::FILES_CONTRADICT));
  EXPECT_TRUE(ptkit::test::missing_files(*bundle_).empty());
  open_file(twice + test::mmap2({.pid = 20, .tid = 20, .tsc = 100}, kText, 0x1000, 0x2000, path));
  EXPECT_EQ(code(kText, 100, 2), "");
  EXPECT_TRUE(warns(*bundle_, WarningCode::FILES_CONTRADICT, 1,
                    path + " has code at [0x1000, 0x3000), the recording at [0x2000, 0x3000) (other mappings "
                           "agree, and use it)"));
  EXPECT_TRUE(ptkit::test::missing_files(*bundle_).empty());
}

TEST_F(PerfIdentity, LooksForAFileThatAgrees) {
  const std::string path = scratch_.write("app", program("here"));
  scratch_.write("bad/app", program("oops").substr(0, 0x1000) + std::string(0x1000, '\x90'));
  ptkit::test::Elf64Maker maker;
  maker.segments.push_back({PT_LOAD, 0x3000, 0x3000, 0x1000, 0x1000});
  ByteVector bytes = maker.make();
  bytes.resize(0x4000);
  scratch_.write("bad/app", {bytes.begin(), bytes.end()});
  open_file(map(path), {}, {scratch_.at("bad")});
  EXPECT_EQ(code(), "here");
  EXPECT_FALSE(warns(*bundle_, WarningCode::FILES_CONTRADICT));
}

// With a build-id that agrees, nothing else is asked.
TEST_F(PerfIdentity, BelievesBuildIdsBeforeSegments) {
  const std::string path = scratch_.write("app", program("code", some_id(20)));
  open_file(map(path, kText, 0x800, 0x1000), {{2, id_row(some_id(20), path)}});
  EXPECT_EQ(code(), "code");
}

// ---- inodes and times

TEST_F(PerfIdentity, RefusesReplacedFilesOfThisMachine) {
  const std::string path = scratch_.write("app", program("code"));
  const auto here = base::file_identity(path);
  ASSERT_TRUE(here);
  const auto major =
      static_cast<std::uint32_t>((here->device >> 8U & 0xfffU) | (here->device >> 32U & ~0xfffU));
  const auto minor = static_cast<std::uint32_t>((here->device & 0xffU) | (here->device >> 12U & ~0xffU));
  const test::Features own{{3, test::text_feature(base::linux_host_name())}};
  const test::Features other{{3, test::text_feature("another-host")}};
  open_file(map_of_inode(path, major, minor, here->number), own);
  EXPECT_EQ(code(), "code");
  open_file(map_of_inode(path, major, minor, here->number + 1), own);
  EXPECT_EQ(code(), "");
  EXPECT_NE(reason().find("is another file now"), std::string::npos);
  // A copy in a folder that the user names, a copy on another machine, numbers of another device.
  std::filesystem::create_directories(scratch_.at("copies"));
  std::filesystem::copy_file(path, scratch_.at("copies/app"));
  open_file(map_of_inode(path, major, minor, here->number + 1), own, {scratch_.at("copies")});
  EXPECT_EQ(code(), "code");
  open_file(map_of_inode(path, major, minor, here->number + 1), other);
  EXPECT_EQ(code(), "code");
  open_file(map_of_inode(path, major, minor, here->number + 1), {});
  EXPECT_EQ(code(), "code");
  open_file(map_of_inode(path, major + 1, minor, here->number + 1), own);
  EXPECT_EQ(code(), "code");
  const std::uint32_t cpus = base::linux_cpus() + 1;
  open_file(map_of_inode(path, major, minor, here->number + 1),
            {{3, own.at(3)}, {7, Bytes().add(cpus, cpus).str()}});
  EXPECT_EQ(code(), "code");
}

TEST_F(PerfIdentity, WarnsOfFilesThatChangedLater) {
  const std::string path = scratch_.write("app", program("code"));
  const auto set_time = [&](std::chrono::seconds later) {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() + later);
  };
  set_time(std::chrono::seconds(-1000));
  open_file(map(path));
  EXPECT_FALSE(warns(*bundle_, WarningCode::FILES_NEWER));
  set_time(std::chrono::seconds(1000));
  open_file(map(path));
  EXPECT_EQ(code(), "code");
  EXPECT_TRUE(warns(*bundle_, WarningCode::FILES_NEWER, 1, path));
  scratch_.write("app", program("code", some_id(20)));
  set_time(std::chrono::seconds(1000));
  open_file(map(path), {{2, id_row(some_id(20), path)}});
  EXPECT_FALSE(warns(*bundle_, WarningCode::FILES_NEWER));
}

// ---- machines

TEST_F(PerfIdentity, UsesNoFilesForRecordingsOfOtherArchitectures) {
  const std::string path = scratch_.write("app", program("code"));
  for (const char* const name : {"x86_64", "i686", "i386", "amd64"}) {
    open_file(map(path), {{6, test::text_feature(name)}});
    EXPECT_EQ(code(), "code") << name;
    EXPECT_FALSE(warns(*bundle_, WarningCode::ARCHITECTURE_OTHER));
  }
  for (const char* const name : {"aarch64", "armv7l", "s390x", "ppc64le", "riscv64", "ia64"}) {
    open_file(map(path), {{6, test::text_feature(name)}}, {scratch_.path()});
    EXPECT_EQ(code(), "") << name;
    EXPECT_TRUE(warns(*bundle_, WarningCode::ARCHITECTURE_OTHER, name));
    EXPECT_TRUE(bundle_->files.at(0).contents.size() == 0);
    EXPECT_TRUE(ptkit::test::missing_files(*bundle_).empty());
  }
}

TEST_F(PerfIdentity, TakesNoFileForAnotherMachine) {
  const std::string path = scratch_.write("app", program("code", some_id(8), EM_AARCH64));
  open_file(map(path), {}, {scratch_.path()});
  EXPECT_EQ(code(), "");
  EXPECT_NE(reason().find("is an ELF file for machine 183"), std::string::npos);
}

// ---- code that moved to anonymous memory

TEST_F(PerfIdentity, TakesCodeOfAFileForAnonymousMemoryOverIt) {
  const std::string path = scratch_.write("app", program("codemove"));
  for (const char* const name : {"//anon", "/anon_hugepage (deleted)", "[anon:text]", "/memfd:text"}) {
    open_file(map(path) + test::mmap2({.tsc = 200}, kText, 0x1000, 0, name));
    EXPECT_EQ(code(kText, 250), "code") << name;
    EXPECT_EQ(code(kText + 4, 250), "move");
    EXPECT_EQ(path_of(kText, 250), path);
    EXPECT_TRUE(warns(*bundle_, WarningCode::CODE_MOVED, 1, "[0x7000, 0x8000) of " + path));
  }
  // Not within the code.
  open_file(map(path) + test::mmap2({.tsc = 200}, kText, 0x2000, 0, "//anon"));
  EXPECT_EQ(code(kText, 250), "");
  EXPECT_FALSE(warns(*bundle_, WarningCode::CODE_MOVED));
  // Before the file.
  open_file(test::mmap2({.tsc = 50}, kText, 0x1000, 0, "//anon") + map(path));
  EXPECT_EQ(code(kText, 60), "");
  EXPECT_FALSE(warns(*bundle_, WarningCode::CODE_MOVED));
  // Another file was mapped there in between.
  open_file(map(path) + map("/nowhere/other", kText, 0x1000, 0, 150) +
            test::mmap2({.tsc = 200}, kText, 0x1000, 0, "//anon"));
  EXPECT_EQ(code(kText, 250), "");
}

// A written perf.data has JIT code in such files.
TEST_F(PerfIdentity, TakesCodeOfTheFileThatMemoryHasABuildIdOf) {
  const std::string path = scratch_.write("app", program("code"));
  scratch_.write(".build-id/a0/a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3/elf", program("jits", some_id(20)));
  open_file(map(path) + test::mmap2({.tsc = 200}, kText, 0x1000, 0x1000, "code-10-1"),
            {{2, id_row(some_id(20), "code-10-1", 20)}}, {scratch_.path()});
  EXPECT_EQ(code(kText, 150), "code");
  EXPECT_EQ(code(kText, 250), "jits");
  EXPECT_EQ(path_of(kText, 250), "code-10-1");
  EXPECT_FALSE(warns(*bundle_, WarningCode::CODE_MOVED));
}

// Two pages of code; the first moved before the recording. Records of what was mapped are in the order of
// addresses.
TEST_F(PerfIdentity, TakesCodeOfAFileThatIsMappedInPart) {
  ptkit::test::Elf64Maker maker;
  maker.type = ET_DYN;
  maker.segments.push_back({PT_LOAD, 0x1000, 0x1000, 0x2000, 0x2000});
  ByteVector bytes = maker.make();
  bytes.resize(0x3000);
  std::ranges::copy(std::string("codetail"), bytes.begin() + 0x1000);
  const std::string path = scratch_.write("app", {bytes.begin(), bytes.end()});
  open_file(test::mmap2({.tsc = 0}, kText, 0x1000, 0, "//anon") +
            test::mmap2({.tsc = 0}, kText + 0x1000, 0x1000, 0x2000, path));
  EXPECT_EQ(code(), "code");
  EXPECT_EQ(path_of(kText), path);
  EXPECT_TRUE(warns(*bundle_, WarningCode::CODE_MOVED, 1));
}

// V8 maps its builtins once more, beside memory for JIT code.
TEST_F(PerfIdentity, TakesNoCodeBesideAPartThatIsMappedOnceMore) {
  ptkit::test::Elf64Maker maker;
  maker.type = ET_DYN;
  maker.segments.push_back({PT_LOAD, 0x1000, 0x1000, 0x3000, 0x3000});
  ByteVector bytes = maker.make();
  bytes.resize(0x4000);
  std::ranges::copy(std::string("code"), bytes.begin() + 0x2000);
  const std::string path = scratch_.write("app", {bytes.begin(), bytes.end()});
  const std::string maps = map(path, kText, 0x3000) + map(path, 0x21000, 0x1000, 0x2000);
  for (const std::uint64_t beside : {0x20000U, 0x22000U}) {
    open_file(maps + test::mmap2({.tsc = 200}, beside, 0x1000, 0, "//anon"));
    EXPECT_EQ(code(beside, 250), "");
    EXPECT_EQ(code(0x21000, 250), "code");
    EXPECT_FALSE(warns(*bundle_, WarningCode::CODE_MOVED));
  }
  // Memory covers what is mapped, at both addresses.
  for (const std::uint64_t over : {kText + 0x1000, std::uint64_t{0x21000}}) {
    open_file(maps + test::mmap2({.tsc = 200}, over, 0x1000, 0, "//anon"));
    EXPECT_EQ(code(over, 250), "code");
    EXPECT_TRUE(warns(*bundle_, WarningCode::CODE_MOVED, 1));
  }
  // A part alone, which nothing continues.
  open_file(map(path, 0x21000, 0x1000, 0x2000, 100) +
            test::mmap2({.tsc = 200}, 0x30000, 0x1000, 0, "//anon") +
            test::mmap2({.tsc = 200}, 0x23000, 0x1000, 0, "//anon"));
  EXPECT_FALSE(warns(*bundle_, WarningCode::CODE_MOVED));
}

TEST_F(PerfIdentity, TakesNoCodeWhereAPerfMapHasNames) {
  const std::string path = scratch_.write("app", program("code"));
  const std::string records = map(path) + test::mmap2({.tsc = 200}, kText, 0x1000, 0, "//anon");
  scratch_.write("perf-10.map", "9000 10 elsewhere\n");
  open_file(records, {}, {scratch_.path()});
  EXPECT_EQ(code(kText, 250), "code");
  scratch_.write("perf-10.map", "7010 10 made\n");
  open_file(records, {}, {scratch_.path()});
  EXPECT_EQ(code(kText, 250), "");
  EXPECT_EQ(path_of(kText, 250), scratch_.at("perf-10.map"));
  EXPECT_FALSE(warns(*bundle_, WarningCode::CODE_MOVED));
}

TEST_F(PerfIdentity, ChildrenInheritMovedCode) {
  const std::string path = scratch_.write("app", program("code"));
  open_file(map(path) + test::mmap2({.tsc = 200}, kText, 0x1000, 0, "//anon") +
            test::fork({.pid = 20, .tid = 20, .tsc = 300}, 10, 10) +
            test::mmap2({.pid = 20, .tid = 20, .tsc = 400}, kText, 0x1000, 0, "//anon") +
            test::comm({.tsc = 500}, "other", true) + test::mmap2({.tsc = 600}, kText, 0x1000, 0, "//anon"));
  EXPECT_EQ(code(kText, 350, 2), "code");
  EXPECT_EQ(code(kText, 450, 2), "code");
  EXPECT_EQ(code(kText, 650, 1), "");
}

}  // namespace
}  // namespace ptkit::formats
