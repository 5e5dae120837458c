// Code in perf.data recordings: changes of kernel code, JIT code, and the search for files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "code/image/image.h"
#include "formats/perf_event/jit.h"
#include "formats/registry.h"
#include "trace/module_names.h"
#include "unit/support/makers/elf_maker.h"
#include "unit/support/makers/jit_maker.h"
#include "unit/support/makers/perf_sample.h"
#include "unit/support/scratch.h"
#include "unit/support/traces/missing.h"
#include "unit/support/warned.h"

namespace ptkit::formats {
namespace {

using test::Bytes;
using test::jit_header;
using test::jit_load;
using test::jit_move;
using test::jit_record;
using test::kEach;

std::string trace_of_cpu() { return test::auxtrace(0, kEach, 0, 0, test::small_stream()); }

class PerfCode : public ::testing::Test {
 protected:
  void open_file(const std::string& records, const test::Features& features = {},
                 const OpenOptions& options = {}) {
    auto opened = open(
        scratch_.write("perf.data",
                       test::perf_file({{}}, test::auxtrace_info() + records + trace_of_cpu(), features)),
        options);
    ASSERT_TRUE(opened.ok()) << opened.failure().detail;
    bundle_ = std::make_shared<trace::TraceBundle>(std::move(opened.value()));
  }
  // Returns the code at an address and a time; "": unknown.
  std::string code(trace::SpaceId space, std::uint64_t address, std::uint64_t tsc, std::size_t size = 4) {
    const code::image::Image image(bundle_);
    std::string out(size, '\0');
    const std::size_t there =
        image.view(space, tsc).read(address, {reinterpret_cast<std::uint8_t*>(out.data()), out.size()});
    return out.substr(0, there);
  }
  bool misses(const std::string& path, const std::string& build_id = {}, const std::string& reason = {}) {
    return std::ranges::any_of(ptkit::test::missing_files(*bundle_), [&](const ptkit::test::Missing& one) {
      return one.path == path && one.build_id == build_id && one.reason.find(reason) != std::string::npos;
    });
  }
  test::Scratch scratch_;
  std::shared_ptr<trace::TraceBundle> bundle_;
};

constexpr std::uint64_t kKernel = 0xffffffff81000000;

std::string ksymbol(std::uint64_t tsc, std::uint64_t address, std::uint32_t size, bool goes,
                    const std::string& name, std::uint16_t type = 2) {
  return test::event(
      17, 0, Bytes().add(address, size, type, static_cast<std::uint16_t>(goes ? 1 : 0)).text(name).str(),
      {.tsc = tsc});
}
std::string poke(std::uint64_t tsc, std::uint64_t address, const std::string& before,
                 const std::string& after) {
  std::string bytes = before + after;
  bytes.resize((bytes.size() + 4 + 7) / 8 * 8 - 4);
  return test::event(
      20, 1,
      Bytes()
          .add(address, static_cast<std::uint16_t>(before.size()), static_cast<std::uint16_t>(after.size()))
          .raw(bytes)
          .str(),
      {.tsc = tsc});
}

TEST_F(PerfCode, AppliesTextPokes) {
  open_file(poke(200, kKernel, "old!", "new!") + poke(400, kKernel, "new!", "last") +
            poke(300, kKernel + 8, "", "more"));
  EXPECT_EQ(code(0, kKernel, 100), "old!");
  EXPECT_EQ(code(0, kKernel, 200), "new!");
  EXPECT_EQ(code(0, kKernel, 399), "new!");
  EXPECT_EQ(code(0, kKernel, 400), "last");
  EXPECT_EQ(code(0, kKernel + 8, 299), "");
  EXPECT_EQ(code(0, kKernel + 8, 300), "more");
}

TEST_F(PerfCode, AddsAndEndsKernelSymbols) {
  const std::uint64_t page = 0xffffffffc0001000;
  open_file(ksymbol(100, page, 0x1000, false, "kprobe_insn_page") + poke(110, page + 16, "", "slot") +
            ksymbol(200, page, 0x1000, true, "kprobe_insn_page") +
            ksymbol(300, page, 0x1000, false, "kprobe_insn_page") + poke(310, page + 16, "", "next"));
  EXPECT_EQ(code(0, page + 16, 109), "");
  EXPECT_EQ(code(0, page + 16, 110), "slot");
  EXPECT_EQ(code(0, page + 16, 200), "");
  EXPECT_EQ(code(0, page + 16, 305), "");
  EXPECT_EQ(code(0, page + 16, 310), "next");
}

// Two functions of one program, "main" and "sub".
std::string program_table(std::uint64_t main, std::uint64_t sub) {
  Bytes data;
  data.raw("mainsub.").add(main, sub, std::uint32_t{4}, std::uint32_t{3});
  Bytes info;
  info.add(std::uint32_t{2}, std::uint32_t{7}, std::uint64_t{0}, std::uint32_t{7}, std::uint32_t{0},
           std::uint64_t{0});
  info.raw(std::string(104 - info.size(), '\0'))
      .add(std::uint32_t{2}, std::uint32_t{2}, std::uint64_t{8}, std::uint64_t{24});
  return Bytes()
      .add(std::uint32_t{1}, static_cast<std::uint32_t>(info.size()), static_cast<std::uint32_t>(data.size()),
           std::uint64_t{0})
      .raw(info.str())
      .raw(data.str())
      .str();
}

TEST_F(PerfCode, AddsBpfProgramsWhileLoaded) {
  const std::uint64_t main = 0xffffffffc0002000;
  const std::string records = ksymbol(100, main, 4, false, "bpf_prog_1_main", 1) +
                              ksymbol(100, main + 0x40, 3, false, "bpf_prog_1_sub", 1) +
                              ksymbol(500, main, 4, true, "bpf_prog_1_main", 1);
  open_file(records, {{25, program_table(main, main + 0x40)}});
  EXPECT_EQ(code(0, main, 99), "");
  EXPECT_EQ(code(0, main, 100), "main");
  EXPECT_EQ(code(0, main, 500), "");
  EXPECT_EQ(code(0, main + 0x40, 600), "sub");
  ASSERT_EQ(bundle_->files.size(), 2U);
  EXPECT_EQ(bundle_->files[0].symbols.at(0).name, "bpf_prog_1_main");
  const std::string table = program_table(main, main + 0x40);
  for (std::size_t size = 0; size < table.size(); ++size) open_file(records, {{25, table.substr(0, size)}});
  for (std::size_t at = 0; at < table.size(); ++at) {
    std::string damaged = table;
    damaged[at] = '\xff';
    open_file(records, {{25, damaged}});
  }
}

TEST_F(PerfCode, AddsJitdumpFunctionsFromTheirTime) {
  const std::string dump =
      scratch_.write("jit-10.dump", jit_header(1) + jit_load(200, 0x7000, 1, "first", "1111") +
                                        jit_load(300, 0x7000, 2, "second", "2222") +
                                        jit_record(2, 300, Bytes().raw("debug information")) +
                                        jit_move(400, 0x8000, 4, 1) + jit_record(3, 500, {}));
  open_file(test::comm({}, "java", true) + test::mmap2({.tsc = 100}, 0x5000, 0x1000, 0, dump) +
            test::mmap2({.tsc = 100}, 0x7000, 0x2000, 0, "//anon") +
            test::mmap2({.tsc = 350}, 0x7000, 0x2000, 0, "//anon"));
  EXPECT_EQ(code(1, 0x7000, 150), "");
  EXPECT_EQ(code(1, 0x7000, 200), "1111");
  EXPECT_EQ(code(1, 0x7000, 360), "2222");
  EXPECT_EQ(code(1, 0x8000, 360), "");
  EXPECT_EQ(code(1, 0x8000, 400), "1111");
  EXPECT_EQ(bundle_->warnings.size(), 0U);
  const auto file =
      std::ranges::find_if(bundle_->files, [](const trace::ImageFile& one) { return !one.symbols.empty(); });
  ASSERT_NE(file, bundle_->files.end());
  ASSERT_EQ(file->symbols.size(), 2U);
  EXPECT_EQ(file->symbols[1].name, "second");
  const auto region = std::ranges::find_if(bundle_->code, [](const trace::CodeRegion& one) {
    return one.address == 0x7000 && one.tsc_from == 300;
  });
  EXPECT_EQ(region->file_offset, file->symbols[1].file_offset);
}

// JIT code where a file was mapped before.
TEST_F(PerfCode, JitdumpFunctionsAreNoMovedCode) {
  ptkit::test::Elf64Maker maker;
  maker.type = ET_DYN;
  maker.segments.push_back({PT_LOAD, 0x1000, 0x1000, 0x1000, 0x1000});
  ptkit::test::ByteVector bytes = maker.make();
  bytes.resize(0x2000, 'f');
  const std::string library = scratch_.write("lib.so", {bytes.begin(), bytes.end()});
  const std::string dump =
      scratch_.write("jit-10.dump", jit_header(1) + jit_load(200, 0x7000, 1, "first", "1111"));
  open_file(test::mmap2({.tsc = 100}, 0x5000, 0x1000, 0, dump) +
            test::mmap2({.tsc = 110}, 0x7000, 0x1000, 0x1000, library) +
            test::mmap2({.tsc = 350}, 0x7000, 0x1000, 0, "//anon"));
  EXPECT_EQ(code(1, 0x7000, 150), "ffff");
  EXPECT_EQ(code(1, 0x7000, 360), "1111");
}

// mprotect() on JIT memory hides no JIT code. After exec() the memory holds none.
TEST_F(PerfCode, InheritsJitdumpFunctions) {
  const std::string dump =
      scratch_.write("jit-10.dump", jit_header(1) + jit_load(200, 0x7000, 1, "first", "1111"));
  const auto memory = [](std::uint64_t tsc) {
    return test::mmap2({.pid = 20, .tid = 20, .tsc = tsc}, 0x7000, 0x2000, 0, "//anon");
  };
  open_file(test::mmap2({.tsc = 100}, 0x5000, 0x1000, 0, dump) +
            test::fork({.pid = 20, .tid = 20, .tsc = 300}, 10, 10) + memory(400) +
            test::comm({.pid = 20, .tid = 20, .tsc = 500}, "other", true) + memory(600));
  EXPECT_EQ(code(2, 0x7000, 350), "1111");
  EXPECT_EQ(code(2, 0x7000, 450), "1111");
  EXPECT_EQ(code(2, 0x7000, 550), "");
  EXPECT_EQ(std::ranges::count_if(bundle_->code, [](const auto& one) { return one.size == 0x2000; }), 1);
}

TEST_F(PerfCode, NamesMalformedJitdumps) {
  const auto with = [&](const std::string& contents) {
    open_file(test::mmap2({.tsc = 100}, 0x5000, 0x1000, 0, scratch_.write("jit-10.dump", contents)));
  };
  const std::string dump = scratch_.at("jit-10.dump");
  const std::string good = jit_header(0) + jit_load(200, 0x7000, 1, "first", "1111");
  with(good);
  EXPECT_TRUE(warns_at(bundle_->warnings, dump, WarningCode::JITDUMP_NO_TSC));
  EXPECT_EQ(code(1, 0x7000, 100), "1111");
  with("something else");
  EXPECT_TRUE(warns_at(bundle_->warnings, dump, WarningCode::JITDUMP_INVALID));
  with(good.substr(0, good.size() - 1));
  EXPECT_TRUE(warns_at(bundle_->warnings, dump, WarningCode::JITDUMP_CUT, 40));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string damaged = good;
    damaged[at] = '\xff';
    with(damaged);
  }
  open_file(test::mmap2({.tsc = 100}, 0x5000, 0x1000, 0, "/nowhere/jit-7.dump"));
  EXPECT_TRUE(misses("/nowhere/jit-7.dump"));
  EXPECT_EQ(ptkit::test::missing_files(*bundle_).size(), 1U);
}

TEST(PerfJit, RecognisesJitdumpNames) {
  EXPECT_TRUE(trace::is_jit_dump("/root/.debug/jit/jit-1234.dump"));
  EXPECT_TRUE(trace::is_jit_dump("jit-1.dump"));
  for (const char* const other : {"jit-.dump", "/a/jit-12.dump2", "/jit-12x.dump", "/a/xjit-1.dump", ""})
    EXPECT_FALSE(trace::is_jit_dump(other)) << other;
}

TEST(PerfJit, ParsesPerfMaps) {
  const auto names = perf::read_jit_map(
      "7f0010 20 first\n0x7f0100 0x8 a name with blanks\nbad\n12 zz x\n7f0200 4\n7f0300 1 last");
  ASSERT_EQ(names.size(), 3U);
  EXPECT_EQ(names[0].file_offset, 0x7f0010U);
  EXPECT_EQ(names[0].size, 0x20U);
  EXPECT_EQ(names[1].name, "a name with blanks");
  EXPECT_EQ(names[2].name, "last");
}

TEST(PerfJit, TakesAnyBlanksBetweenFieldsOfPerfMaps) {
  const std::string text =
      " 7f10 2f indented\n7f20\t0X10\ttabs\n0X7f30  1  two  blanks \t\r\n0x0x40 1 two prefixes\n7f50 -1 "
      "sign\n"
      "7f60 1\n7f70 1 \n \t\n10000000000000000 1 long\n";
  const auto names = perf::read_jit_map(text);
  ASSERT_EQ(names.size(), 3U);
  EXPECT_EQ(names[0].name, "indented");
  EXPECT_EQ(names[0].file_offset, 0x7f10U);
  EXPECT_EQ(names[1].name, "tabs");
  EXPECT_EQ(names[1].size, 0x10U);
  EXPECT_EQ(names[2].name, "two  blanks");
  EXPECT_EQ(names[2].file_offset, 0x7f30U);
}

TEST_F(PerfCode, NamesMemoryByPerfMaps) {
  scratch_.write("perf-10.map", "7010 10 made\n");
  open_file(test::mmap2({.tsc = 100}, 0x7000, 0x1000, 0, "//anon") +
                test::mmap2({.pid = 11, .tid = 11, .tsc = 100}, 0x7000, 0x1000, 0, "//anon"),
            {}, {.binaries = {scratch_.path()}});
  ASSERT_EQ(bundle_->code.size(), 2U);
  const trace::CodeRegion& region = bundle_->code[0];
  EXPECT_EQ(region.file_offset, 0x7000U);
  EXPECT_EQ(bundle_->files.at(static_cast<std::size_t>(region.file)).symbols.at(0).name, "made");
  EXPECT_EQ(bundle_->warnings.size(), 0U);
  EXPECT_TRUE(bundle_->files.at(static_cast<std::size_t>(bundle_->code[1].file)).symbols.empty());
}

// A recording of this machine uses maps in /tmp.
TEST_F(PerfCode, ReadsPerfMapsOfThisMachine) {
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  std::ofstream(path) << "7010 10 made\n";
  const auto self = static_cast<std::uint32_t>(::getpid());
  const std::string records =
      test::mmap2({.pid = self, .tid = self, .tsc = 100}, 0x7000, 0x1000, 0, "//anon");
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  open_file(records, {{3, test::text_feature(host.data())}});
  EXPECT_EQ(bundle_->files.at(0).path, path);
  open_file(records, {{3, test::text_feature("somewhere else")}});
  EXPECT_NE(bundle_->files.at(0).path, path);
  std::filesystem::remove(path);
}

TEST_F(PerfCode, SearchesFoldersOfBinariesFirst) {
  const std::string folder = scratch_.path();
  const std::string recorded = scratch_.write("program", "here");
  scratch_.write("root/opt/app/tool", "deep");
  scratch_.write("flat/tool", "flat");
  const std::string records = test::mmap2({.tsc = 100}, 0x7000, 0x1000, 0, "/opt/app/tool") +
                              test::mmap2({.tsc = 100}, 0x9000, 0x1000, 0, recorded);
  open_file(records);
  EXPECT_TRUE(misses("/opt/app/tool"));
  EXPECT_EQ(code(1, 0x9000, 100), "here");
  open_file(records, {}, {.binaries = {folder + "/root", folder + "/flat"}});
  EXPECT_EQ(code(1, 0x7000, 100), "deep");
  open_file(records, {}, {.binaries = {folder + "/flat", folder + "/root"}});
  EXPECT_EQ(code(1, 0x7000, 100), "flat");
  EXPECT_TRUE(ptkit::test::missing_files(*bundle_).empty());
}

// A program of four bytes of code at 0x200, with a build-id of four bytes.
std::string program(const std::string& code, std::uint8_t last_of_id, std::uint32_t type = SHT_PROGBITS) {
  ptkit::test::Elf64Maker maker;
  maker.add({".text", type, SHF_ALLOC | SHF_EXECINSTR, 0x200, {code.begin(), code.end()}, 0, 0, 0});
  maker.add(
      {".note", SHT_NOTE, SHF_ALLOC, 0, ptkit::test::build_id_note({0xab, 0xcd, 0xef, last_of_id}), 0, 0, 0});
  const auto& note = maker.sections[1];
  maker.segments.push_back({PT_NOTE, 0, note.offset, note.contents.size(), 0, 4});
  const ptkit::test::ByteVector bytes = maker.make();
  return {bytes.begin(), bytes.end()};
}

// Maps a file with the build-id abcdef01.
std::string mapped_build(const std::string& path) {
  Bytes body;
  body.add(std::uint32_t{10}, std::uint32_t{10}, std::uint64_t{0x7000}, std::uint64_t{0x1000},
           std::uint64_t{0x200}, std::uint32_t{4}, std::uint32_t{0x01efcdab});
  body.raw(std::string(16, '\0')).add(std::uint32_t{5}, std::uint32_t{2}).text(path);
  return test::event(10, 1U << 14U | 2U, body.str(), {.tsc = 100});
}

// Output of `objcopy --only-keep-debug`, as in debug packages: it has the same build-id.
TEST_F(PerfCode, SkipsFilesWithDebugInformationOnly) {
  const std::string path = scratch_.write("app", program("code", 1));
  scratch_.write("store/.build-id/ab/cdef01/elf", program("none", 1, SHT_NOBITS));
  open_file(mapped_build(path), {}, {.binaries = {scratch_.at("store")}});
  EXPECT_EQ(code(1, 0x7000, 100), "code");
  std::filesystem::remove(path);
  open_file(mapped_build(path), {}, {.binaries = {scratch_.at("store")}});
  EXPECT_EQ(code(1, 0x7000, 100), "");
  EXPECT_TRUE(misses(path, "abcdef01", "has debug information only"));
}

// The kernel marks a replaced file as deleted. A folder of binaries may have a copy.
TEST_F(PerfCode, SkipsTheCurrentFileOfADeletedPath) {
  const std::string path = scratch_.write("app", "new!");
  const std::string records = test::mmap2({.tsc = 100}, 0x7000, 0x1000, 0, path + " (deleted)");
  open_file(records);
  EXPECT_EQ(code(1, 0x7000, 100), "");
  EXPECT_TRUE(misses(path + " (deleted)"));
  scratch_.write("copies/app", "old!");
  open_file(records, {}, {.binaries = {scratch_.at("copies")}});
  EXPECT_EQ(code(1, 0x7000, 100), "old!");
}

TEST_F(PerfCode, RefusesAnotherBuildId) {
  const std::string path = scratch_.write("app", program("new!", 2));
  const std::string records = mapped_build(path);
  open_file(records);
  EXPECT_EQ(code(1, 0x7000, 100), "");
  EXPECT_TRUE(misses(path, "abcdef01", path + " has abcdef02"));
  scratch_.write("store/.build-id/ab/cdef01/elf", program("old!", 1));
  open_file(records, {}, {.binaries = {scratch_.at("store")}});
  EXPECT_EQ(code(1, 0x7000, 100), "old!");
  // The folder PATH.debug of an exported bundle.
  scratch_.write("perf.data.debug/.build-id/ab/cdef01/elf", program("old!", 1));
  open_file(records);
  EXPECT_EQ(code(1, 0x7000, 100), "old!");
  EXPECT_TRUE(ptkit::test::missing_files(*bundle_).empty());
}

// Sets an environment variable until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST_F(PerfCode, FindsDeletedFilesInCachesByBuildId) {
  const Variable home("HOME", scratch_.at("home"));
  const Variable xdg("XDG_CACHE_HOME", "");
  const Variable debuginfod("DEBUGINFOD_CACHE_PATH", "");
  const std::string gone = "/nowhere/app";
  open_file(mapped_build(gone));
  EXPECT_EQ(code(1, 0x7000, 100), "");
  EXPECT_TRUE(misses("/nowhere/app", "abcdef01"));
  const auto found_at = [&](const std::string& name) {
    SCOPED_TRACE(name);
    scratch_.write(name, program("code", 1));
    open_file(mapped_build(gone));
    EXPECT_EQ(code(1, 0x7000, 100), "code");
    EXPECT_TRUE(ptkit::test::missing_files(*bundle_).empty());
    std::filesystem::remove(scratch_.at(name));
  };
  found_at("home/.debug/.build-id/ab/cdef01/elf");
  found_at("home/.cache/debuginfod_client/abcdef01/executable");
  const Variable given("DEBUGINFOD_CACHE_PATH", scratch_.at("cache"));
  found_at("cache/abcdef01/executable");
  // A file of another build is reported with its build-id.
  scratch_.write("cache/abcdef01/executable", program("code", 2));
  open_file(mapped_build(gone));
  EXPECT_TRUE(misses("/nowhere/app", "abcdef01", "abcdef01/executable has abcdef02"));
}

TEST_F(PerfCode, TakesTheVdsoFromPerfsCacheOrThisSystem) {
  const Variable home("HOME", scratch_.at("home"));
  scratch_.write("home/.debug/.build-id/ab/cdef01/vdso", program("vdso", 1));
  open_file(mapped_build("[vdso]"));
  EXPECT_EQ(code(1, 0x7000, 100), "vdso");
  std::filesystem::remove(scratch_.at("home/.debug/.build-id/ab/cdef01/vdso"));
  open_file(mapped_build("[vdso]"));  // this system's vDSO has another build-id
  EXPECT_EQ(code(1, 0x7000, 100), "");
  EXPECT_TRUE(misses("[vdso]", "abcdef01", "this system has "));
  // The build-id table names this system's vDSO, which is read from memory.
  std::string own;
  for (const ptkit::test::Missing& one : ptkit::test::missing_files(*bundle_)) {
    const std::size_t at = one.reason.find("this system has ");
    if (at != std::string::npos) own = one.reason.substr(at + 16);
  }
  if (own == "none") GTEST_SKIP() << "this system's vDSO has no build-id";
  Bytes id;
  id.add(std::uint32_t{10});
  for (std::size_t i = 0; i < 20; ++i)
    id.add(static_cast<std::uint8_t>(std::stoul(own.substr(2 * i, 2), nullptr, 16)));
  id.add(std::uint8_t{20}, std::uint8_t{0}, std::uint16_t{0}).text("[vdso]");
  open_file(test::mmap2({.tsc = 100}, 0x7000, 0x1000, 0, "[vdso]"), {{2, test::record(67, 2, id.str())}});
  EXPECT_EQ(code(1, 0x7000, 100),
            "\x7f"
            "ELF");
}

// A library is replaced at its address. The later one is used, even if its bytes are missing.
TEST_F(PerfCode, UsesTheLaterMappingOfAnAddress) {
  const std::string first = scratch_.write("first", "1111");
  const std::string second = scratch_.write("second", "2222");
  open_file(test::mmap2({.tsc = 100}, 0x7000, 0x1000, 0, first) +
            test::mmap2({.tsc = 200}, 0x7000, 0x1000, 0, second) +
            test::mmap2({.tsc = 300}, 0x7000, 0x1000, 0, "/nowhere/third"));
  EXPECT_EQ(code(1, 0x7000, 150), "1111");
  EXPECT_EQ(code(1, 0x7000, 250), "2222");
  EXPECT_EQ(code(1, 0x7000, 300), "");
}

// perf record --per-thread records no times without -T.
TEST_F(PerfCode, WarnsOfOverlappingMappingsWithoutTimes) {
  const std::string path = scratch_.write("first", "1111");
  const std::string first = test::mmap2({}, 0x5000, 0x1000, 0, path);
  const auto doubted = [&](const std::string& records) {
    open_file(first + records);
    return warns(*bundle_, WarningCode::NO_TIMESTAMPS);
  };
  EXPECT_FALSE(doubted(first + test::mmap2({}, 0x5800, 0x1000, 0x800, path)));
  EXPECT_FALSE(doubted(test::mmap2({}, 0x6000, 0x1000, 0, "/nowhere/second")));
  EXPECT_FALSE(doubted(test::mmap2({.tsc = 100}, 0x5000, 0x1000, 0, "/nowhere/second")));
  EXPECT_FALSE(doubted(test::mmap2({.pid = 11, .tid = 11}, 0x5000, 0x1000, 0, "/nowhere/second")));
  EXPECT_FALSE(doubted(test::mmap2({}, 0x5000, 0x1000, 0, "//anon")));
  EXPECT_TRUE(doubted(test::mmap2({}, 0x5000, 0x1000, 0, "/nowhere/second")));
  EXPECT_TRUE(doubted(test::mmap2({}, 0x5800, 0x1000, 0, path)));
  EXPECT_TRUE(doubted(test::mmap2({}, 0x4000, 0x2000, 0, "/nowhere/second")));
  EXPECT_TRUE(doubted(test::fork({.pid = 11, .tid = 11}, 10, 10) +
                      test::mmap2({.pid = 11, .tid = 11}, 0x5000, 0x1000, 0, "/nowhere/second")));
  // The time of exec() is unknown, so that earlier mappings stay.
  EXPECT_FALSE(doubted(test::comm({}, "other", true)));
  EXPECT_EQ(code(1, 0x5000, 100), "1111");
}

}  // namespace
}  // namespace ptkit::formats
