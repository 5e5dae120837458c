// kernel/common/pt_paging.h: the page table of user code is known by what it maps.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "common/pt_paging.h"

namespace {

using Table = std::array<std::uint64_t, PT_USER_ENTRIES>;

constexpr std::uint64_t kExecuteDisable = std::uint64_t{1} << 63;
constexpr std::uint64_t kAccessed = 1 << 5;
constexpr std::uint64_t kKernel = 0x1aa000;
constexpr std::uint64_t kUser = 0x3bb000;

class PtPaging : public testing::Test {
 protected:
  void SetUp() override {
    Table table = {};
    table[0] = 0x12345067;
    table[255] = 0x23456067;
    memory_[kUser] = table;
    for (std::uint64_t& entry : table) {
      if (entry != 0) entry |= kExecuteDisable;
    }
    table[0] &= ~kAccessed;
    memory_[kKernel] = table;
  }

  std::uint64_t find(const std::vector<std::uint64_t>& words) {
    std::vector<std::uint64_t> scratch(std::size_t{2} * PT_USER_ENTRIES);
    return pt_find_user_table(words.data(), static_cast<std::uint32_t>(words.size()), kKernel, read, this,
                              scratch.data());
  }

  static bool read(void* context, std::uint64_t address, std::uint64_t* entries) {
    auto& memory = static_cast<PtPaging*>(context)->memory_;
    const auto found = memory.find(address);
    if (found == memory.end()) return false;
    for (std::size_t i = 0; i < found->second.size(); ++i) entries[i] = found->second[i];
    return true;
  }

  std::map<std::uint64_t, Table> memory_;
};

TEST_F(PtPaging, FindsTheTableAmongOtherWords) {
  const std::uint64_t pointer = 0xffff800012345000;
  EXPECT_EQ(find({0, 7, pointer, kKernel | 2, 0x5000, kUser | 3, 9}), kUser);
}

TEST_F(PtPaging, AValueThatKeepsTranslationsIsIt) {
  EXPECT_EQ(find({std::uint64_t{1} << 63 | kUser | 3}), kUser);
}

TEST_F(PtPaging, TheTableOfKernelCodeIsNotIt) { EXPECT_EQ(find({kKernel, kKernel | 1}), 0U); }

TEST_F(PtPaging, AnotherProcessIsNotIt) {
  memory_[0x4cc000] = memory_[kUser];
  memory_[0x4cc000][3] = 0x999067;
  EXPECT_EQ(find({0x4cc000}), 0U);
}

TEST_F(PtPaging, APointerWithItsNumberIsNotIt) { EXPECT_EQ(find({kUser | std::uint64_t{0xfff} << 52}), 0U); }

TEST_F(PtPaging, EmptyTablesAreNotIt) {
  memory_[kKernel] = {};
  memory_[kUser] = {};
  EXPECT_EQ(find({kUser}), 0U);
}

TEST_F(PtPaging, WithoutMemoryThereIsNone) {
  memory_.erase(kKernel);
  EXPECT_EQ(find({kUser}), 0U);
}

}  // namespace
