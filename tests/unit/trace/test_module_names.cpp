#include <gtest/gtest.h>

#include "trace/module_names.h"

namespace ptkit::trace {
namespace {

TEST(ModuleNames, PathsExtensionsAndCaseDoNotMatter) {
  EXPECT_TRUE(is_same_module("srv2", "C:\\Windows\\System32\\drivers\\SRV2.SYS"));
  EXPECT_TRUE(is_same_module("srv2.pdb", "srv2.sys"));
  EXPECT_TRUE(is_same_module("/usr/lib/libc.so.6", "libc.so.6"));
  EXPECT_TRUE(is_same_module("nt", "ntoskrnl.exe"));
  EXPECT_TRUE(is_same_module("ntkrnlmp.pdb", "\\SystemRoot\\ntoskrnl.exe"));
}

TEST(ModuleNames, ProgramsAndLibrariesOfOneNameDiffer) {
  EXPECT_FALSE(is_same_module("app.exe", "app.dll"));
  EXPECT_FALSE(is_same_module("srv2", "srv.sys"));
  EXPECT_FALSE(is_same_module("libc.so.6", "libc.so"));
  EXPECT_FALSE(is_same_module("", ""));
  EXPECT_FALSE(is_same_module(".exe", ""));
}

TEST(ModuleNames, FilesWithNamesOfJitCodeHaveThePid) {
  EXPECT_EQ(pid_of_jit_map("/tmp/perf-4711.map"), 4711);
  EXPECT_EQ(pid_of_jit_map("perf-0.map"), 0);
  for (const char* const other : {"perf-.map", "/tmp/perf-1.map2", "perf-1x.map", "/a/xperf-1.map",
                                  "perf--1.map", "jit-1.dump", "perf-99999999999999999999.map", ""})
    EXPECT_FALSE(pid_of_jit_map(other).has_value()) << other;
}

}  // namespace
}  // namespace ptkit::trace
