// The quick decoder against Zydis: each result must equal that of decode_exactly().
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "code/insn/quick.h"
#include "unit/support/traces/corpus.h"

namespace ptkit::code::insn {
namespace {

namespace fs = std::filesystem;
using Code = std::array<std::uint8_t, 15>;

constexpr ExecMode kModes[] = {ExecMode::BITS64, ExecMode::BITS32, ExecMode::BITS16};

bool equal(const Insn& a, const Insn& b) {
  return a.size == b.size && a.cls == b.cls && a.kind == b.kind && a.rep == b.rep &&
         a.target_bits == b.target_bits && a.displacement == b.displacement && a.absolute == b.absolute;
}

class Comparison {
 public:
  void compare(ExecMode mode, base::Bytes code) {
    Insn quick;
    ++asked_;
    if (!decode_quick(mode, code, quick)) return;
    ++answered_;
    Insn exact;
    if (decode_exactly(mode, code, exact) == base::Status::OK && equal(quick, exact)) return;
    if (++wrong_ > 20) return;
    std::string text;
    for (const std::uint8_t byte : code) {
      std::array<char, 4> hex{};
      std::snprintf(hex.data(), hex.size(), "%02x ", byte);
      text += hex.data();
    }
    ADD_FAILURE() << static_cast<int>(mode) << "-bit " << text << ": size " << int{quick.size} << " class "
                  << static_cast<int>(quick.cls) << " kind " << static_cast<int>(quick.kind) << ", not "
                  << int{exact.size} << ' ' << static_cast<int>(exact.cls) << ' '
                  << static_cast<int>(exact.kind);
  }
  [[nodiscard]] std::size_t wrong() const { return wrong_; }
  [[nodiscard]] double share() const {
    return asked_ == 0 ? 0.0 : static_cast<double>(answered_) / static_cast<double>(asked_);
  }

 private:
  std::size_t asked_ = 0;
  std::size_t answered_ = 0;
  std::size_t wrong_ = 0;
};

// Code of `head`, a ModRM byte, a SIB byte, and tail bytes that show how the bytes are read.
void compare_operands(Comparison& comparison, ExecMode mode, const std::vector<std::uint8_t>& head,
                      unsigned step) {
  Code code{};
  for (std::size_t i = 0; i < code.size(); ++i) code[i] = static_cast<std::uint8_t>(0x81 + 0x13 * i);
  std::copy(head.begin(), head.end(), code.begin());
  for (unsigned modrm = 0; modrm < 256; modrm += step) {
    code[head.size()] = static_cast<std::uint8_t>(modrm);
    const bool has_sib = modrm < 0xC0 && (modrm & 7) == 4;
    for (const unsigned sib : {0x25U, 0x8CU}) {
      code[head.size() + 1] = static_cast<std::uint8_t>(sib);
      comparison.compare(mode, code);
      if (!has_sib) break;
    }
  }
}

using Bytes = std::vector<std::uint8_t>;
class QuickDecoderPrefixes : public testing::TestWithParam<Bytes> {};

TEST_P(QuickDecoderPrefixes, LegacyMaps) {
  Comparison comparison;
  const Bytes escapes[] = {{}, {0x0F}, {0x0F, 0x38}, {0x0F, 0x3A}};
  for (const ExecMode mode : kModes) {
    for (const Bytes& escape : escapes) {
      for (unsigned opcode = 0; opcode < 256; ++opcode) {
        Bytes head = GetParam();
        head.insert(head.end(), escape.begin(), escape.end());
        head.push_back(static_cast<std::uint8_t>(opcode));
        compare_operands(comparison, mode, head, 1);
      }
    }
  }
  EXPECT_EQ(comparison.wrong(), 0u);
}

const Bytes kPrefixCases[] = {
    {},
    {0x66},
    {0xF3},
    {0xF2},
    {0x67},
    {0xF0},
    {0x2E},
    {0x65},
    {0x48},
    {0x4F},
    {0x41},
    {0x66, 0x48},
    {0xF3, 0x48},
    {0xF2, 0x4C},
    {0x66, 0xF3},
    {0xF2, 0x66},
    {0xF2, 0xF3},
    {0x66, 0x67},
    {0x67, 0x4F},
    {0x48, 0x66},
    {0x48, 0x40},
    {0x66, 0x66},
    {0xF3, 0xF3},
    {0x3E, 0xF2},
    {0xF0, 0xF2},
    {0x67, 0x67},
    {0x64, 0x66, 0x41},
    {0x66, 0xF2, 0x48},
};
INSTANTIATE_TEST_SUITE_P(QuickDecoder, QuickDecoderPrefixes, testing::ValuesIn(kPrefixCases));

// All values of the second and third byte of VEX.
TEST(QuickDecoder, Vex) {
  constexpr std::uint8_t kVexFirst[] = {0xE1, 0x01, 0x62, 0xC2, 0xE3, 0x03, 0xE0, 0xE4};
  Comparison comparison;
  for (const ExecMode mode : kModes) {
    const unsigned step = mode == ExecMode::BITS64 ? 1 : 5;
    for (unsigned payload = 0; payload < 256; payload += step) {
      for (unsigned opcode = 0; opcode < 256; ++opcode) {
        const auto last = static_cast<std::uint8_t>(payload);
        const auto op = static_cast<std::uint8_t>(opcode);
        compare_operands(comparison, mode, {0xC5, last, op}, 11);
        for (const std::uint8_t first : kVexFirst) {
          compare_operands(comparison, mode, {0xC4, first, last, op}, 23);
        }
      }
    }
  }
  EXPECT_EQ(comparison.wrong(), 0u);
}

TEST(QuickDecoder, Evex) {
  constexpr std::uint8_t kEvexFirst[] = {0xF1, 0xF2, 0xF3, 0x01, 0x62, 0xE3, 0xD1, 0xF9, 0xF5};
  constexpr std::uint8_t kEvexThird[] = {0x08, 0x28, 0x48, 0x68, 0x00, 0x20, 0x09, 0x18, 0xA9};
  Comparison comparison;
  for (const ExecMode mode : {ExecMode::BITS64, ExecMode::BITS32}) {
    const unsigned step = mode == ExecMode::BITS64 ? 3 : 31;
    for (unsigned second = 0; second < 256; second += step) {
      for (unsigned opcode = 0; opcode < 256; ++opcode) {
        for (const std::uint8_t third : kEvexThird) {
          for (const std::uint8_t first : kEvexFirst) {
            compare_operands(
                comparison, mode,
                {0x62, first, static_cast<std::uint8_t>(second), third, static_cast<std::uint8_t>(opcode)},
                61);
          }
        }
      }
    }
  }
  EXPECT_EQ(comparison.wrong(), 0u);
}

// Random bytes of all lengths, with more prefixes than random.
TEST(QuickDecoder, RandomBytes) {
  Comparison comparison;
  std::mt19937_64 random(20);
  constexpr std::uint8_t kOften[] = {0x66, 0x67, 0xF2, 0xF3, 0x0F, 0x48, 0x41, 0xC5, 0xC4, 0x62, 0x2E, 0xF0};
  for (unsigned round = 0; round < 1'500'000; ++round) {
    Code code;
    for (std::uint8_t& byte : code) byte = static_cast<std::uint8_t>(random());
    const std::uint64_t shape = random();
    for (unsigned i = 0; i < (shape & 3); ++i) code[i] = kOften[(shape >> (8 + 8 * i) & 0xFF) % 12];
    const std::size_t size = (shape >> 40 & 7) == 0 ? shape >> 44 & 15 : code.size();
    comparison.compare(kModes[(shape >> 2) % 3], base::Bytes(code).first(size));
  }
  EXPECT_EQ(comparison.wrong(), 0u);
}

// Many prefixes, and code that ends early.
TEST(QuickDecoder, Limits) {
  Insn insn;
  const std::vector<std::uint8_t> many(15, 0x66);
  EXPECT_FALSE(decode_quick(ExecMode::BITS64, many, insn));
  EXPECT_FALSE(decode_quick(ExecMode::BITS64, {}, insn));
  EXPECT_FALSE(decode_quick(ExecMode::UNKNOWN, many, insn));
  const std::vector<std::uint8_t> jump = {0x66, 0x66, 0x66, 0x2E, 0x0F, 0x84, 1, 2, 3, 4};
  EXPECT_TRUE(decode_quick(ExecMode::BITS64, jump, insn));
  EXPECT_EQ(insn.displacement, 0x04030201);
  for (std::size_t size = 0; size < jump.size(); ++size) {
    Insn untouched;
    untouched.size = 77;
    EXPECT_FALSE(decode_quick(ExecMode::BITS64, base::Bytes(jump).first(size), untouched));
    EXPECT_EQ(untouched.size, 77);
  }
}

std::vector<std::uint8_t> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path corpus() { return fs::path(ptkit::test::corpus()) / "libxdc"; }

// Checks every `step`-th offset of `bytes`.
Comparison compare_offsets(ExecMode mode, base::Bytes bytes, std::size_t step) {
  Comparison comparison;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    comparison.compare(mode, bytes.subspan(at, std::min<std::size_t>(15, bytes.size() - at)));
  }
  return comparison;
}

class CorpusCode : public testing::TestWithParam<const char*> {};

TEST_P(CorpusCode, DecodesEveryOffset) {
  const fs::path path = corpus() / GetParam() / "page_cache.dump";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is absent (set PTKIT_CORPUS)";
  const std::vector<std::uint8_t> bytes = read_file(path);
  for (const ExecMode mode : kModes) EXPECT_EQ(compare_offsets(mode, bytes, 1).wrong(), 0u);
}
INSTANTIATE_TEST_SUITE_P(QuickDecoder, CorpusCode,
                         testing::Values("Unzip", "mruby", "avscript_32", "dyn_test"));

// Libraries of this machine: newer code than in the corpus.
TEST(QuickDecoder, CodeOfThisMachine) {
  const fs::path candidates[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6",
                                 "/lib64/libc.so.6", "/usr/bin/python3"};
  std::size_t found = 0;
  for (const fs::path& path : candidates) {
    if (!fs::exists(path)) continue;
    ++found;
    EXPECT_EQ(compare_offsets(ExecMode::BITS64, read_file(path), 3).wrong(), 0u) << path;
  }
  if (found == 0) GTEST_SKIP() << "no library or program of this machine to read";
}

// Consecutive instructions of real code: nearly all are certain, otherwise the quick decoder has no benefit.
TEST(QuickDecoder, DecodesNearlyAllRealCode) {
  const fs::path path = "/lib64/ld-linux-x86-64.so.2";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is absent";
  const std::vector<std::uint8_t> bytes = read_file(path);
  // .text of the dynamic linker comes after its first pages. Data does not decode well, but is small.
  Comparison comparison;
  for (std::size_t at = 0x2000; at + 15 <= bytes.size() && at < 0x20000;) {
    const base::Bytes code = base::Bytes(bytes).subspan(at, 15);
    Insn insn;
    comparison.compare(ExecMode::BITS64, code);
    at += decode(ExecMode::BITS64, code, insn) == base::Status::OK ? insn.size : 1U;
  }
  EXPECT_GT(comparison.share(), 0.97);
}

}  // namespace
}  // namespace ptkit::code::insn
