// What a process of another user can make a recorder read: the files that it has mapped, and nothing else.
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "capture/symbol_finder.h"
#include "capture/system_processes.h"
#include "foreign_process.h"
#include "formats/registry.h"
#include "unit/formats/scratch.h"

namespace ptkit::capture::test {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kTerabyte = std::uint64_t{1} << 40U;
constexpr std::int32_t kGone = 1 << 23;  // a number that no process has
const std::string kSecret = "this is a secret";

// By map_files, or, without its capabilities, by path.
enum class Way : std::uint8_t { INODE, PATH };

class MappedFiles : public ::testing::TestWithParam<Way> {
 protected:
  MappedFiles() {
    ::chmod(scratch_.path().c_str(), 0777);
    ::chmod(scratch_.write("secret", kSecret + std::string(2 * kPage, 's')).c_str(), 0600);
    ::alarm(60);  // a recorder that waits for ever would not end
    if (GetParam() == Way::PATH) without_ = std::make_unique<WithoutMapFiles>();
  }
  ~MappedFiles() override { ::alarm(0); }

  // What the recorder makes of the process's code.
  void record(pid_t pid) {
    write([&](SystemProcesses& processes) {
      processes.begin(pid, 1);
      processes.save_code(pid);
    });
  }
  // And of records about a process that is gone by now; `more` come after recording has begun.
  void take(const SystemRecord& first, const std::function<std::vector<SystemRecord>()>& more = {}) {
    write([&](SystemProcesses& processes) {
      SystemRecord runs;
      runs.kind = SystemRecord::Kind::SWITCH;
      runs.pid = runs.tid = kGone;
      processes.take(runs, 0);
      processes.take(first, 0);
      if (!more) return;
      for (const SystemRecord& one : more()) processes.take(one, 0);
    });
  }
  static SystemRecord told_by_kernel(const std::string& path) {
    struct stat file {};
    EXPECT_EQ(::stat(path.c_str(), &file), 0);
    SystemRecord out;
    out.kind = SystemRecord::Kind::MAP;
    out.pid = out.tid = kGone;
    out.address = kPage * file.st_ino;
    out.bytes = kPage;
    out.text = path;
    out.device = file.st_dev;
    out.inode = file.st_ino;
    return out;
  }
  void write(const std::function<void(SystemProcesses&)>& record) {
    auto writer = formats::PtkWriter::create(scratch_.at("out.ptk"));
    ASSERT_TRUE(writer.ok());
    writer.value().info({});
    BundleOutput output(std::move(writer.value()), 0);
    SystemProcesses processes(output, true, false);
    record(processes);
    warnings_ = processes.warnings();
    ASSERT_TRUE(output.finish().ok());
    bundle_bytes_ = std::filesystem::file_size(scratch_.at("out.ptk"));
    auto bundle = formats::open(scratch_.at("out.ptk"), {});
    ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
    bundle_ = std::move(bundle.value());
  }

  // The bytes of a file's code, as text.
  [[nodiscard]] std::string code_of(const std::string& path) const {
    std::string out;
    for (const trace::CodeRegion& region : bundle_.code) {
      if (region.file < 0 || bundle_.files[static_cast<std::size_t>(region.file)].path != path) continue;
      const base::Bytes bytes = region.bytes.bytes();
      out.append(bytes.begin(), bytes.end());
    }
    return out;
  }
  [[nodiscard]] bool warned(const std::string& words) const {
    return std::any_of(warnings_.begin(), warnings_.end(),
                       [&](const std::string& one) { return one.find(words) != std::string::npos; });
  }

  // A file of the other user with two pages of code, mapped; then `attack` goes on.
  [[nodiscard]] std::unique_ptr<ForeignProcess> mapped(const std::function<bool()>& attack,
                                                       std::uint64_t bytes = 2 * kPage) const {
    return std::make_unique<ForeignProcess>([&] {
      std::ofstream(code_) << std::string(2 * kPage, 'c');
      return map_code(code_, bytes) != MAP_FAILED && attack();
    });
  }
  [[nodiscard]] bool put_in_place(const std::string& other) const {
    return ::rename(other.c_str(), code_.c_str()) == 0;
  }

  formats::test::Scratch scratch_;
  const std::string code_ = scratch_.at("code");
  std::unique_ptr<WithoutMapFiles> without_;
  std::vector<std::string> warnings_;
  std::uint64_t bundle_bytes_ = 0;
  trace::TraceBundle bundle_;
};

INSTANTIATE_TEST_SUITE_P(Ways, MappedFiles, ::testing::Values(Way::INODE, Way::PATH),
                         [](const auto& one) { return one.param == Way::INODE ? "Inode" : "Path"; });

TEST_P(MappedFiles, AreCopied) {
  const auto process = mapped([] { return true; });
  ASSERT_TRUE(process->worked());
  record(process->pid());
  EXPECT_EQ(code_of(code_), std::string(2 * kPage, 'c'));
  EXPECT_TRUE(warnings_.empty()) << warnings_.front();
}

TEST_P(MappedFiles, LinksAreNotFollowed) {
  const auto process = mapped([&] {
    return ::symlink("secret", scratch_.at("link").c_str()) == 0 && put_in_place(scratch_.at("link"));
  });
  ASSERT_TRUE(process->worked());
  record(process->pid());
  EXPECT_EQ(code_of(code_), std::string(2 * kPage, 'c'));
}

// The process is gone, and the kernel's record of its mapping is still to be read.
TEST_P(MappedFiles, FoldersThatBecameLinksAreNotFollowed) {
  std::filesystem::create_directories(scratch_.at("private"));
  ::chmod(scratch_.write("private/lib", kSecret).c_str(), 0600);
  const std::string code = scratch_.at("own/lib");
  ForeignProcess process([&] {
    if (::mkdir(scratch_.at("own").c_str(), 0755) != 0) return false;
    std::ofstream(code) << std::string(kPage, 'c');
    return map_code(code, kPage) != MAP_FAILED;
  });
  ASSERT_TRUE(process.worked());
  const SystemRecord record = told_by_kernel(code);
  process.end();
  std::filesystem::rename(scratch_.at("own"), scratch_.at("was"));
  std::filesystem::create_directory_symlink("private", scratch_.at("own"));
  take(record);
  EXPECT_EQ(code_of(code), "");
  EXPECT_TRUE(std::filesystem::exists(code));
}

TEST_P(MappedFiles, OfProcessesThatAreGoneAreKnownByTheirInodes) {
  std::ofstream(code_) << std::string(kPage, 'c');
  const SystemRecord record = told_by_kernel(code_);
  take(record);
  EXPECT_EQ(code_of(code_), std::string(kPage, 'c'));
  std::ofstream(scratch_.at("other")) << std::string(kPage, 'o');
  ASSERT_TRUE(put_in_place(scratch_.at("other")));
  take(record);
  EXPECT_EQ(code_of(code_), "");
  EXPECT_TRUE(warned("Files were replaced")) << ::testing::PrintToString(warnings_);
  SystemRecord untold = told_by_kernel(code_);
  untold.device = untold.inode = 0;
  take(untold);
  EXPECT_EQ(code_of(code_), "");
}

// An inode's number is used again: a file that came since is read only if anybody may read it.
TEST_P(MappedFiles, NewFilesOfOthersAreNotTakenForDeletedOnes) {
  std::ofstream(code_) << kSecret;
  ::chmod(code_.c_str(), 0600);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // clocks of file systems tick
  take(told_by_kernel(code_), [&] {
    std::ofstream(scratch_.at("new")) << kSecret;
    ::chmod(scratch_.at("new").c_str(), 0600);
    return std::vector{told_by_kernel(scratch_.at("new"))};
  });
  EXPECT_EQ(code_of(code_), kSecret);  // it was there before
  EXPECT_EQ(code_of(scratch_.at("new")), "");
}

TEST_P(MappedFiles, FifosAreNotOpened) {
  const auto process = mapped(
      [&] { return ::mkfifo(scratch_.at("fifo").c_str(), 0666) == 0 && put_in_place(scratch_.at("fifo")); });
  ASSERT_TRUE(process->worked());
  record(process->pid());
  EXPECT_EQ(code_of(code_), std::string(2 * kPage, 'c'));
}

// The first open() and close() of a terminal's lower end is seen at its upper end.
TEST_P(MappedFiles, DevicesAreNotOpened) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::unlockpt(terminal), 0);
  std::array<char, 64> name{};
  ASSERT_EQ(::ptsname_r(terminal, name.data(), name.size()), 0);
  const auto process = mapped([&] {
    return ::symlink(name.data(), scratch_.at("link").c_str()) == 0 && put_in_place(scratch_.at("link"));
  });
  ASSERT_TRUE(process->worked());
  record(process->pid());
  pollfd upper{terminal, POLLIN, 0};
  EXPECT_EQ(::poll(&upper, 1, 0), 0);
  ::close(terminal);
  EXPECT_EQ(code_of(code_), std::string(2 * kPage, 'c'));
}

TEST_P(MappedFiles, ThatShrinkAreAWarning) {
  const auto process = mapped([&] { return ::truncate(code_.c_str(), 0) == 0; });
  ASSERT_TRUE(process->worked());
  record(process->pid());
  EXPECT_EQ(code_of(code_), "");
  EXPECT_TRUE(warned("shorter than")) << ::testing::PrintToString(warnings_);
  EXPECT_TRUE(warned(code_));
}

TEST_P(MappedFiles, LengthsThatProcessesChooseCostNothing) {
  const auto process = mapped([&] { return ::unlink(code_.c_str()) == 0; }, kTerabyte);
  ASSERT_TRUE(process->worked());
  record(process->pid());
  EXPECT_EQ(code_of(code_), std::string(2 * kPage, 'c'));
  EXPECT_LT(bundle_bytes_, std::uint64_t{64} << 20U);  // the code of this test is in it, too
}

TEST_P(MappedFiles, HolesCostNothing) {
  constexpr std::uint64_t kBytes = 8 * kTerabyte;
  const ForeignProcess process([&] {
    std::ofstream(code_) << std::string(kPage, 'c');
    return ::truncate(code_.c_str(), static_cast<off_t>(kBytes)) == 0 &&
           map_code(code_, kBytes) != MAP_FAILED;
  });
  ASSERT_TRUE(process.worked());
  record(process.pid());
  EXPECT_EQ(code_of(code_).substr(0, kPage), std::string(kPage, 'c'));
  EXPECT_LT(code_of(code_).size(), std::size_t{1} << 20U);
  EXPECT_LT(bundle_bytes_, std::uint64_t{64} << 20U);  // the code of this test is in it, too
  std::uint64_t known = 0;                             // also where there are no bytes
  for (const trace::CodeRegion& region : bundle_.code) {
    if (region.file >= 0 && bundle_.files[static_cast<std::size_t>(region.file)].path == code_)
      known += region.size;
  }
  EXPECT_EQ(known, kBytes);
}

// As a container does: a path is another file's outside of it.
TEST_P(MappedFiles, PathsOfOtherMountNamespacesAreNotTheHosts) {
  std::ofstream(code_) << std::string(kPage, 'h');
  without_.reset();  // which would not let it mount either
  const ForeignProcess process(
      [&] {
        if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("none", scratch_.path().c_str(), "tmpfs", 0, nullptr) != 0)
          return false;
        std::ofstream(code_) << std::string(kPage, 'i');
        return map_code(code_, kPage) != MAP_FAILED && ::unlink(code_.c_str()) == 0;
      },
      false);
  if (!process.worked()) GTEST_SKIP() << "a namespace of mounts is not permitted here";
  if (GetParam() == Way::PATH) without_ = std::make_unique<WithoutMapFiles>();
  record(process.pid());
  EXPECT_EQ(code_of(code_), std::string(kPage, 'i'));
}

// ---- reading

class CodeReaderOfFiles : public ::testing::Test {
 protected:
  MappedFile open(const std::string& contents) {
    path_ = scratch_.write("file", contents);
    return reopened(locate_path(::getpid(), path_));
  }
  std::string part_of(
      CodeReader& reader, const MappedFile& file, std::uint64_t offset, std::uint64_t bytes,
      const std::function<void()>& meanwhile = [] {}) const {
    std::string out;
    reader.read_part(file, path_, offset, bytes, [&](std::uint64_t at, const trace::TraceBuffer& got) {
      out.resize(at);
      out.append(got.bytes().begin(), got.bytes().end());
      meanwhile();
    });
    return out;
  }
  static bool warned(const CodeReader& reader, const std::string& words) {
    const std::vector<std::string> all = reader.warnings();
    return std::any_of(all.begin(), all.end(),
                       [&](const std::string& one) { return one.find(words) != std::string::npos; });
  }

  formats::test::Scratch scratch_;
  std::string path_;
};

// A page that is mapped and gone would end the recorder by a signal.
TEST_F(CodeReaderOfFiles, FilesMayShrinkWhileTheyAreRead) {
  constexpr std::uint64_t kBytes = std::uint64_t{9} << 20U;
  const MappedFile file = open(std::string(kBytes, 'c'));
  CodeReader reader;
  const std::string got = part_of(reader, file, 0, kBytes, [&] { std::filesystem::resize_file(path_, 0); });
  EXPECT_LT(got.size(), kBytes);
  EXPECT_EQ(got.find_first_not_of('c'), std::string::npos);
  EXPECT_TRUE(warned(reader, "shorter than")) << ::testing::PrintToString(reader.warnings());
  EXPECT_TRUE(warned(reader, path_));
}

TEST_F(CodeReaderOfFiles, LimitsOfAFileAndOfAllNameTheFile) {
  const MappedFile file = open(std::string(10 * kPage, 'c'));
  CodeReader of_one({.file_bytes = 4 * kPage, .all_bytes = 100 * kPage});
  EXPECT_EQ(part_of(of_one, file, kPage, 9 * kPage).size(), 4 * kPage);
  EXPECT_EQ(of_one.read(file, path_).size(), 4 * kPage);
  EXPECT_TRUE(warned(of_one, "larger than what is read")) << ::testing::PrintToString(of_one.warnings());
  EXPECT_TRUE(warned(of_one, path_));
  CodeReader of_all({.file_bytes = 100 * kPage, .all_bytes = 15 * kPage});
  EXPECT_EQ(part_of(of_all, file, 0, 10 * kPage).size(), 10 * kPage);
  EXPECT_TRUE(of_all.warnings().empty());
  EXPECT_EQ(part_of(of_all, file, 0, 10 * kPage).size(), 5 * kPage);
  EXPECT_EQ(part_of(of_all, file, 0, 10 * kPage).size(), 0U);
  EXPECT_TRUE(warned(of_all, path_));
}

TEST_F(CodeReaderOfFiles, PagesThatAProcessDidNotTouchAreLeftOut) {
  void* const memory =
      ::mmap(nullptr, kTerabyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  static_cast<char*>(memory)[5 * kPage] = 'c';
  Mapping mapping;
  mapping.begin = reinterpret_cast<std::uint64_t>(memory);
  mapping.end = mapping.begin + kTerabyte;
  mapping.path = "memory";
  CodeReader reader({.file_bytes = std::uint64_t{64} << 20U, .all_bytes = std::uint64_t{64} << 20U});
  std::vector<std::pair<std::uint64_t, std::size_t>> got;
  reader.read_memory(::getpid(), mapping, [&](std::uint64_t at, const trace::TraceBuffer& bytes) {
    got.emplace_back(at, bytes.size());
    EXPECT_EQ(bytes.bytes()[0], 'c');
  });
  ::munmap(memory, kTerabyte);
  EXPECT_EQ(got, (std::vector<std::pair<std::uint64_t, std::size_t>>{{5 * kPage, kPage}}));
}

// Lookups of names.
TEST_F(CodeReaderOfFiles, NamesAreLookedForInRegularFilesAlone) {
  const std::string fifo = scratch_.at("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
  Mapping mapping;
  mapping.path = fifo;
  mapping.inode = 1;
  ::alarm(60);
  SymbolFinder finder;
  EXPECT_TRUE(finder.find(::getpid(), mapping, "main").empty());
  EXPECT_TRUE(SymbolFinder().find(::getpid(), fifo, "main").empty());
  ::alarm(0);
  EXPECT_EQ(locate_path(::getpid(), fifo).found, MappedFile::Found::ANOTHER);
  EXPECT_EQ(locate_path(::getpid(), scratch_.at("none")).error, ENOENT);
}

TEST_F(CodeReaderOfFiles, DifferentNumbersOfTheSameFileAreToldApart) {
  const std::string path = scratch_.write("code", std::string(kPage, 'c'));
  void* const memory = map_code(path, kPage);
  const std::vector<Mapping> maps = read_maps(::getpid());
  const auto at =
      std::find_if(maps.begin(), maps.end(), [&](const Mapping& one) { return one.path == path; });
  ASSERT_NE(at, maps.end());
  struct stat file {};
  ASSERT_EQ(::stat(path.c_str(), &file), 0);
  EXPECT_EQ(at->inode, file.st_ino);
  Mapping other = *at;
  ++other.inode;
  const WithoutMapFiles without;
  CodeReader reader;
  EXPECT_EQ(reader.open(::getpid(), *at).found, MappedFile::Found::FILE);
  EXPECT_EQ(reader.open(::getpid(), other).found, MappedFile::Found::ANOTHER);
  ::munmap(memory, kPage);
}

}  // namespace
}  // namespace ptkit::capture::test
