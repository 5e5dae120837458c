// A process of another user can make a recorder read only the files that it has mapped.
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

#include "base/posix/map_memory.h"
#include "capture/linux/files/symbol_finder.h"
#include "capture/linux/sideband/system_processes.h"
#include "foreign_process.h"
#include "formats/registry.h"
#include "unit/support/chroot.h"
#include "unit/support/scratch.h"
#include "unit/support/warned.h"

namespace ptkit::capture::test {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kTerabyte = std::uint64_t{1} << 40U;
constexpr std::int32_t kGone = 1 << 23;  // a PID that no process has
const std::string kSecret = "this is a secret";

// How the recorder finds files: by map_files, or without its capabilities by path.
enum class FindBy : std::uint8_t { INODE, PATH };

class MappedFiles : public ::testing::TestWithParam<FindBy> {
 protected:
  MappedFiles() {
    ::chmod(scratch_.path().c_str(), 0777);
    ::chmod(scratch_.write("secret", kSecret + std::string(2 * kPage, 's')).c_str(), 0600);
    ::alarm(60);  // ends a recorder that blocks
    if (GetParam() == FindBy::PATH) without_ = std::make_unique<WithoutMapFiles>();
  }
  ~MappedFiles() override { ::alarm(0); }

  // Records the process's code.
  void record(pid_t pid) {
    write([&](SystemProcesses& processes) {
      processes.begin(pid, 1);
      processes.save_code(pid);
    });
  }
  // Records the code of an exited process from its records. `more` come after the recording began.
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
    out.kind = SystemRecord::Kind::MMAP;
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
    FileParser parser;
    BundleOutput output(std::move(writer.value()), 0, parser);
    SystemProcesses processes(output, true, false);
    record(processes);
    warnings_ = processes.warnings();
    ASSERT_TRUE(output.finish().ok());
    bundle_bytes_ = std::filesystem::file_size(scratch_.at("out.ptk"));
    auto bundle = formats::open(scratch_.at("out.ptk"), {});
    ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
    bundle_ = std::move(bundle.value());
  }

  // The recorded code bytes of a file, as text.
  [[nodiscard]] std::string code_of(const std::string& path) const {
    std::string out;
    for (const trace::CodeRegion& region : bundle_.code) {
      if (region.file < 0 || bundle_.files[static_cast<std::size_t>(region.file)].path != path) continue;
      const base::Bytes bytes = region.bytes.bytes();
      out.append(bytes.begin(), bytes.end());
    }
    return out;
  }

  // Maps a file of the other user with two pages of code, then runs `attack`.
  [[nodiscard]] std::unique_ptr<ForeignProcess> mapped(const std::function<bool()>& attack,
                                                       std::uint64_t bytes = 2 * kPage) const {
    return std::make_unique<ForeignProcess>([&] {
      std::ofstream(code_) << std::string(2 * kPage, 'c');
      return map_code(code_, bytes) != MAP_FAILED && attack();
    });
  }
  [[nodiscard]] bool replace_code(const std::string& other) const {
    return ::rename(other.c_str(), code_.c_str()) == 0;
  }

  formats::test::Scratch scratch_;
  const std::string code_ = scratch_.at("code");
  std::unique_ptr<WithoutMapFiles> without_;
  std::vector<trace::Warning> warnings_;
  std::uint64_t bundle_bytes_ = 0;
  trace::TraceBundle bundle_;
};

INSTANTIATE_TEST_SUITE_P(Ways, MappedFiles, ::testing::Values(FindBy::INODE, FindBy::PATH),
                         [](const auto& one) { return one.param == FindBy::INODE ? "Inode" : "Path"; });

TEST_P(MappedFiles, CodeIsCopied) {
  const auto process = mapped([] { return true; });
  ASSERT_TRUE(process->worked());
  record(process->pid());
  EXPECT_EQ(code_of(code_), std::string(2 * kPage, 'c'));
  EXPECT_EQ(warnings_, std::vector<trace::Warning>());
}

TEST_P(MappedFiles, LinksAreNotFollowed) {
  const auto process = mapped([&] {
    return ::symlink("secret", scratch_.at("link").c_str()) == 0 && replace_code(scratch_.at("link"));
  });
  ASSERT_TRUE(process->worked());
  record(process->pid());
  EXPECT_EQ(code_of(code_), std::string(2 * kPage, 'c'));
}

// The process has exited, and the kernel's record of its mapping is read later.
TEST_P(MappedFiles, FoldersReplacedByLinksAreNotFollowed) {
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

TEST_P(MappedFiles, FilesOfExitedProcessesAreIdentifiedByInode) {
  std::ofstream(code_) << std::string(kPage, 'c');
  const SystemRecord record = told_by_kernel(code_);
  take(record);
  EXPECT_EQ(code_of(code_), std::string(kPage, 'c'));
  std::ofstream(scratch_.at("other")) << std::string(kPage, 'o');
  ASSERT_TRUE(replace_code(scratch_.at("other")));
  take(record);
  EXPECT_EQ(code_of(code_), "");
  EXPECT_TRUE(warns(warnings_, WarningCode::FILES_REPLACED)) << ::testing::PrintToString(warnings_);
  SystemRecord untold = told_by_kernel(code_);
  untold.device = untold.inode = 0;
  take(untold);
  EXPECT_EQ(code_of(code_), "");
}

// An inode number is reused: the recorder reads a newer file only if all users may read it.
TEST_P(MappedFiles, NewPrivateFilesAreNotReadForDeletedOnes) {
  std::ofstream(code_) << kSecret;
  ::chmod(code_.c_str(), 0600);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // more than a tick of the file system's clock
  take(told_by_kernel(code_), [&] {
    std::ofstream(scratch_.at("new")) << kSecret;
    ::chmod(scratch_.at("new").c_str(), 0600);
    return std::vector{told_by_kernel(scratch_.at("new"))};
  });
  EXPECT_EQ(code_of(code_), kSecret);  // older than the recording
  EXPECT_EQ(code_of(scratch_.at("new")), "");
}

TEST_P(MappedFiles, FifosAreNotOpened) {
  const auto process = mapped(
      [&] { return ::mkfifo(scratch_.at("fifo").c_str(), 0666) == 0 && replace_code(scratch_.at("fifo")); });
  ASSERT_TRUE(process->worked());
  record(process->pid());
  EXPECT_EQ(code_of(code_), std::string(2 * kPage, 'c'));
}

// The master of a pseudoterminal sees open() and close() of its slave.
TEST_P(MappedFiles, DevicesAreNotOpened) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::unlockpt(terminal), 0);
  std::array<char, 64> name{};
  ASSERT_EQ(::ptsname_r(terminal, name.data(), name.size()), 0);
  const auto process = mapped([&] {
    return ::symlink(name.data(), scratch_.at("link").c_str()) == 0 && replace_code(scratch_.at("link"));
  });
  ASSERT_TRUE(process->worked());
  record(process->pid());
  pollfd upper{terminal, POLLIN, 0};
  EXPECT_EQ(::poll(&upper, 1, 0), 0);
  ::close(terminal);
  EXPECT_EQ(code_of(code_), std::string(2 * kPage, 'c'));
}

TEST_P(MappedFiles, WarnsOfShrunkFiles) {
  const auto process = mapped([&] { return ::truncate(code_.c_str(), 0) == 0; });
  ASSERT_TRUE(process->worked());
  record(process->pid());
  EXPECT_EQ(code_of(code_), "");
  EXPECT_TRUE(warns(warnings_, WarningCode::FILES_SHRUNK, code_)) << ::testing::PrintToString(warnings_);
}

TEST_P(MappedFiles, HugeMappingsCostNothing) {
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

// As in a container, a path leads to another file outside the mount namespace.
TEST_P(MappedFiles, PathsStayInTheirMountNamespace) {
  std::ofstream(code_) << std::string(kPage, 'h');
  without_.reset();  // mount() needs CAP_SYS_ADMIN
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
  if (shows_prefix(process.pid(), code_)) GTEST_SKIP() << kPrefixInChroot;
  if (GetParam() == FindBy::PATH) without_ = std::make_unique<WithoutMapFiles>();
  record(process.pid());
  EXPECT_EQ(code_of(code_), std::string(kPage, 'i'));
}

// ---- reading

class CodeReaderTest : public ::testing::Test {
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

  formats::test::Scratch scratch_;
  FileParser parser_;
  std::string path_;
};

// Access to a page after the end of a shrunk mapped file raises SIGBUS.
TEST_F(CodeReaderTest, ReadsFilesThatShrink) {
  constexpr std::uint64_t kBytes = std::uint64_t{9} << 20U;
  const MappedFile file = open(std::string(kBytes, 'c'));
  CodeReader reader(parser_);
  const std::string got = part_of(reader, file, 0, kBytes, [&] { std::filesystem::resize_file(path_, 0); });
  EXPECT_LT(got.size(), kBytes);
  EXPECT_EQ(got.find_first_not_of('c'), std::string::npos);
  EXPECT_TRUE(warns(reader.warnings(), WarningCode::FILES_SHRUNK, path_));
}

TEST_F(CodeReaderTest, WarnsOfFilesBeyondTheLimits) {
  const MappedFile file = open(std::string(10 * kPage, 'c'));
  CodeReader of_one(parser_, {.file_bytes = 4 * kPage, .all_bytes = 100 * kPage});
  EXPECT_EQ(part_of(of_one, file, kPage, 9 * kPage).size(), 4 * kPage);
  EXPECT_EQ(of_one.read(file, path_).size(), 4 * kPage);
  EXPECT_TRUE(warns(of_one.warnings(), WarningCode::FILES_TOO_LARGE, 0, 0, path_));
  CodeReader of_all(parser_, {.file_bytes = 100 * kPage, .all_bytes = 15 * kPage});
  EXPECT_EQ(part_of(of_all, file, 0, 10 * kPage).size(), 10 * kPage);
  EXPECT_TRUE(of_all.warnings().empty());
  EXPECT_EQ(part_of(of_all, file, 0, 10 * kPage).size(), 5 * kPage);
  EXPECT_EQ(part_of(of_all, file, 0, 10 * kPage).size(), 0U);
  EXPECT_TRUE(warns(of_all.warnings(), WarningCode::FILES_TOO_LARGE, 0, 0, path_));
}

TEST_F(CodeReaderTest, LeavesOutUntouchedPages) {
  void* const memory =
      base::map_memory(kTerabyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  static_cast<char*>(memory)[5 * kPage] = 'c';
  Mapping mapping;
  mapping.begin = reinterpret_cast<std::uint64_t>(memory);
  mapping.end = mapping.begin + kTerabyte;
  mapping.path = "memory";
  CodeReader reader(parser_, {.file_bytes = std::uint64_t{64} << 20U, .all_bytes = std::uint64_t{64} << 20U});
  std::vector<std::pair<std::uint64_t, std::size_t>> got;
  reader.read_memory(::getpid(), mapping, [&](std::uint64_t at, const trace::TraceBuffer& bytes) {
    got.emplace_back(at, bytes.size());
    EXPECT_EQ(bytes.bytes()[0], 'c');
  });
  ::munmap(memory, kTerabyte);
  EXPECT_EQ(got, (std::vector<std::pair<std::uint64_t, std::size_t>>{{5 * kPage, kPage}}));
}

// Symbol lookups.
TEST_F(CodeReaderTest, SearchesSymbolsInRegularFilesOnly) {
  const std::string fifo = scratch_.at("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
  Mapping mapping;
  mapping.path = fifo;
  mapping.inode = 1;
  ::alarm(60);
  SymbolFinder finder(parser_);
  EXPECT_TRUE(finder.find(::getpid(), mapping, "main").empty());
  EXPECT_TRUE(SymbolFinder(parser_).find(::getpid(), fifo, "main").empty());
  ::alarm(0);
  EXPECT_EQ(locate_path(::getpid(), fifo).found, MappedFile::Found::ANOTHER);
  EXPECT_EQ(locate_path(::getpid(), scratch_.at("none")).error, ENOENT);
}

TEST_F(CodeReaderTest, RejectsFilesWithAnotherInode) {
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
  CodeReader reader(parser_);
  EXPECT_EQ(reader.open(::getpid(), *at).found, MappedFile::Found::FILE);
  EXPECT_EQ(reader.open(::getpid(), other).found, MappedFile::Found::ANOTHER);
  ::munmap(memory, kPage);
}

}  // namespace
}  // namespace ptkit::capture::test
