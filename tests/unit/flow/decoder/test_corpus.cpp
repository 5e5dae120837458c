// Real hardware traces: counts and hashes of instructions, branches and conditionals against the reference's
// figures.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "flow/decoder/decoder.h"
#include "formats/registry.h"
#include "unit/support/traces/corpus.h"

namespace ptkit::flow {
namespace {

namespace fs = std::filesystem;

fs::path corpus() { return ptkit::test::corpus(); }

std::vector<std::uint8_t> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// FNV-1a over 64-bit words.
class Hash {
 public:
  void add(std::uint64_t word) noexcept { value_ = (value_ ^ word) * 0x100000001b3ULL; }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

class Figures : public FlowSink {
 public:
  // A branch counts once its target is known: at the next instruction, or at an event before it.
  void on_block(const Block& block) override {
    count_pending(block.ip);
    std::uint64_t ip = block.ip;
    for (const BlockInsn& insn : block.insns) {
      ips.add(ip);
      if (keep) list.push_back(ip);
      ip += insn.size;
      ++instructions;
    }
  }
  void on_branch(const Branch& row) override {
    if (row.kind == BranchKind::ASYNC || row.kind == BranchKind::TX_ABORT) return count_pending(row.from_ip);
    count_pending(row.from_ip);
    pending_ = row;
    has_pending_ = (row.flags & TO_KNOWN) != 0;
  }
  void on_event(const Event& row) override {
    if ((row.flags & EV_STATUS) != 0) return;
    if (row.kind == EventKind::DISABLED && (row.flags & EV_IP_KNOWN) != 0) count_pending(row.ip);
    if (row.kind == EventKind::ENABLED || row.kind == EventKind::OVERFLOW) has_pending_ = false;
  }
  void on_error(const FlowError& row) override {
    errors.push_back(row);
    has_pending_ = false;
  }

  bool keep = false;
  std::vector<std::uint64_t> list;
  Hash ips;
  Hash edges;
  Hash conditional;
  std::uint64_t instructions = 0;
  std::uint64_t branches = 0;
  std::uint64_t conditionals = 0;
  std::vector<FlowError> errors;

 private:
  void count_pending(std::uint64_t to) {
    if (!has_pending_) return;
    has_pending_ = false;
    EXPECT_EQ(pending_.to_ip, to);
    edges.add(pending_.from_ip);
    edges.add(to);
    ++branches;
    if (pending_.kind != BranchKind::COND) return;
    conditional.add(pending_.from_ip);
    conditional.add(to);
    ++conditionals;
  }
  Branch pending_;
  bool has_pending_ = false;
};

std::shared_ptr<trace::TraceBundle> load(const fs::path& folder) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(read_file(folder / "trace"));
  bundle->streams.push_back(stream);
  const std::vector<std::uint8_t> addresses = read_file(folder / "page_cache.addr");
  const auto dump = trace::TraceBuffer::from_vector(read_file(folder / "page_cache.dump"));
  for (std::size_t i = 0; i * 8 + 8 <= addresses.size() && (i + 1) * 4096 <= dump.size(); ++i) {
    trace::CodeRegion region;
    region.address = base::load_le<8>(addresses.data() + i * 8);
    region.bytes = dump.slice(i * 4096, 4096);
    region.size = 4096;
    bundle->code.push_back(region);
  }
  return bundle;
}

struct Reference {
  const char* name;
  std::uint64_t instructions, branches, conditionals, errors, ips, edges, conditional;
};

constexpr Reference kReferences[] = {
    {"Unzip", 149576, 46761, 45985, 0, 0xb6117dde78f7daae, 0xacef0c44f4cc99a8, 0x9965eff5e283082d},
    {"mruby", 6334131, 460545, 332459, 0, 0xa229ca637e67ceda, 0x0fcca4a97b27ca18, 0x251ceeb3f309d435},
    {"avscript_32", 1114194, 316133, 234320, 0, 0x2f48fe3e09743497, 0xca3bf54642b06425, 0xd509d25cc4194a89},
    {"dyn_test", 870, 173, 108, 14, 0xdfb1a23d6ed16118, 0xe46e0e1ba3010e18, 0x12a8635af1ea4081},
};

class Corpus : public testing::TestWithParam<Reference> {};

Figures decode(const trace::TraceBundle& bundle, const code::image::Image& image, Resync resync,
               bool keep = false) {
  Figures figures;
  figures.keep = keep;
  FlowOptions options;
  options.resync = resync;
  options.errata = packet::errata_for(bundle.configuration.cpu);
  FlowDecoder decoder(bundle.streams[0], bundle.configuration, image, options, figures, nullptr);
  while (decoder.run()) {
  }
  return figures;
}

TEST_P(Corpus, EqualsTheReference) {
  const Reference& want = GetParam();
  const fs::path folder = corpus() / "libxdc" / want.name;
  if (!fs::exists(folder / "trace")) GTEST_SKIP() << folder << " is absent (set PTKIT_CORPUS)";
  const auto bundle = load(folder);
  const code::image::Image image(bundle);
  const Figures got = decode(*bundle, image, Resync::PSB);
  EXPECT_EQ(got.instructions, want.instructions);
  EXPECT_EQ(got.branches, want.branches);
  EXPECT_EQ(got.conditionals, want.conditionals);
  EXPECT_EQ(got.errors.size(), want.errors);
  EXPECT_EQ(got.ips.value(), want.ips);
  EXPECT_EQ(got.edges.value(), want.edges);
  EXPECT_EQ(got.conditional.value(), want.conditional);
  for (const FlowError& row : got.errors) EXPECT_EQ(row.code, base::Status::NO_CODE);
}

// Going on at the next IP sees more, and all that going on at the next PSB sees, in the same order.
TEST(CorpusResync, IpEmitsSupersetOfPsb) {
  const fs::path folder = corpus() / "libxdc" / "dyn_test";
  if (!fs::exists(folder / "trace")) GTEST_SKIP() << folder << " is absent (set PTKIT_CORPUS)";
  const auto bundle = load(folder);
  const code::image::Image image(bundle);
  const Figures less = decode(*bundle, image, Resync::PSB, true);
  const Figures more = decode(*bundle, image, Resync::IP, true);
  EXPECT_GE(more.instructions, 895u);  // number of instructions of perf's decoder
  std::size_t at = 0;
  for (const std::uint64_t ip : more.list) {
    if (at < less.list.size() && less.list[at] == ip) ++at;
  }
  EXPECT_EQ(at, less.list.size());
  EXPECT_FALSE(more.errors.empty());
}

struct LldbReference {
  const char* name;
  const char* file;
  std::vector<std::uint64_t> list;
  std::uint64_t missing;  // where code is missing, or 0
};

class LldbCorpus : public testing::TestWithParam<LldbReference> {};

TEST_P(LldbCorpus, EqualsListedInstructions) {
  const LldbReference& want = GetParam();
  const fs::path path = corpus() / "lldb" / want.file;
  if (!fs::exists(path)) GTEST_SKIP() << path << " is absent (set PTKIT_CORPUS)";
  auto opened = formats::open(path.string(), {});
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  const auto bundle = std::make_shared<trace::TraceBundle>(std::move(opened.value()));
  const code::image::Image image(bundle);
  const Figures got = decode(*bundle, image, Resync::IP, true);
  EXPECT_EQ(got.list, want.list);
  EXPECT_EQ(got.errors.size(), want.missing == 0 ? 0u : 1u);
  if (want.missing != 0 && !got.errors.empty()) {
    EXPECT_EQ(got.errors[0].code, base::Status::NO_CODE);
    EXPECT_EQ(got.errors[0].ip, want.missing);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lldb, LldbCorpus,
    testing::Values(LldbReference{"loop",
                                  "intelpt-trace/trace.json",
                                  {0x400511, 0x400518, 0x40051f, 0x400529, 0x40052d, 0x400521, 0x400525,
                                   0x400529, 0x40052d, 0x400521, 0x400525, 0x400529, 0x40052d, 0x400521,
                                   0x400525, 0x400529, 0x40052d, 0x400521, 0x400525, 0x400529, 0x40052d},
                                  0},
                    LldbReference{
                        "multi_file",
                        "intelpt-trace-multi-file/multi-file-no-ld.json",
                        {0x40066f,       0x400540,       0x400546,       0x40054b,       0x400510,
                         0x400516,       0x400674,       0x400677,       0x40067a,       0x40067f,
                         0x400682,       0x400689,       0x40068c,       0x400691,       0x400694,
                         0x400697,       0x40069a,       0x40069c,       0x40069f,       0x400540,
                         0x7ffff7bd96e0, 0x7ffff7bd96e1, 0x7ffff7bd96e4, 0x7ffff7bd96e8, 0x7ffff7bd95d0,
                         0x7ffff79d7690, 0x7ffff79d7691, 0x7ffff79d7694, 0x7ffff79d769b, 0x7ffff79d769e,
                         0x7ffff79d76a3, 0x7ffff79d76a6, 0x7ffff79d76a9, 0x7ffff79d76aa, 0x7ffff7bd96ed,
                         0x7ffff7bd96f0, 0x7ffff7bd96f3, 0x7ffff7bd96f8, 0x7ffff7bd96fb, 0x7ffff7bd96fe,
                         0x7ffff7bd9702, 0x7ffff7bd9703, 0x4006a4,       0x4006a7,       0x4006a9},
                        0x7ffff7df1950}),
    [](const auto& one) { return std::string(one.param.name); });

INSTANTIATE_TEST_SUITE_P(Libxdc, Corpus, testing::ValuesIn(kReferences),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace ptkit::flow
