// Code and symbols of a kernel.
#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "kernel_files.h"
#include "unit/capture/linux/output/bundle_fixture.h"

namespace ptkit::capture::test {
namespace {

TEST_F(KernelCodeTest, FindsPartsAndFunctionsInKallsyms) {
  KernelCode kernel(files_);
  ASSERT_FALSE(kernel.find_parts());
  ASSERT_EQ(kernel.parts().size(), 3U);
  EXPECT_EQ(kernel.parts()[0].end, 0xffffffff81002000U);
  EXPECT_EQ(kernel.parts()[1].name, "[__builtin__ftrace]");  // generated at run time
  EXPECT_EQ(kernel.parts()[1].begin, 0xffffffffc0011000U);
  EXPECT_EQ(kernel.parts()[1].end, 0xffffffffc0012000U);
  EXPECT_EQ(kernel.parts()[2].name, "[a_b]");
  EXPECT_EQ(kernel.parts()[2].end, 0xffffffffc0001000U);  // data follows
  EXPECT_EQ(kernel.find("work", "").size(), 2U);
  const auto found = kernel.find("work", "a-b.ko");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].first, 0xffffffffc0000020U);
  EXPECT_EQ(kernel.find("work", "vmlinux")[0].last, 0xffffffff81001fffU);
}

// Symbols of generated code have no sizes, and data may follow.
TEST_F(KernelCodeTest, BoundsGeneratedCode) {
  write("symbols",
        "ffffffff81000000 T _stext\nffffffff81002000 T _etext\n"
        "ffffffffc0000000 t first\t[a_b]\n"
        "ffffffffa0001010 t bpf_prog_1\t[bpf]\nffffffffa0004020 t bpf_prog_2\t[bpf]\n"
        "ffffffffbfffe000 t bpf_prog_3\t[bpf]\nffffffffc0008000 t bpf_prog_4\t[bpf]\n"
        "ffffffffa0100000 t ftrace_1\t[__builtin__ftrace]\n"
        "ffffffffa0108000 t ftrace_2\t[__builtin__ftrace]\n"
        "ffffffffa0200000 t kprobe\t[__builtin__kprobes]\n");
  KernelCode kernel(files_);
  ASSERT_FALSE(kernel.find_parts());
  std::map<std::uint64_t, std::uint64_t> ends;
  for (const KernelCode::Part& part : kernel.parts()) ends[part.begin] = part.end;
  EXPECT_EQ(ends.at(0xffffffffa0001000), 0xffffffffa0004000);  // up to the next program
  EXPECT_EQ(ends.at(0xffffffffa0004000), 0xffffffffa0005000);  // the next program is far away
  EXPECT_EQ(ends.at(0xffffffffbfffe000), 0xffffffffc0000000);  // a module lies in between
  EXPECT_EQ(ends.at(0xffffffffc0008000), 0xffffffffc0009000);  // the last symbol
  EXPECT_EQ(ends.at(0xffffffffa0100000), 0xffffffffa0101000);
  EXPECT_EQ(ends.at(0xffffffffa0108000), 0xffffffffa0109000);
  EXPECT_EQ(ends.at(0xffffffffa0200000), 0xffffffffa0201000);
}

// As of a trampoline of ftrace that a probe got when tracing began.
TEST_F(KernelCodeTest, FindsCodeThatCameLater) {
  constexpr std::uint64_t kLater = 0xffffffffc0216000;
  write("memory", kcore(kLater, 'a'));
  KernelCode kernel(files_);
  ASSERT_FALSE(kernel.find_parts());
  EXPECT_FALSE(kernel.modules_changed());
  BundleFixture written;
  ASSERT_FALSE(kernel.save(written.output, trace::kTscMin));
  std::ofstream(files_.symbols, std::ios::app)
      << "ffffffffc0216000 t ftrace_trampoline\t[__builtin__ftrace]\n";
  write("modules", "a_b 16384 7 - Live 0xffffffffc0000000 (OE)\n");
  EXPECT_FALSE(kernel.modules_changed()) << "only the number of users differs";
  write("modules", "a_b 16384 7 - Live 0xffffffffc0000000 (OE)\nb 4096 0 - Live 0xffffffffc0220000\n");
  EXPECT_TRUE(kernel.modules_changed());
  ASSERT_FALSE(kernel.find_parts());
  EXPECT_FALSE(kernel.modules_changed());
  ASSERT_FALSE(kernel.save(written.output, 100));
  const trace::TraceBundle bundle = written.finish();
  const auto region = std::ranges::find(bundle.code, kLater, &trace::CodeRegion::address);
  ASSERT_NE(region, bundle.code.end());
  EXPECT_EQ(region->size, kPageBytes);
  EXPECT_EQ(region->tsc_from, trace::kTscMin) << "it is over no other code";
}

TEST_F(KernelCodeTest, FailsOnHiddenAddresses) {
  write("symbols", "0000000000000000 T _stext\n0000000000000000 T _etext\n");
  KernelCode kernel(files_);
  const auto failure = kernel.find_parts();
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->detail.find("kptr_restrict"), std::string::npos);
}

// As under kernel lockdown: symbols can be read, memory cannot.
TEST_F(KernelCodeTest, FailsOnUnreadableKcore) {
  KernelCode kernel(files_);
  ASSERT_FALSE(kernel.find_parts());
  BundleFixture written;
  const auto failure = kernel.save(written.output, trace::kTscMin);
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->detail.find("record as root, and without kernel lockdown"), std::string::npos);
  EXPECT_TRUE(written.finish().code.empty());
}

TEST_F(KernelCodeTest, DatesCodeOverOtherCode) {
  constexpr std::uint64_t kMade = 0xffffffffa0000000;
  const std::string path = folder_ + "/out.ptk";
  auto writer = formats::PtkWriter::create(path, {});
  ASSERT_TRUE(writer.ok());
  FileParser parser;
  BundleOutput output(std::move(writer.value()), 0, parser);
  KernelCode kernel(files_);
  write("memory", kcore(kMade, 'a'));
  ASSERT_FALSE(kernel.find_parts());
  ASSERT_FALSE(kernel.save(output, trace::kTscMin));
  kernel.add_ksymbol(output, 100, "bpf_prog_1", kMade + 0x20, kMade + 0x40);
  kernel.add_ksymbol(output, 150, "bpf_prog_1", kMade + 0x20, kMade + 0x40);
  write("memory", kcore(kMade, 'b'));
  kernel.add_ksymbol(output, 200, "bpf_prog_2", kMade + 0x20, kMade + 0x30);
  EXPECT_EQ(kernel.changed_pages(), 0U);
  ASSERT_TRUE(output.finish().ok());
  auto bundle = formats::open(path, {});
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  std::vector<std::tuple<std::uint64_t, std::uint64_t, char>> made;
  for (const trace::CodeRegion& region : bundle.value().code) {
    if (region.address == kMade + 0x20)
      made.emplace_back(region.tsc_from, region.size, static_cast<char>(region.bytes.bytes()[0]));
  }
  using Made = decltype(made);
  EXPECT_EQ(made, (Made{{trace::kTscMin, 0x20, 'a'}, {200, 0x10, 'b'}}));
}

// Buffers are drained between chunks.
TEST_F(KernelCodeTest, SavesLargePartsInChunks) {
  constexpr std::uint64_t kBegin = 0xffffffff81000000;
  constexpr std::size_t kBytes = (std::size_t{5} << 19U) + 100;
  write("symbols", "ffffffff81000000 T _stext\nffffffff81280064 T _etext\n");
  Elf64_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_vaddr = kBegin;
  segment.p_filesz = kBytes;
  segment.p_offset = sizeof header + sizeof segment;
  std::string code(kBytes, '\0');
  std::minstd_rand random(1);
  for (char& byte : code) byte = static_cast<char>(random());
  write("memory", std::string(reinterpret_cast<const char*>(&header), sizeof header) +
                      std::string(reinterpret_cast<const char*>(&segment), sizeof segment) + code);
  KernelCode kernel(files_);
  ASSERT_FALSE(kernel.find_parts());
  BundleFixture written;
  int calls = 0;
  ASSERT_FALSE(kernel.save(written.output, trace::kTscMin, [&calls] { ++calls; }));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(kernel.changed_pages(), 0U);
  const trace::TraceBundle bundle = written.finish();
  std::string saved;
  for (const trace::CodeRegion& region : bundle.code) {
    EXPECT_EQ(region.address, kBegin + saved.size());
    EXPECT_EQ(region.file_offset, saved.size());
    saved.append(reinterpret_cast<const char*>(region.bytes.bytes().data()), region.bytes.size());
  }
  EXPECT_EQ(saved, code);
}

// A filter of seccomp has no symbol. Packets show where it was executed.
TEST_F(KernelCodeTest, SavesExecutedPagesWithoutSymbol) {
  constexpr std::uint64_t kFilter = 0xffffffffa0000000;
  KernelCode kernel(files_);
  write("memory", kcore(kFilter, 'f'));
  ASSERT_FALSE(kernel.find_parts());
  BundleFixture written;
  ASSERT_FALSE(kernel.save(written.output, trace::kTscMin));
  kernel.add_ksymbol(written.output, 1, "bpf_prog_1", kFilter + 0x100, kFilter + 0x180);
  EXPECT_TRUE(kernel.has_code(kFilter + 0x17f));
  EXPECT_FALSE(kernel.has_code(kFilter + 0x180));
  EXPECT_EQ(kernel.save_pages(written.output, {kFilter + 8, kFilter + 0x200}), std::vector<std::uint64_t>());
  const trace::TraceBundle bundle = written.finish();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> saved;
  for (const trace::CodeRegion& region : bundle.code) {
    EXPECT_EQ(region.tsc_from, trace::kTscMin);
    if (region.address >= kFilter) saved.emplace_back(region.address, region.size);
  }
  std::ranges::sort(saved);
  EXPECT_EQ(saved, (decltype(saved){{kFilter, 0x100}, {kFilter + 0x100, 0x80}, {kFilter + 0x180, 0xe80}}));
}

TEST_F(KernelCodeTest, KnowsThatExecutedCodeIsGone) {
  constexpr std::uint64_t kFilter = 0xffffffffa0000000;
  KernelCode kernel(files_);
  write("memory", kcore(kFilter, '\xcc'));  // the kernel fills the memory of a program that ended
  BundleFixture written;
  const std::uint64_t unmapped = kFilter + 16 * kPageBytes;
  EXPECT_EQ(kernel.save_pages(written.output, {kFilter + 8, kFilter + 16, unmapped}),
            (std::vector<std::uint64_t>{kFilter, unmapped}));
}

}  // namespace
}  // namespace ptkit::capture::test
