// Files parsed in this process or in confined processes: equal answers, and the effect of hostile answers.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>

#include "capture/linux/files/file_parser.h"
#include "capture/linux/files/symbol_finder.h"
#include "capture/linux/sideband/system_processes.h"
#include "code/bounds/table.h"
#include "code/image/files/imports.h"
#include "foreign_process.h"
#include "formats/registry.h"
#include "unit/capture/linux/perf/recording.h"
#include "unit/support/makers/jit_maker.h"
#include "unit/support/scratch.h"
#include "unit/support/warned.h"

namespace ptkit::capture::test {
namespace {

using capture::confined::ConfinedProcesses;
using Kind = ParseRequest::Kind;
using Encoded = std::vector<std::uint8_t>;
using formats::test::jit_header;
using formats::test::jit_load;
using formats::test::jit_move;

std::unique_ptr<ConfinedProcesses> forked(const capture::confined::Work& work = parse) {
  return std::make_unique<ConfinedProcesses>(work);
}
std::unique_ptr<ConfinedProcesses> executed() {
  return std::make_unique<ConfinedProcesses>(std::string(PTKIT_TEST_PARSER));
}

std::uint64_t size_of(const Fd& file) {
  struct stat info {};
  return ::fstat(file.get(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

// The C library: it has many symbols.
std::string c_library() {
  Dl_info info{};
  return ::dladdr(reinterpret_cast<const void*>(&::getppid), &info) != 0
             ? std::filesystem::canonical(info.dli_fname).string()
             : "";
}

class FileParserTest : public ::testing::Test {
 protected:
  FileParserTest() { ::alarm(120); }
  ~FileParserTest() override { ::alarm(0); }

  static ParsedFile parse(FileParser& parser, ParseRequest request, const std::string& path) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (request.file_bytes == 0) request.file_bytes = size_of(file);
    return parser.parse(request, file, path);
  }
  static std::string texts(const std::vector<std::string>& all) {
    std::string out;
    for (const std::string& one : all) out += one + "\n";
    return out;
  }

  formats::test::Scratch scratch_;
};

void expect_same(const ParsedFile& a, const ParsedFile& b) {
  EXPECT_EQ(a.build_id, b.build_id);
  EXPECT_EQ(a.problem, b.problem);
  EXPECT_EQ(a.similar, b.similar);
  EXPECT_TRUE(std::ranges::equal(a.symbols, b.symbols, [](const auto& one, const auto& other) {
    return one.name == other.name && one.file_offset == other.file_offset && one.size == other.size;
  }));
  EXPECT_TRUE(std::ranges::equal(a.spans, b.spans, [](const auto& one, const auto& other) {
    return one.offset == other.offset && one.size == other.size;
  }));
  EXPECT_TRUE(std::ranges::equal(a.functions, b.functions, [](const auto& one, const auto& other) {
    return one.tsc == other.tsc && one.address == other.address && one.size == other.size &&
           one.file_offset == other.file_offset;
  }));
}

TEST_F(FileParserTest, ConfinedAndInProcessAnswersAreEqual) {
  FileParser here(nullptr);
  FileParser copies(forked());
  FileParser programs(executed());
  EXPECT_EQ(here.fork_server(), 0);
  const std::string dump = scratch_.write(
      "jit-1.dump", jit_header(1) + jit_load(9, 0x1000, 1, "f", "1111") + jit_move(10, 0x2000, 4, 1));
  const std::string text = scratch_.write("text", "no ELF file");
  for (const std::string& path : {c_library(), std::string("/proc/self/exe"), dump, text}) {
    for (const Kind kind : {Kind::BUILD_ID, Kind::SYMBOLS, Kind::FUNCTIONS, Kind::SIMILAR, Kind::JIT_DUMP}) {
      const ParseRequest request{.kind = kind, .name = "getppid", .tsc = 5};
      const ParsedFile direct = parse(here, request, path);
      expect_same(direct, parse(copies, request, path));
      expect_same(direct, parse(programs, request, path));
    }
  }
  for (FileParser* const confined : {&copies, &programs}) {
    EXPECT_GT(confined->fork_server(), 0);
    EXPECT_GT(parse(*confined, {Kind::SYMBOLS}, c_library()).symbols.size(), 1000U);
    const ParseRequest function{.kind = Kind::FUNCTIONS, .name = "getppid"};
    EXPECT_FALSE(parse(*confined, function, c_library()).spans.empty());
    EXPECT_EQ(parse(*confined, {.kind = Kind::JIT_DUMP}, dump).functions.size(), 2U);
    EXPECT_EQ(confined->warnings(), std::vector<trace::Warning>());
  }
}

TEST_F(FileParserTest, PrivilegedProcessesDoNotParse) {
  const FileParser parser;
  EXPECT_EQ(parser.fork_server() != 0, ::geteuid() == 0);
}

TEST_F(FileParserTest, ReportsAMissingParser) {
  FileParser parser(std::make_unique<ConfinedProcesses>(scratch_.at("none")));
  EXPECT_EQ(parser.fork_server(), 0);
  EXPECT_TRUE(parse(parser, {Kind::SYMBOLS}, c_library()).symbols.empty());
  EXPECT_EQ(parser.warnings(), std::vector{warn(WarningCode::FILES_NOT_PARSED, c_library(),
                                                "no process could be started: No such file or directory")});
}

TEST_F(FileParserTest, ReportsShrunkFiles) {
  const std::string path = scratch_.write("file", "contents");
  FileParser here(nullptr);
  FileParser confined(executed());
  for (FileParser* const one : {&here, &confined}) {
    FileParser& parser = *one;
    EXPECT_FALSE(parse(parser, {Kind::SYMBOLS, 8}, path).shrunk);
    EXPECT_TRUE(parse(parser, {Kind::SYMBOLS, 4096}, path).shrunk);
  }
}

// A parser that crashes, hangs or gives invalid answers for some files.
Encoded parse_or_crash(base::Bytes request, const Fd& file) {
  std::array<char, 5> begin{};
  const ssize_t got = ::pread(file.get(), begin.data(), begin.size(), 0);
  const std::string text(begin.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (text == "crash") ::_exit(*static_cast<volatile int*>(nullptr));
  if (text == "ended") ::_exit(7);
  if (text == "none!") return {};
  return parse(request, file);
}

TEST_F(FileParserTest, HostileFilesLoseOnlyTheirOwnSymbols) {
  FileParser parser(forked(parse_or_crash));
  for (const char* const what : {"crash", "ended", "none!"}) {
    const std::string path = scratch_.write(what, what);
    EXPECT_TRUE(parse(parser, {Kind::SYMBOLS}, path).symbols.empty());
    EXPECT_FALSE(parse(parser, {Kind::SYMBOLS}, c_library()).symbols.empty());
  }
  const std::string other = scratch_.write("crash too", "crash");
  static_cast<void>(parse(parser, {Kind::SYMBOLS}, other));
  const auto missing = [&](const std::string& names, const std::string& problem) {
    return warn(WarningCode::FILES_NOT_PARSED, names, "the process " + problem);
  };
  EXPECT_EQ(parser.warnings(),
            (std::vector{missing(scratch_.at("ended"), "ended with status 7"),
                         missing(scratch_.at("none!"), "gave an invalid answer"),
                         missing(scratch_.at("crash") + ", " + other, "was killed by signal 11")}));
}

TEST_F(FileParserTest, WarningsNameUpToTwentyFiles) {
  FileParser parser(forked(parse_or_crash));
  for (int i = 0; i < 22; ++i)
    static_cast<void>(
        parse(parser, {Kind::SYMBOLS}, scratch_.write("crash" + std::to_string(100 + i), "crash")));
  ASSERT_EQ(parser.warnings().size(), 1U);
  EXPECT_TRUE(parser.warnings().front().arguments.at(0).ends_with("crash119 and 2 more"));
}

// ---- answers

class ParseAnswers : public ::testing::Test {
 protected:
  static Encoded answer_to(const ParseRequest& request, const std::string& contents) {
    const formats::test::Scratch scratch;
    const Fd file(::open(scratch.write("file", contents).c_str(), O_RDONLY | O_CLOEXEC));
    return parse(encode(request), file);
  }
  // An answer with an empty build-id and one symbol.
  static Encoded with_symbol(std::uint64_t offset, const std::string& name) {
    const std::string dump = jit_header(1) + jit_load(9, 0x1000, 1, std::string(name.size(), 'x'), "1111");
    Encoded out = answer_to({.kind = Kind::JIT_DUMP, .file_bytes = dump.size()}, dump);
    constexpr std::size_t kName = 1 + 8 + 8 + 8;  // shrunk, length of the build-id, count, length of the name
    std::copy(name.begin(), name.end(), out.begin() + kName);
    for (std::size_t i = 0; i < 8; ++i)
      out[kName + name.size() + i] = static_cast<std::uint8_t>(offset >> (8 * i));
    return out;
  }
};

TEST_F(ParseAnswers, RejectsInvalidAnswers) {
  const ParseRequest request{.kind = Kind::JIT_DUMP, .file_bytes = 1000};
  EXPECT_TRUE(decode(request, with_symbol(999, "name")));
  EXPECT_FALSE(decode(request, with_symbol(1000, "name")));
  EXPECT_FALSE(decode(request, with_symbol(999, std::string("na\0e", 4))));
  // Code after the end of the file, and code before its jitdump was mapped.
  EXPECT_FALSE(decode({.kind = Kind::JIT_DUMP, .file_bytes = 50}, with_symbol(9, "name")));
  EXPECT_FALSE(decode({.kind = Kind::JIT_DUMP, .file_bytes = 1000, .tsc = 10}, with_symbol(9, "name")));
  Encoded longer = with_symbol(9, "name");
  longer.push_back(0);
  EXPECT_FALSE(decode(request, longer));
  EXPECT_FALSE(decode(request, {}));
}

TEST_F(ParseAnswers, DamagedAnswersAreRejectedOrStayInTheFile) {
  const ParseRequest request{.kind = Kind::JIT_DUMP, .file_bytes = 1000};
  const Encoded good = with_symbol(100, "name");
  ASSERT_TRUE(decode(request, good));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(decode(request, base::Bytes(good).first(size))) << size;
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    Encoded damaged = good;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
    const auto parsed = decode(request, damaged);
    if (!parsed) continue;
    for (const trace::SymbolEntry& one : parsed->symbols) ASSERT_LT(one.file_offset, request.file_bytes);
    for (const JitFunction& one : parsed->functions)
      ASSERT_LE(one.file_offset + one.size, request.file_bytes);
  }
}

TEST_F(ParseAnswers, RejectsDamagedRequests) {
  const Encoded request = encode({.kind = Kind::SYMBOLS, .file_bytes = 8});
  const Fd none;
  EXPECT_TRUE(parse(base::Bytes(request).first(request.size() - 1), none).empty());
}

// ---- recordings

class ParsedRecordings : public FileParserTest {
 protected:
  // The bundle of the process's code.
  trace::TraceBundle record(pid_t pid, FileParser& parser) {
    const std::string path = scratch_.at("out.ptk");
    auto writer = formats::PtkWriter::create(path);
    EXPECT_TRUE(writer.ok());
    writer.value().info({});
    BundleOutput output(std::move(writer.value()), 0, parser);
    SystemProcesses processes(output, true, false);
    processes.begin(pid, 1);
    processes.save_code(pid);
    warnings_ = processes.warnings();
    EXPECT_TRUE(output.finish().ok());
    auto bundle = formats::open(path, {});
    EXPECT_TRUE(bundle.ok()) << bundle.failure().detail;
    std::filesystem::remove(path);
    return std::move(bundle.value());
  }
  static const trace::ImageFile* file_of(const trace::TraceBundle& bundle, const std::string& path) {
    const auto at = std::ranges::find(bundle.files, path, &trace::ImageFile::path);
    return at == bundle.files.end() ? nullptr : &*at;
  }

  std::vector<trace::Warning> warnings_;
};

TEST_F(ParsedRecordings, ConfinedAndInProcessBundlesAreEqual) {
  FileParser here(nullptr);
  FileParser confined(executed());
  const ForeignProcess process([] { return true; });
  const trace::TraceBundle one = record(process.pid(), here);
  const trace::TraceBundle other = record(process.pid(), confined);
  ASSERT_EQ(one.files.size(), other.files.size());
  std::size_t symbols = 0;
  for (std::size_t i = 0; i < one.files.size(); ++i) {
    EXPECT_EQ(one.files[i].path, other.files[i].path);
    EXPECT_EQ(one.files[i].build_id, other.files[i].build_id);
    ASSERT_EQ(one.files[i].symbols.size(), other.files[i].symbols.size());
    symbols += one.files[i].symbols.size();
    EXPECT_EQ(one.files[i].unwind, other.files[i].unwind);
    EXPECT_EQ(one.files[i].imports, other.files[i].imports);
  }
  EXPECT_GT(symbols, 1000U);
  ASSERT_NE(file_of(other, "[vdso]"), nullptr);
  EXPECT_FALSE(file_of(other, "[vdso]")->symbols.empty());
  EXPECT_FALSE(file_of(other, "[vdso]")->unwind.empty());
  ASSERT_NE(file_of(other, c_library()), nullptr);
  EXPECT_EQ(file_of(other, c_library())->unwind,
            code::bounds::UnwindTable(trace::TraceBuffer::map_file(c_library()).value().bytes()).encode());
  EXPECT_FALSE(file_of(other, c_library())->imports.empty());
  EXPECT_EQ(file_of(other, c_library())->imports,
            code::image::Imports(trace::TraceBuffer::map_file(c_library()).value().bytes()).encode());
}

TEST_F(ParsedRecordings, WarnsOfFilesThatCrashTheParser) {
  FileParser parser(forked(parse_or_crash));
  ::chmod(scratch_.path().c_str(), 0777);
  const std::string code = scratch_.at("code");
  const ForeignProcess process([&] {
    std::ofstream(code) << "crash" << std::string(4096, 'c');
    return map_code(code, 4096) != MAP_FAILED;
  });
  ASSERT_TRUE(process.worked());
  const trace::TraceBundle bundle = record(process.pid(), parser);
  EXPECT_TRUE(warns(warnings_, WarningCode::FILES_NOT_PARSED, code)) << ::testing::PrintToString(warnings_);
  ASSERT_NE(file_of(bundle, code), nullptr);
  ASSERT_NE(file_of(bundle, c_library()), nullptr);
  EXPECT_FALSE(file_of(bundle, c_library())->symbols.empty());
  const auto region = std::ranges::find_if(bundle.code, [&](const trace::CodeRegion& one) {
    return one.file >= 0 && bundle.files[static_cast<std::size_t>(one.file)].path == code;
  });
  ASSERT_NE(region, bundle.code.end());
  EXPECT_EQ(region->bytes.size(), 4096U);  // the bundle has its code
}

TEST_F(ParsedRecordings, FindsFunctionsWithoutPrivileges) {
  FileParser parser(executed());
  SymbolFinder finder(parser);
  const auto spans = finder.find(::getpid(), c_library(), "getppid");
  EXPECT_FALSE(spans.empty());
  EXPECT_EQ(finder.find(::getpid(), c_library(), "getppid").size(), spans.size());
  EXPECT_TRUE(finder.find(::getpid(), c_library(), "getpppid").empty());
  const std::vector<std::string> similar = finder.similar("getpppid");
  EXPECT_NE(std::ranges::find(similar, "getppid"), similar.end()) << texts(similar);
}

class ParsedRecorders : public PerfRecording {};

TEST_F(ParsedRecorders, ParserProcessesEndWithTheRecording) {
  kernel_.script.emplace_back([](FakeKernel& kernel) { kernel.write(0, Bytes(100, 0)); });
  ASSERT_TRUE(record().ok());
  ASSERT_NE(recorder_, nullptr);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  options_.output = "/nowhere/at/all.ptk";
  EXPECT_NE(refused(), "");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace ptkit::capture::test
