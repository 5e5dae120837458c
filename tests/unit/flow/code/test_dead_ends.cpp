// Where code leads without packets: every answer depends on the code alone, not on earlier questions.
#include <gtest/gtest.h>

#include <initializer_list>
#include <random>

#include "flow/code/block_cache.h"
#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

using base::Status;

constexpr std::uint64_t kCode = Scene::kCode;

code::image::Image image_of(std::vector<std::uint8_t> code) {
  Scene scene(std::move(code));
  return code::image::Image(std::make_shared<trace::TraceBundle>(scene.bundle()));
}

CodeEnd fresh(const code::image::Image& image, std::uint64_t ip) {
  BlockCache cache(image.view(trace::kAnySpace, 0), code::insn::ExecMode::BITS64);
  return cache.end_of(ip);
}

TEST(DeadEnds, BranchLeadsOn) {
  // 1000 nop; 1001 jmp 1004; 1003 ret; 1004 jz 1004; 1006 ud2, and nothing behind it
  const code::image::Image image = image_of({0x90, 0xeb, 0x01, 0xc3, 0x74, 0xfe, 0x0f, 0x0b});
  EXPECT_EQ(fresh(image, kCode).status, Status::OK);
  EXPECT_EQ(fresh(image, kCode + 3).status, Status::OK);
  const CodeEnd end = fresh(image, kCode + 6);
  EXPECT_EQ(end.status, Status::NO_CODE);
  EXPECT_EQ(end.ip, kCode + 8);
  EXPECT_EQ(fresh(image, 0x999999).status, Status::NO_CODE);
}

TEST(DeadEnds, LoopIsDead) {
  const code::image::Image image = image_of({0x90, 0x90, 0xeb, 0xfd});  // nop; 1001: nop; jmp 1001
  for (const std::uint64_t ip : {kCode, kCode + 1, kCode + 2})
    EXPECT_EQ(fresh(image, ip).status, Status::INFINITE_LOOP);
}

TEST(DeadEnds, ZerosArePassed) {
  for (const std::size_t zeros : {64U, 65U, 4096U, 100'001U}) {
    std::vector<std::uint8_t> code(zeros);
    code.insert(code.end(), {0x90, 0xc3});
    const code::image::Image image = image_of(code);
    BlockCache cache(image.view(trace::kAnySpace, 0), code::insn::ExecMode::BITS64);
    // At an odd distance the last zero byte is an instruction's first: add [rax+0xc3...], dl or the like.
    for (const std::uint64_t ip : {kCode + zeros - 2, kCode, kCode + 1, kCode + zeros / 2}) {
      const CodeEnd once = cache.end_of(ip);
      const CodeEnd again = fresh(image, ip);
      EXPECT_EQ(once.status, again.status) << zeros << " " << ip;
      EXPECT_EQ(once.ip, again.ip);
      const bool whole = (kCode + zeros - ip) % 2 == 0;
      EXPECT_TRUE(!whole || once.status == Status::OK);
    }
  }
}

// Code without an end, of a callback.
TEST(DeadEnds, CodeOfCallbackEnds) {
  for (const std::uint8_t byte : std::initializer_list<std::uint8_t>{0x00, 0x90, 0xe9, 0xeb}) {
    const code::image::Image image(std::make_shared<trace::TraceBundle>(),
                                   [byte](trace::SpaceId, std::uint64_t, std::span<std::uint8_t> out) {
                                     std::fill(out.begin(), out.end(), byte);
                                     return out.size();
                                   });
    EXPECT_NE(fresh(image, kCode).status, Status::OK);
  }
}

// A small file, mapped at thousands of adjacent addresses: a jump in each page, to the same offset in the
// next one.
code::image::Image jumps_through_pages(std::uint8_t offset, std::uint64_t copies) {
  constexpr std::size_t kPage = 4096;
  std::vector<std::uint8_t> code(kPage << 8U);
  for (std::size_t at = offset; at < code.size(); at += kPage) {
    constexpr std::uint8_t kJump[] = {0xe9, 0xfb, 0x0f, 0, 0};
    std::copy(std::begin(kJump), std::end(kJump), code.begin() + static_cast<std::ptrdiff_t>(at));
  }
  const std::uint64_t size = code.size();
  const auto shared = trace::TraceBuffer::from_vector(std::move(code));
  auto bundle = std::make_shared<trace::TraceBundle>();
  for (std::uint64_t i = 0; i < copies; ++i) {
    trace::CodeRegion& region = bundle->code.emplace_back();
    region.address = DeadEnds::kMappedWindow + i * size;
    region.size = size;
    region.bytes = shared;
  }
  return code::image::Image(bundle);
}

TEST(DeadEnds, FileThatIsMappedOftenTakesBoundedMemory) {
  constexpr std::uint64_t kCopies = 1024;  // of 1 MiB
  for (const std::uint8_t offset : {std::uint8_t{0}, std::uint8_t{64}}) {
    const code::image::Image image = jumps_through_pages(offset, kCopies);
    BlockCache cache(image.view(trace::kAnySpace, 0), code::insn::ExecMode::BITS64);
    const CodeEnd end = cache.end_of(DeadEnds::kMappedWindow + offset);
    EXPECT_EQ(end.status, Status::WALK_TOO_LONG);
    EXPECT_LE(cache.bytes(), DeadEnds::kMostBytes + (std::size_t{1} << 20U));
    if (offset == 0) {
      EXPECT_GE(cache.bytes(), std::size_t{32} << 20U);  // the notes count
    }
  }
  // Code that is shorter than a window leads on.
  const code::image::Image image = jumps_through_pages(0, 200);
  EXPECT_EQ(fresh(image, DeadEnds::kMappedWindow).status, Status::NO_CODE);
}

TEST(DeadEnds, AnswersDoNotDependOnOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    // Mostly instructions without branches, some jumps forward and back, few branches that need packets.
    std::vector<std::uint8_t> code;
    while (code.size() < 3000) {
      const unsigned kind = random() % 64;
      if (kind < 40) {
        code.push_back(0x90);
      } else if (kind < 50) {
        code.insert(code.end(), {0x48, 0x89, 0xc3});
      } else if (kind < 52) {
        code.insert(code.end(), 40 + random() % 9, 0x00);
      } else if (kind < 63 || random() % 8 != 0) {
        code.insert(code.end(), {0xeb, static_cast<std::uint8_t>(random())});
      } else {
        code.insert(code.end(), {0xff, 0xe0});
      }
    }
    const code::image::Image image = image_of(code);
    BlockCache asked(image.view(trace::kAnySpace, 0), code::insn::ExecMode::BITS64);
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t ip = kCode + random() % code.size();
      const CodeEnd known = asked.end_of(ip);
      const CodeEnd expected = fresh(image, ip);
      ASSERT_EQ(known.status, expected.status) << round << " " << ip;
      ASSERT_EQ(known.ip, expected.ip);
    }
  }
}

}  // namespace
}  // namespace ptkit::flow
