#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tables/calls/code/code_patterns.h"

namespace ptkit::tables::calls {
namespace {

using Code = std::vector<std::uint8_t>;

constexpr std::uint64_t kBegin = 0x1000;

class Memory {
 public:
  // Code at kBegin, and more of it elsewhere.
  explicit Memory(const Code& code, const Code& rest = {}, std::uint64_t rest_at = 0) {
    auto bundle = std::make_shared<trace::TraceBundle>();
    add(*bundle, kBegin, code);
    if (!rest.empty()) add(*bundle, rest_at, rest);
    image_ = std::make_unique<code::image::Image>(bundle);
  }
  [[nodiscard]] const code::image::CodeView& code() const { return image_->view(trace::kAnySpace, 0); }

 private:
  static void add(trace::TraceBundle& bundle, std::uint64_t address, const Code& code) {
    trace::CodeRegion region;
    region.address = address;
    region.size = code.size();
    region.bytes = trace::TraceBuffer::from_vector(code);
    bundle.code.push_back(std::move(region));
  }
  std::unique_ptr<code::image::Image> image_;
};

[[nodiscard]] Code joined(std::initializer_list<Code> parts) {
  Code all;
  for (const Code& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

const Code kLoop{0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9};  // PAUSE; LFENCE; JMP
const Code kStore{0x48, 0x89, 0x04, 0x24};                   // MOV %rax,(%rsp)
const Code kRet{0xc3};

// CALL over so many bytes.
[[nodiscard]] Code call(std::uint8_t over) { return {0xe8, over, 0, 0, 0}; }

[[nodiscard]] bool is_retpoline(const Code& code) { return is_retpoline_call(Memory(code).code(), kBegin); }

TEST(Retpoline, IsACallOverATrapToCodeThatReplacesTheReturnAddress) {
  EXPECT_TRUE(is_retpoline(joined({call(7), kLoop, kStore, kRet})));
  EXPECT_TRUE(is_retpoline(joined({call(7), kLoop, {0x4c, 0x89, 0x1c, 0x24}, kRet})));        // of %r11
  EXPECT_TRUE(is_retpoline(joined({call(1), {0xcc}, kStore, kRet})));                         // INT3
  EXPECT_TRUE(is_retpoline(joined({call(1), {0xcc}, kStore, {0xe9, 0, 1, 0, 0}})));           // return thunk
  EXPECT_TRUE(is_retpoline(joined({call(7), kLoop, {0x48, 0x8d, 0x64, 0x24, 0x08}, kRet})));  // LEA
  EXPECT_TRUE(is_retpoline(joined({call(7), kLoop, {0x48, 0x83, 0xc4, 0x08}, kRet})));        // ADD
  EXPECT_TRUE(is_retpoline(joined({call(7), kLoop, {0x89, 0x04, 0x24}, kRet})));              // 32-bit code
  EXPECT_TRUE(is_retpoline(joined({call(7), kLoop, {0x8d, 0x64, 0x24, 0x04}, kRet})));
  const Code hardened{0x48, 0xc1, 0x24, 0x24, 0x00, 0x0f, 0xae, 0xe8, 0xc3};  // SHL; LFENCE; RET
  EXPECT_TRUE(is_retpoline(joined({call(7), kLoop, kStore, hardened})));
}

TEST(Retpoline, IsNoOtherCall) {
  EXPECT_FALSE(is_retpoline(joined({call(7), kLoop, kRet})));
  EXPECT_FALSE(is_retpoline(joined({call(7), kLoop, kStore, {0x90, 0xc3}})));
  // FILL_RETURN_BUFFER of the kernel.
  EXPECT_FALSE(is_retpoline(joined({call(1), {0xcc}, {0x48, 0x83, 0xc4, 0x08, 0x0f, 0xae, 0xe8, 0x90}})));
  EXPECT_FALSE(is_retpoline(joined({call(7), {0x48, 0x89, 0xc7, 0x90, 0x90, 0x90, 0x90}, kStore, kRet})));
  EXPECT_FALSE(is_retpoline(joined({call(0), kStore, kRet})));
  EXPECT_FALSE(is_retpoline({0xe8, 7, 0}));
  EXPECT_FALSE(is_retpoline({}));
}

// What is not executed may lack in a recording.
TEST(Retpoline, MayLackItsTrap) {
  const Memory memory(call(7), joined({kStore, kRet}), kBegin + 12);
  EXPECT_TRUE(is_retpoline_call(memory.code(), kBegin));
}

TEST(Retpoline, BeginsWhereItsTargetIsLoaded) {
  const Code code = joined({{0x55}, {0xff, 0x35, 1, 0, 0, 0}, call(7), kLoop, kStore, kRet});
  const Memory memory(code);
  EXPECT_EQ(first_branch(memory.code(), kBegin, 2).ip, kBegin + 7);
  EXPECT_EQ(first_branch(memory.code(), kBegin, 1).ip, 0U);
  const Memory jump({0x90, 0xe9, 0x10, 0, 0, 0});
  EXPECT_EQ(first_branch(jump.code(), kBegin, 3).jump_to, kBegin + 0x16);
  EXPECT_EQ(first_branch(Memory(kRet).code(), kBegin, 3).ip, 0U);
}

}  // namespace
}  // namespace ptkit::tables::calls
