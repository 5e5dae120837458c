// Groups of packets: the table, and that a group has the effect of its packets one after the other.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

#include "flow/fast/packet_groups.h"

namespace ptkit::flow {
namespace {

struct Key {
  std::uint64_t ip = 0;
  std::uint32_t tnt = 0;
  std::uint32_t from = 0;
  [[nodiscard]] auto operator<=>(const Key&) const = default;
};

[[nodiscard]] PacketGroup* find(PacketGroups& groups, const Key& key) {
  return PacketGroups::lookup(groups.data(), groups.mask(), key.ip, key.tnt, key.from);
}

// Adds a group as PathCache does. False: there is no room.
[[nodiscard]] bool add(PacketGroups& groups, const Key& key) {
  if (groups.full()) return false;
  if (groups.must_grow()) groups.grow();
  return groups.add(key.ip, key.tnt, key.from) != nullptr;
}

TEST(PacketGroups, FindsEachKeyAlone) {
  base::Arena arena;
  PacketGroups groups(arena);
  const Key key{0x401000, 0x0604, 0x20};
  ASSERT_TRUE(add(groups, key));
  ASSERT_NE(find(groups, key), nullptr);
  EXPECT_EQ(find(groups, {key.ip + 1, key.tnt, key.from}), nullptr);
  EXPECT_EQ(find(groups, {key.ip, key.tnt << 8U, key.from}), nullptr);
  EXPECT_EQ(find(groups, {key.ip, key.tnt, key.from + 0x20}), nullptr);
  EXPECT_EQ(find(groups, {key.ip, key.tnt, key.from + 1}), nullptr);
}

TEST(PacketGroups, KeepsNearlyAllGroupsUpToItsLimit) {
  base::Arena arena;
  PacketGroups groups(arena);
  std::mt19937_64 random(1);
  std::set<Key> added;
  std::size_t refused = 0;
  while (!groups.full()) {
    const Key key{0x400000 + random() % 0x10000, static_cast<std::uint32_t>(random() % 127) << 1U | 4U,
                  static_cast<std::uint32_t>(random() % 4096 + 1) * 32};
    if (find(groups, key) != nullptr) continue;
    if (add(groups, key)) {
      added.insert(key);
    } else {
      ++refused;
    }
    ASSERT_LT(refused, PacketGroups::kMost / 10);
  }
  EXPECT_GE(added.size(), PacketGroups::kMost);
  EXPECT_LE(groups.bytes(), std::size_t{20} << 20U);
  std::size_t missing = 0;
  for (const Key& key : added) {
    const PacketGroup* const group = find(groups, key);
    if (group == nullptr) {
      ++missing;  // dropped when the table has grown
    } else {
      EXPECT_EQ(std::tie(group->ip, group->tnt, group->from), std::tie(key.ip, key.tnt, key.from));
    }
  }
  EXPECT_LT(missing, added.size() / 10);
}

TEST(PacketGroups, VisitsNotedGroupsOnce) {
  base::Arena arena;
  PacketGroups groups(arena);
  const Key first{0x401000, 4, 0x20};
  const Key second{0x401000, 6, 0x20};
  ASSERT_TRUE(add(groups, first) && add(groups, second));
  find(groups, second)->count = 3;
  groups.note(*find(groups, second));
  std::uint32_t sum = 0;
  groups.take_noted([&sum](PacketGroup& group) { sum += group.count; });
  groups.take_noted([&sum](PacketGroup& group) { sum += group.count; });
  EXPECT_EQ(sum, 3U);
}

}  // namespace
}  // namespace ptkit::flow
