// Encodings and their classes in all three modes.
#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <random>
#include <sstream>
#include <vector>

#include "code/insn/insn.h"

namespace ptkit::code::insn {
namespace {

using base::Status;
using C = InsnClass;
using K = InsnKind;

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  std::vector<std::uint8_t> bytes;
  std::istringstream stream(text);
  unsigned value = 0;
  while (stream >> std::hex >> value) bytes.push_back(static_cast<std::uint8_t>(value));
  return bytes;
}

struct Case {
  int mode;
  const char* code;
  unsigned size;  // 0: BAD_INSN
  C cls = C::OTHER;
  K kind = K::OTHER;
  bool rep = false;
};

void PrintTo(const Case& item, std::ostream* out) { *out << item.mode << "-bit " << item.code; }

class InsnEncodings : public testing::TestWithParam<Case> {};

TEST_P(InsnEncodings, Classify) {
  const Case& item = GetParam();
  Insn insn;
  const auto code = bytes_of(item.code);
  const Status status = decode(static_cast<ExecMode>(item.mode), code, insn);
  if (item.size == 0) {
    EXPECT_EQ(status, Status::BAD_INSN);
    return;
  }
  ASSERT_EQ(status, Status::OK);
  EXPECT_EQ(insn.size, item.size);
  EXPECT_EQ(insn.cls, item.cls);
  EXPECT_EQ(insn.kind, item.kind);
  EXPECT_EQ(insn.rep, item.rep);
  // Each shorter prefix of the code ends inside the instruction, or is another instruction.
  for (std::size_t size = 0; size < item.size; ++size) {
    EXPECT_EQ(decode(static_cast<ExecMode>(item.mode), base::Bytes(code).first(size), insn), Status::NO_CODE)
        << size << " bytes";
  }
}

constexpr Case kBranches[] = {
    // Conditional, near and short.
    {64, "74 02", 2, C::COND_JUMP},
    {64, "0f 84 01 00 00 00", 6, C::COND_JUMP},
    {64, "66 0f 84 01 00 00 00", 7, C::COND_JUMP},  // 66 is ignored in 64-bit mode
    {32, "66 0f 84 01 00", 5, C::COND_JUMP},
    {16, "0f 84 01 00", 4, C::COND_JUMP},
    {16, "66 0f 84 01 00 00 00", 7, C::COND_JUMP},
    {64, "2e 74 02", 3, C::COND_JUMP},
    {64, "e3 fe", 2, C::COND_JUMP, K::JCXZ},
    {64, "67 e3 fe", 3, C::COND_JUMP, K::JCXZ},
    {32, "e3 fe", 2, C::COND_JUMP, K::JCXZ},
    {16, "67 e3 fe", 3, C::COND_JUMP, K::JCXZ},
    {64, "e0 fe", 2, C::COND_JUMP, K::LOOP},
    {32, "e1 fe", 2, C::COND_JUMP, K::LOOP},
    {16, "e2 fe", 2, C::COND_JUMP, K::LOOP},
    // Unconditional.
    {64, "eb fe", 2, C::JUMP},
    {64, "e9 01 00 00 00", 5, C::JUMP},
    {64, "66 e9 01 00 00 00", 6, C::JUMP},
    {32, "66 e9 01 00", 4, C::JUMP},
    {16, "e9 01 00", 3, C::JUMP},
    {64, "f2 e9 01 00 00 00", 6, C::JUMP},  // BND
    {64, "e8 01 00 00 00", 5, C::CALL},
    {64, "66 e8 01 00 00 00", 6, C::CALL},
    {32, "66 e8 01 00", 4, C::CALL},
    {16, "e8 01 00", 3, C::CALL},
    {16, "66 e8 01 00 00 00", 6, C::CALL},
    {64, "ff e0", 2, C::JUMP_INDIRECT},
    {64, "3e ff e0", 3, C::JUMP_INDIRECT},  // NOTRACK
    {64, "41 ff 24 c4", 4, C::JUMP_INDIRECT},
    {64, "ff 25 00 00 00 00", 6, C::JUMP_INDIRECT},
    {64, "ff d0", 2, C::CALL_INDIRECT},
    {64, "ff 15 00 00 00 00", 6, C::CALL_INDIRECT},
    {32, "66 ff d0", 3, C::CALL_INDIRECT},
    {16, "ff 16 00 10", 4, C::CALL_INDIRECT},
    {64, "c3", 1, C::RETURN},
    {64, "f2 c3", 2, C::RETURN},
    {64, "f3 c3", 2, C::RETURN},
    {64, "c2 08 00", 3, C::RETURN},
    {32, "66 c3", 2, C::RETURN},
};

constexpr Case kFar[] = {
    {64, "ff 18", 2, C::FAR_CALL, K::CALL_FAR},
    {64, "48 ff 18", 3, C::FAR_CALL, K::CALL_FAR},
    {32, "9a 01 00 00 00 02 00", 7, C::FAR_CALL, K::CALL_FAR},
    {16, "9a 01 00 02 00", 5, C::FAR_CALL, K::CALL_FAR},
    {64, "9a 01 00 00 00 02 00", 0},
    {64, "ff 28", 2, C::FAR_JUMP, K::JMP_FAR},
    {32, "ea 01 00 00 00 02 00", 7, C::FAR_JUMP, K::JMP_FAR},
    {32, "66 ea 01 00 02 00", 6, C::FAR_JUMP, K::JMP_FAR},
    {64, "ea 01 00 00 00 02 00", 0},
    {64, "cb", 1, C::FAR_RETURN, K::RET_FAR},
    {64, "48 cb", 2, C::FAR_RETURN, K::RET_FAR},
    {32, "ca 04 00", 3, C::FAR_RETURN, K::RET_FAR},
    {64, "cd 80", 2, C::FAR_CALL, K::INT},
    {64, "cc", 1, C::FAR_CALL, K::INT3},
    {64, "f1", 1, C::FAR_CALL, K::INT1},
    {32, "ce", 1, C::FAR_CALL, K::INTO},
    {64, "ce", 0},
    {64, "cf", 1, C::FAR_RETURN, K::IRET},
    {64, "48 cf", 2, C::FAR_RETURN, K::IRET},
    {16, "cf", 1, C::FAR_RETURN, K::IRET},
    {64, "0f 05", 2, C::FAR_CALL, K::SYSCALL},
    {64, "0f 34", 2, C::FAR_CALL, K::SYSENTER},
    {32, "0f 34", 2, C::FAR_CALL, K::SYSENTER},
    {64, "48 0f 07", 3, C::FAR_RETURN, K::SYSRET},
    {64, "0f 35", 2, C::FAR_RETURN, K::SYSEXIT},
    {64, "f3 0f 01 ec", 4, C::FAR_RETURN, K::UIRET},
    {32, "f3 0f 01 ec", 0},
    {64, "f2 0f 01 ca", 4, C::FAR_RETURN, K::ERETS},
    {64, "f3 0f 01 ca", 4, C::FAR_RETURN, K::ERETU},
    {64, "f2 f3 0f 01 ca", 5, C::FAR_RETURN, K::ERETU},  // the last of F2 and F3 counts
    {32, "f3 0f 01 ca", 0},
    {64, "0f 01 ca", 3},  // CLAC
    {64, "0f aa", 2, C::FAR_RETURN, K::RSM},
    {64, "0f 01 c1", 3, C::FAR_CALL, K::VMCALL},
    {64, "0f 01 c2", 3, C::FAR_CALL, K::VMLAUNCH},
    {64, "0f 01 c3", 3, C::FAR_CALL, K::VMRESUME},
};

constexpr Case kOthers[] = {
    {64, "0f c7 30", 3, C::OTHER, K::VMPTRLD},
    {64, "f3 0f c7 30", 4},  // VMXON
    {64, "0f c7 f0", 3},     // RDRAND
    {64, "0f 22 d8", 3, C::OTHER, K::MOV_CR3},
    {64, "41 0f 22 df", 4, C::OTHER, K::MOV_CR3},
    {32, "0f 22 d8", 3, C::OTHER, K::MOV_CR3},
    {64, "0f 22 c0", 3},     // CR0
    {64, "44 0f 22 c0", 4},  // CR8
    {64, "0f 20 d8", 3},     // reads CR3
    {64, "0f 30", 2, C::OTHER, K::WRMSR},
    {64, "0f 01 c6", 3, C::OTHER, K::WRMSR},
    {64, "f3 0f 01 c6", 4, C::OTHER, K::WRMSR},  // WRMSRLIST
    {64, "f2 0f 01 c6", 4},                      // RDMSRLIST
    {64, "0f 01 c9", 3, C::OTHER, K::MWAIT},
    {64, "f3 48 0f ae e0", 5, C::PTWRITE, K::PTWRITE},
    {32, "f3 0f ae 20", 4, C::PTWRITE, K::PTWRITE},
    {64, "0f ae 20", 3},  // XSAVE
    {64, "c7 f8 01 00 00 00", 6, C::OTHER, K::XBEGIN},
    {64, "66 c7 f8 01 00", 5, C::OTHER, K::XBEGIN},
    {16, "c7 f8 01 00", 4, C::OTHER, K::XBEGIN},
    {64, "0f 01 d5", 3, C::OTHER, K::XEND},
    {64, "c6 f8 01", 3, C::OTHER, K::XABORT},
    {64, "0f 0b", 2, C::OTHER, K::UD},
    {64, "0f b9 c0", 3, C::OTHER, K::UD},
    {64, "0f ff c0", 3, C::OTHER, K::UD},
    {64, "f4", 1, C::OTHER, K::HLT},
    {64, "fa", 1, C::OTHER, K::CLI},
    {64, "fb", 1, C::OTHER, K::STI},
    {64, "9d", 1, C::OTHER, K::POPF},
    {32, "66 9d", 2, C::OTHER, K::POPF},
    {64, "90", 1},
    {64, "f3 90", 2},  // PAUSE: F3 does not repeat it
    {64, "f3 a4", 2, C::OTHER, K::OTHER, true},
    {64, "f3 48 a5", 3, C::OTHER, K::OTHER, true},
    {64, "f2 ae", 2, C::OTHER, K::OTHER, true},
    {64, "f3 aa", 2, C::OTHER, K::OTHER, true},
    {16, "f3 6c", 2, C::OTHER, K::OTHER, true},
    {64, "a4", 1},
    {64, "f2 0f 10 c1", 4},     // the other MOVSD
    {64, "f2 0f c2 c1 00", 5},  // the other CMPSD
    {64, "f3 0f b8 c0", 4},     // POPCNT
    {64, "66 f3 0f b8 c0", 5},
    {32, "f0 0f b1 0b", 4},
    {64, "06", 0},
    {32, "06", 1},
    {64, "f0 90", 0},
    {64, "48 b8 01 02 03 04 05 06 07 08", 10},
    {64, "64 48 8b 04 25 28 00 00 00", 9},
    {64, "62 f1 7c 48 28 00", 6},
    {64, "66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", 15},
    {64, "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", 0},
};

// Instructions that this version of Zydis does not decode.
constexpr Case kNewer[] = {
    {64, "d5 00 a1 88 77 66 55 44 33 22 11", 11, C::JUMP, K::JMPABS},
    {64, "d5 77 a1 88 77 66 55 44 33 22 11", 11, C::JUMP, K::JMPABS},  // register bits are ignored
    {64, "d5 08 a1 88 77 66 55 44 33 22 11", 0},                       // W
    {64, "66 d5 00 a1 88 77 66 55 44 33 22 11", 0},
    {64, "67 d5 00 a1 88 77 66 55 44 33 22 11", 0},
    {32, "d5 00", 2},                          // AAD
    {64, "d5 10 ff d0", 4, C::CALL_INDIRECT},  // CALL r16
    {64, "d5 11 ff e0", 4, C::JUMP_INDIRECT},
    {64, "d5 00 c3", 3, C::RETURN},
    {64, "d5 18 89 c0", 4},
    {64, "d5 18 81 c0 01 00 00 00", 8},
    {64, "66 d5 10 81 c0 01 00", 7},
    {64, "d5 90 af c0", 4},  // IMUL: second map
    {64, "d5 80 05", 3, C::FAR_CALL, K::SYSCALL},
    {64, "f3 d5 10 a4", 0},  // reserved rows
    {64, "d5 00 e8 01 00 00 00", 0},
    {64, "d5 00 74 01", 0},
    {64, "d5 80 84 01 00 00 00", 0},
    {64, "d5 00 d5 00 90", 0},
    {64, "48 d5 00 c3", 0},
    {64, "f2 0f 00 f0", 4},  // LKGS
    {64, "f2 0f 00 34 25 00 00 00 00", 9},
    {64, "0f 38 fc 00", 4},  // AADD
    {64, "0f 38 fc c0", 0},
    {64, "c4 e2 79 e0 04 24", 6},  // CMPOXADD
    {32, "c4 e2 7b 50 c1", 5},     // VPDPBSSD
    {16, "c4 e2 7b 50 06 00 10", 7},
    {64, "62 f4 7c 08 01 c0", 6},  // EVEX ADD
    {64, "62 f4 7c 08 81 c0 01 00 00 00", 10},
    {64, "62 f4 7d 08 81 c0 01 00", 8},
    {64, "62 f4 7c 08 f6 c0 01", 7},
    {64, "62 f4 7c 08 f6 d0", 6},
    {64, "62 f4 7c 08 83 40 10 01", 8},
    {32, "62 f4 7c 08 01 c0", 0},
};

INSTANTIATE_TEST_SUITE_P(Branches, InsnEncodings, testing::ValuesIn(kBranches));
INSTANTIATE_TEST_SUITE_P(Far, InsnEncodings, testing::ValuesIn(kFar));
INSTANTIATE_TEST_SUITE_P(Others, InsnEncodings, testing::ValuesIn(kOthers));
INSTANTIATE_TEST_SUITE_P(Newer, InsnEncodings, testing::ValuesIn(kNewer));

struct TargetCase {
  int mode;
  const char* code;
  std::uint64_t ip;
  std::uint64_t target;
  std::uint32_t cs_base = 0;
};

void PrintTo(const TargetCase& item, std::ostream* out) {
  *out << item.mode << "-bit " << item.code << " at 0x" << std::hex << item.ip;
}

TEST(DirectTarget, IsThatOfDirectBranchesOnly) {
  for (const char* code : {"90", "ffe0", "c3", "e8"}) {  // nop; jmp rax; ret; a call that is cut
    EXPECT_EQ(direct_target(ExecMode::BITS64, bytes_of(code), 0x1000), std::nullopt) << code;
  }
}

class DirectTargets : public testing::TestWithParam<TargetCase> {};

TEST_P(DirectTargets, Wrap) {
  const TargetCase& item = GetParam();
  const auto mode = static_cast<ExecMode>(item.mode);
  Insn insn;
  const auto code = bytes_of(item.code);
  ASSERT_EQ(decode(mode, code, insn), Status::OK);
  EXPECT_EQ(direct_target(insn, mode, item.ip, item.cs_base), item.target);
  EXPECT_EQ(direct_target(mode, code, item.ip, item.cs_base), item.target);
  std::ostringstream hex;
  hex << "0x" << std::hex << item.target;
  const std::string text = disassemble(mode, code, item.ip, item.cs_base);
  EXPECT_EQ(text.substr(text.rfind(' ') + 1), hex.str()) << text;
}

constexpr TargetCase kTargets[] = {
    {64, "eb fe", 0x1000, 0x1000},
    {64, "eb 10", 0xffff'ffff'ffff'fff0, 0x2},
    {64, "e8 fb ff ff ff", 0x7fff'0000'0000, 0x7fff'0000'0000},
    {64, "e9 00 00 00 80", 0x1'0000'0000, 0x8000'0005},
    {64, "66 e9 00 00 01 00", 0x1000, 0x11006},
    {64, "66 74 10", 0x12'3456, 0x12'3469},
    {64, "c7 f8 10 00 00 00", 0x40'0000, 0x40'0016},
    {64, "66 c7 f8 f0 ff", 0x40'0010, 0x40'0005},
    {64, "d5 00 a1 88 77 66 55 44 33 22 11", 0x1000, 0x1122'3344'5566'7788},
    {32, "eb 10", 0xffff'fff8, 0xa},
    {32, "e9 f0 ff ff ff", 0x4, 0xffff'fff9},
    {32, "66 e9 10 00", 0x12'fff8, 0xc},  // a 16-bit operand size clears the upper half of EIP
    {32, "66 eb 10", 0x12'0000, 0x13},
    {32, "66 c7 f8 10 00", 0x12'0000, 0x12'0015},  // but not for XBEGIN
    {16, "eb 10", 0xfff8, 0xa},
    {16, "e9 00 80", 0x1000, 0x9003},
    {16, "66 e9 00 00 01 00", 0x1000, 0x1'1006},
    {16, "eb 10", 0x12'fff8, 0x13'000a},  // a linear address: the segment base is not known
    {16, "e2 fe", 0x10, 0x10},
    // Effective addresses wrap, in a segment with a base.
    {16, "eb 10", 0x12'fff8, 0x12'000a, 0x12'0000},
    {16, "eb 10", 0x13'1238, 0x12'124a, 0x12'1240},
    {16, "e9 00 80", 0x12'2240, 0x12'a243, 0x12'1240},
    {16, "66 e9 00 00 01 00", 0x12'1000, 0x13'1006, 0x12'0000},
    {16, "eb 10", 0x6ff8, 0xffff'700a, 0xffff'7000},  // the segment ends after 4 GiB
    {16, "eb 10", 0x14'fff8, 0x15'000a, 0x12'0000},   // not in this segment
    {32, "eb 10", 0xffff'fff8, 0xa, 0x1000},
    {32, "66 e9 10 00", 0x12'fff8, 0x10'000c, 0x10'0000},
    {32, "66 e9 10 00", 0x13'1232, 0x10'1246, 0x10'1234},
    {64, "eb 10", 0xffff'fff0, 0x1'0000'0002, 0x1000},  // 64-bit code has no base
    {64, "66 74 10", 0x12'3456, 0x12'3469, 0x1000},
};
INSTANTIATE_TEST_SUITE_P(All, DirectTargets, testing::ValuesIn(kTargets));

TEST(NextIp, WrapsToTheMode) {
  Insn insn;
  insn.size = 3;
  EXPECT_EQ(next_ip(insn, ExecMode::BITS64, 0xffff'ffff'ffff'ffff), 2u);
  EXPECT_EQ(next_ip(insn, ExecMode::BITS64, 0xffff'ffff), 0x1'0000'0002u);
  EXPECT_EQ(next_ip(insn, ExecMode::BITS32, 0xffff'ffff), 2u);
  EXPECT_EQ(next_ip(insn, ExecMode::BITS16, 0xffff), 2u);
  EXPECT_EQ(next_ip(insn, ExecMode::BITS16, 0x2'ffff), 0x3'0002u);
  EXPECT_EQ(next_ip(insn, ExecMode::BITS16, 0x2'ffff, 0x2'0000), 0x2'0002u);
  EXPECT_EQ(next_ip(insn, ExecMode::BITS16, 0x2'1233, 0x1'1234), 0x1'1236u);
  EXPECT_EQ(next_ip(insn, ExecMode::BITS16, 0x6fff, 0xffff'7000), 0xffff'7002u);
  EXPECT_EQ(next_ip(insn, ExecMode::BITS32, 0xffff'ffff, 0x1000), 2u);
  EXPECT_EQ(next_ip(insn, ExecMode::BITS64, 0xffff'ffff, 0x1000), 0x1'0000'0002u);
}

TEST(Decode, RejectsUnknownModes) {
  Insn insn;
  const std::array<std::uint8_t, 1> nop = {0x90};
  EXPECT_EQ(decode(ExecMode::UNKNOWN, nop, insn), Status::BAD_INSN);
  EXPECT_EQ(decode(ExecMode::BITS64, {}, insn), Status::NO_CODE);
  EXPECT_EQ(disassemble(ExecMode::UNKNOWN, nop, 0), "(bad)");
}

TEST(Disassemble, PrintsIntelSyntax) {
  const auto text = [](ExecMode mode, const char* code) { return disassemble(mode, bytes_of(code), 0x1000); };
  EXPECT_EQ(text(ExecMode::BITS64, "48 89 d8"), "mov rax, rbx");
  EXPECT_EQ(text(ExecMode::BITS64, "48 8b 05 f9 ff ff ff"), "mov rax, [0x1000]");
  EXPECT_EQ(text(ExecMode::BITS64, "74 fe"), "jz 0x1000");
  EXPECT_EQ(text(ExecMode::BITS64, "f3 a4"), "rep movsb");
  EXPECT_EQ(text(ExecMode::BITS32, "83 c0 ff"), "add eax, 0xffffffff");
  EXPECT_EQ(text(ExecMode::BITS32, "ff 24 85 04 20 a1 f7"), "jmp [eax*4+0xf7a12004]");
  EXPECT_EQ(text(ExecMode::BITS32, "8b 45 f8"), "mov eax, [ebp-0x8]");
  EXPECT_EQ(text(ExecMode::BITS64, "8b 04 85 04 20 a1 f7"), "mov eax, [rax*4-0x85edffc]");
  EXPECT_EQ(text(ExecMode::BITS64, "f3 0f 01 ca"), "eretu");
  EXPECT_EQ(text(ExecMode::BITS64, "f2 0f 01 ca"), "erets");
  EXPECT_EQ(text(ExecMode::BITS64, "d5 00 a1 88 77 66 55 44 33 22 11"), "jmpabs 0x1122334455667788");
  EXPECT_EQ(text(ExecMode::BITS64, "d5 08 89 d8"), "mov rax, rbx");
  EXPECT_EQ(text(ExecMode::BITS64, "d5 10 ff d0"), "call ...");
  EXPECT_EQ(text(ExecMode::BITS64, "d5 08 8b 05 f8 ff ff ff"), "mov rax, [0x1000]");
  EXPECT_EQ(text(ExecMode::BITS64, "f2 0f 00 f0"), "lkgs ...");
  EXPECT_EQ(text(ExecMode::BITS64, "06"), "(bad)");
  EXPECT_EQ(text(ExecMode::BITS64, "e8"), "(bad)");
}

// Random bytes: a valid status, a size in 1..15 and within the bytes, and the same result if more bytes
// follow.
TEST(Decode, SurvivesRandomBytes) {
  std::mt19937_64 random(20240607);
  constexpr std::array kFirst = {0x0F, 0xD5, 0x62, 0xC4, 0xC5, 0x66, 0xF2, 0xF3, 0x48};
  for (int round = 0; round < 300000; ++round) {
    std::array<std::uint8_t, 20> bytes{};
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const auto at = static_cast<std::size_t>(random() % 3);
    if (round % 2 == 0) bytes[at] = static_cast<std::uint8_t>(kFirst[random() % kFirst.size()]);
    for (const ExecMode mode : {ExecMode::BITS16, ExecMode::BITS32, ExecMode::BITS64}) {
      Insn insn;
      const Status status = decode(mode, bytes, insn);
      if (status != Status::OK) {
        ASSERT_EQ(status, Status::BAD_INSN);  // 15 bytes are enough for any instruction
        continue;
      }
      ASSERT_GE(insn.size, 1);
      ASSERT_LE(insn.size, 15);
      Insn exact;
      ASSERT_EQ(decode(mode, base::Bytes(bytes).first(insn.size), exact), Status::OK)
          << static_cast<int>(mode) << ' ' << testing::PrintToString(bytes);
      ASSERT_EQ(exact.size, insn.size);
      ASSERT_EQ(exact.cls, insn.cls);
      Insn cut;
      ASSERT_NE(decode(mode, base::Bytes(bytes).first(insn.size - 1U), cut), Status::OK);
      if (round % 16 == 0) {
        ASSERT_NE(disassemble(mode, bytes, random()), "(bad)");
      }
    }
  }
}

}  // namespace
}  // namespace ptkit::code::insn
