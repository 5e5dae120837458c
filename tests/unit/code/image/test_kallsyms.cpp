// Lists of kernel symbols, and invalid lines.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "code/image/kallsyms.h"

namespace ptkit::code::image {
namespace {

std::vector<KernelSymbol> all(std::string_view text) {
  std::vector<KernelSymbol> out;
  KernelSymbols symbols(text);
  for (KernelSymbol one; symbols.next(one);) out.push_back(one);
  return out;
}

TEST(Kallsyms, ReadsKernelAndModuleSymbols) {
  const auto found =
      all("ffffffff81000000 T _stext\n"
          "ffffffff82000010 D jiffies\n"
          "ffffffffc0000000 t work\t[ext4]\n"
          "ffffffffc0001000 t bpf_prog_6deef7357e7b4530\t[bpf]");
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].address, 0xffffffff81000000U);
  EXPECT_EQ(found[0].name, "_stext");
  EXPECT_TRUE(found[0].module.empty());
  EXPECT_TRUE(found[0].is_code());
  EXPECT_EQ(found[1].type, 'D');
  EXPECT_FALSE(found[1].is_code());
  EXPECT_EQ(found[2].name, "work");
  EXPECT_EQ(found[2].module, "[ext4]");
  EXPECT_EQ(found[3].module, "[bpf]");
}

TEST(Kallsyms, SkipsInvalidLines) {
  EXPECT_TRUE(all("").empty());
  EXPECT_TRUE(all("\n\n").empty());
  const auto found =
      all("no address\n"
          "ffffffff81000000\n"
          "ffffffff81000000 T\n"
          "ffffffff81000000 TT two_letters\n"
          "ffffffff8100000g T not_hex\n"
          "1ffffffff81000000 T too_large\n"
          "ffffffff81000010 T good\n"
          "ffffffff81000020 T");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "good");
}

}  // namespace
}  // namespace ptkit::code::image
