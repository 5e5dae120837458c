#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tables/branches/loop_folder.h"
#include "tables/columns/request.h"

namespace ptkit::tables::branches {
namespace {

using flow::BranchKind;

// Loops 0, and 1 in it.
const LoopMap& map_of_two() {
  static const LoopMap kMap({{0x10, 0, kNoLoop}, {0x20, 0, 0}}, {});
  return kMap;
}

struct Folded {
  explicit Folded(std::size_t most = LoopFolder::kMostItems) : folder(map_of_two(), most) {}
  void row(std::uint64_t ip) {
    calls::BranchStep step;
    step.from_ip = ip;
    step.flags = flow::FROM_KNOWN;
    folder.on_row(step, static_cast<std::uint8_t>(BranchKind::COND), nullptr, owner);
  }
  Visit enter(std::int32_t loop) {
    Visit visit{.number = visits++, .loop = loop};
    folder.on_enter(visit, nullptr);
    return visit;
  }
  // Rows by their last digits, repetitions as "N(...)".
  std::string text() {
    folder.finish();
    std::string found;
    for (const FoldToken& token : folder.take()) {
      if (token.op == FoldOp::ROW) found += std::to_string(token.first);
      if (token.op == FoldOp::BEGIN) found += " x" + std::to_string(token.first) + "(";
      if (token.op == FoldOp::END) found += ")";
      if (token.op == FoldOp::GAP) found += "!";
      if (token.op == FoldOp::OWNER) found += "@";
    }
    return found;
  }

  LoopFolder folder;
  calls::Owner owner;
  std::uint64_t visits = 0;
};

TEST(LoopFolder, FoldsEqualRoundsOnly) {
  Folded folded;
  folded.row(1);
  Visit visit = folded.enter(0);
  for (const std::uint64_t ip : {2U, 2U, 2U, 3U, 2U, 2U}) {
    folded.row(ip);
    folded.folder.on_round(visit);
  }
  folded.row(4);
  folded.folder.on_leave(visit);
  folded.row(5);
  EXPECT_EQ(folded.text(), "@1 x3(2)3 x2(2)45");
}

TEST(LoopFolder, FoldsNestedLoops) {
  Folded folded;
  Visit outer = folded.enter(0);
  for (int i = 0; i < 4; ++i) {
    Visit inner = folded.enter(1);
    for (int k = 0; k < 3; ++k) {
      folded.row(1);
      folded.folder.on_round(inner);
    }
    folded.row(2);
    folded.folder.on_leave(inner);
    folded.row(3);
    if (i < 3) folded.folder.on_round(outer);
  }
  folded.folder.on_leave(outer);
  EXPECT_EQ(folded.text(), "@ x4( x3(1)23)");
}

TEST(LoopFolder, EndsLoopsOfFramesThatAreGone) {
  Folded folded;
  Visit outer = folded.enter(0);
  static_cast<void>(folded.enter(1));
  folded.row(1);
  folded.folder.on_round(outer);
  static_cast<void>(folded.enter(1));
  folded.row(1);
  folded.folder.on_round(outer);
  folded.folder.on_leave(outer);
  folded.folder.on_leave(outer);  // it is closed already
  EXPECT_EQ(folded.text(), "@ x2(1)");
}

TEST(LoopFolder, GapsAndOtherThreadsEndRepetitions) {
  Folded folded;
  Visit visit = folded.enter(0);
  folded.row(1);
  folded.folder.on_round(visit);
  folded.row(1);
  folded.folder.on_round(visit);
  folded.folder.on_row({}, columns::MARK_GAP, nullptr, folded.owner);
  folded.folder.on_round(visit);  // has no level: a new one begins
  folded.row(1);
  folded.folder.on_round(visit);
  folded.owner.tid = 7;
  folded.folder.on_row({}, columns::MARK_CONTEXT, nullptr, folded.owner);
  folded.row(1);
  EXPECT_EQ(folded.text(), "@ x2(1)!1@1");
}

// Random visits, unfolded, are their rows.
TEST(LoopFolder, LosesNothingInBoundedMemory) {
  for (const std::size_t most : {std::size_t{4}, std::size_t{50}, LoopFolder::kMostItems}) {
    std::mt19937 random(7);
    Folded folded(most);
    std::vector<std::uint64_t> rows;
    const auto add = [&](std::uint64_t ip) {
      folded.row(ip);
      rows.push_back(ip);
    };
    for (int i = 0; i < 200; ++i) {
      Visit outer = folded.enter(0);
      for (std::uint64_t k = random() % 5; k != 0; --k) {
        Visit inner = folded.enter(1);
        for (std::uint64_t j = random() % 4; j != 0; --j) {
          add(random() % 2);
          folded.folder.on_round(inner);
        }
        if (random() % 2 != 0) folded.folder.on_leave(inner);
        add(7);
        folded.folder.on_round(outer);
      }
      folded.folder.on_leave(outer);
    }
    folded.folder.finish();
    std::vector<std::vector<std::uint64_t>> levels(1);
    std::vector<std::uint64_t> times;
    for (const FoldToken& token : folded.folder.take()) {
      if (token.op == FoldOp::ROW) levels.back().push_back(token.first);
      if (token.op == FoldOp::BEGIN) {
        times.push_back(token.first);
        levels.emplace_back();
      }
      if (token.op != FoldOp::END) continue;
      const std::vector<std::uint64_t> body = levels.back();
      levels.pop_back();
      for (std::uint64_t k = 0; k < times.back(); ++k)
        levels.back().insert(levels.back().end(), body.begin(), body.end());
      times.pop_back();
    }
    EXPECT_EQ(levels.front(), rows) << most;
  }
}

}  // namespace
}  // namespace ptkit::tables::branches
