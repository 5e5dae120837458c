#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "capture/linux/emulator/plugin/program.h"

namespace ptkit::capture::plugin {
namespace {

namespace fs = std::filesystem;

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(::testing::TempDir()) / ("ptkit-program-" + std::to_string(getpid()) + "-" +
                                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text, bool executable = true) {
    const fs::path path = folder_ / name;
    std::ofstream(path) << text;
    fs::permissions(path, executable ? fs::perms::owner_all : fs::perms::owner_read);
    return path;
  }

  const Program& resolve(const std::string& path) {
    resolve_program(path.c_str(), *program_);
    return *program_;
  }

  std::vector<std::string> words() const { return {program_->prefix, program_->prefix + program_->words}; }

  fs::path folder_;
  std::unique_ptr<Program> program_ = std::make_unique<Program>();
};

TEST_F(ProgramTest, RecognizesX8664Programs) {
  EXPECT_EQ(resolve("/proc/self/exe").kind, ProgramKind::X86_64);
  EXPECT_EQ(program_->words, 0U);
  EXPECT_STREQ(program_->path, "/proc/self/exe");
}

TEST_F(ProgramTest, ScriptRunsItsInterpreterWithOneArgument) {
  const std::string script = file("a", "#!  /proc/self/exe  -u and more \nrest\n");
  EXPECT_EQ(resolve(script).kind, ProgramKind::X86_64);
  EXPECT_STREQ(program_->path, "/proc/self/exe");
  EXPECT_EQ(words(), (std::vector<std::string>{"/proc/self/exe", "-u and more", script}));
}

TEST_F(ProgramTest, InterpreterMayBeAScript) {
  const std::string inner = file("inner", "#!/proc/self/exe -x\n");
  const std::string outer = file("outer", "#!" + inner + "\t y \n");
  EXPECT_EQ(resolve(outer).kind, ProgramKind::X86_64);
  EXPECT_EQ(words(), (std::vector<std::string>{"/proc/self/exe", "-x", inner, "y", outer}));
}

TEST_F(ProgramTest, RejectsRecursiveScripts) {
  const std::string loop = (folder_ / "loop").string();
  file("loop", "#!" + loop + "\n");
  EXPECT_EQ(resolve(loop).kind, ProgramKind::UNAVAILABLE);
  EXPECT_EQ(program_->error, ELOOP);
}

TEST_F(ProgramTest, UnavailableProgramsHaveAnError) {
  EXPECT_EQ(resolve((folder_ / "none").string()).error, ENOENT);
  EXPECT_EQ(resolve(folder_.string()).error, EACCES);
  EXPECT_EQ(resolve(std::string(PATH_MAX, 'x')).error, ENAMETOOLONG);
  EXPECT_EQ(resolve(file("script", "#!" + (folder_ / "none").string() + "\n")).error, ENOENT);
  EXPECT_EQ(program_->kind, ProgramKind::UNAVAILABLE);
}

TEST_F(ProgramTest, RejectsFilesWithoutExecutePermission) {
  EXPECT_EQ(resolve(file("plain", "#!/bin/sh\n", false)).error, EACCES);
}

TEST_F(ProgramTest, OtherFormatsAreForTheKernel) {
  EXPECT_EQ(resolve(file("empty", "")).kind, ProgramKind::OTHER);
  EXPECT_EQ(resolve(file("text", "echo\n")).kind, ProgramKind::OTHER);
  EXPECT_EQ(resolve(file("nobody", "#! \n")).kind, ProgramKind::OTHER);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_machine = EM_386;
  header.e_type = ET_EXEC;
  EXPECT_EQ(resolve(file("i386", std::string(reinterpret_cast<char*>(&header), sizeof header))).kind,
            ProgramKind::OTHER);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = EM_AARCH64;
  EXPECT_EQ(resolve(file("arm", std::string(reinterpret_cast<char*>(&header), sizeof header))).kind,
            ProgramKind::OTHER);
  header.e_machine = EM_X86_64;
  EXPECT_EQ(resolve(file("elf", std::string(reinterpret_cast<char*>(&header), sizeof header))).kind,
            ProgramKind::X86_64);
}

}  // namespace
}  // namespace ptkit::capture::plugin
