// Each status is produced once, by a call or in a trace, with its sentence and its offset.
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/status.h"
#include "handle.h"
#include "unit/support/scratch.h"
#include "unit/support/traces/loop_stream.h"

namespace ptkit::api::c {
namespace {

using flow::kLoop;
using flow::loop;
using flow::Scene;
using packet::PacketKind;

const std::vector<std::uint8_t> kNops(16, 0x90);
const std::vector<std::uint8_t> kIndirect{0xff, 0xe0};  // jmp rax

struct TraceError {
  int status;
  std::vector<std::uint8_t> code;
  void (*packets)(Scene&);  // after the PSB+ at 1000
};

class TraceErrors : public testing::TestWithParam<TraceError> {};

TEST_P(TraceErrors, AreCounted) {
  const Handle handle = open_with_code(GetParam().code);
  Scene scene;
  if (GetParam().packets != nullptr) {
    scene.begin();
    GetParam().packets(scene);
  }
  const ptkit_outcome outcome = decode(handle, scene.bytes());
  EXPECT_GE(outcome.errors, 1u);
  EXPECT_EQ(outcome.first_error, GetParam().status) << ptkit_status_sentence(outcome.first_error);
  EXPECT_EQ(ptkit_status_sentence(GetParam().status),
            base::status_sentence(static_cast<base::Status>(GetParam().status)));
}

INSTANTIATE_TEST_SUITE_P(
    All, TraceErrors,
    testing::Values(TraceError{PTKIT_NO_SYNC, kNops, nullptr},
                    TraceError{PTKIT_BAD_OPCODE, kNops,
                               [](Scene& s) {
                                 s.raw({0x02, 0x0b});
                               }},
                    TraceError{PTKIT_BAD_PACKET, kNops,
                               [](Scene& s) {
                                 s.raw({0x99, 0x40});
                               }},
                    TraceError{PTKIT_TRUNCATED_PACKET, kNops,
                               [](Scene& s) {
                                 s.raw({0x6d, 0x00});
                               }},
                    TraceError{PTKIT_BAD_IP_COMPRESSION, kNops,
                               [](Scene& s) {
                                 s.raw({0xad, 1, 2});
                               }},
                    TraceError{PTKIT_NO_IP, kIndirect, [](Scene& s) { s.add(PacketKind::TIP, 0, 0); }},
                    TraceError{PTKIT_NO_CODE, kIndirect, [](Scene& s) { s.tip(0x7000).tnt("t"); }},
                    TraceError{PTKIT_BAD_INSN, {0x0f, 0x04, 0, 0, 0}, [](Scene& s) { s.tnt("t"); }},
                    TraceError{PTKIT_TNT_MISMATCH, kLoop, [](Scene& s) { s.tip(0x2000); }},
                    TraceError{PTKIT_TIP_MISMATCH, kIndirect, [](Scene& s) { s.tnt("t").tnt("t"); }},
                    TraceError{PTKIT_FUP_MISMATCH, kLoop, [](Scene& s) { s.fup(0x1008).tip(0x2000); }},
                    TraceError{PTKIT_INFINITE_LOOP, {0xeb, 0xfe}, [](Scene& s) { s.tnt("t"); }},
                    TraceError{PTKIT_RETURN_STACK_EMPTY, {0xc3}, [](Scene& s) { s.tnt("t"); }},
                    TraceError{PTKIT_UNEXPECTED_PACKET, kNops,
                               [](Scene& s) { s.fup(0x1002).tip(0x1003).pge(0x1004); }}),
    [](const auto& one) {
      return std::string(base::status_name(static_cast<base::Status>(one.param.status)));
    });

TEST(CFailures, NullPointers) {
  const Handle handle = open_handle();
  ptkit_coverage* const coverage = handle.get();
  const auto fails = [](int status) {
    return status == PTKIT_BAD_CONFIG && *ptkit_failure_message() != '\0';
  };
  EXPECT_TRUE(fails(ptkit_coverage_open(nullptr, nullptr)));
  EXPECT_TRUE(fails(ptkit_coverage_add_image(nullptr, "a.out", 0)));
  EXPECT_TRUE(fails(ptkit_coverage_add_image(coverage, nullptr, 0)));
  EXPECT_TRUE(fails(ptkit_coverage_add_code(nullptr, 0, "", 1)));
  EXPECT_TRUE(fails(ptkit_coverage_add_code(coverage, 0, nullptr, 1)));
  EXPECT_TRUE(fails(ptkit_coverage_forget(nullptr, 0, 1)));
  EXPECT_TRUE(fails(ptkit_coverage_decode(nullptr, "", 0, nullptr, nullptr, nullptr)));
  EXPECT_TRUE(fails(ptkit_coverage_decode(coverage, nullptr, 1, nullptr, nullptr, nullptr)));
  EXPECT_TRUE(fails(ptkit_coverage_decode_ring(coverage, "", 0, nullptr, 1, nullptr, nullptr, nullptr)));
  EXPECT_EQ(ptkit_coverage_edges(nullptr, nullptr, 0), 0u);
  EXPECT_EQ(ptkit_coverage_new_edges(nullptr, nullptr, 0), 0u);
  EXPECT_EQ(ptkit_coverage_errors(nullptr, nullptr, 0), 0u);
  ptkit_coverage_close(nullptr);
  EXPECT_EQ(ptkit_coverage_decode(coverage, nullptr, 0, nullptr, nullptr, nullptr), PTKIT_OK);
}

TEST(CFailures, ArgumentsOutOfRange) {
  const Handle handle = open_with_code(kLoop);
  EXPECT_EQ(ptkit_coverage_forget(handle.get(), 2, 1), PTKIT_BAD_CONFIG);
  EXPECT_STREQ(ptkit_failure_message(), "last is below first");
  EXPECT_EQ(ptkit_coverage_add_code(handle.get(), UINT64_MAX, kNops.data(), 2), PTKIT_BAD_CONFIG);
  EXPECT_EQ(ptkit_coverage_add_code(handle.get(), UINT64_MAX, kNops.data(), 1), PTKIT_OK);
  std::vector<std::uint8_t> map(65536);
  const auto stream = loop(1);
  EXPECT_EQ(
      ptkit_coverage_decode(handle.get(), stream.data(), stream.size(), map.data(), map.data(), nullptr),
      PTKIT_BAD_CONFIG);
  EXPECT_STREQ(ptkit_failure_message(), "the map and the virgin map share memory; give each its own");
}

TEST(CFailures, Files) {
  const formats::test::Scratch scratch;
  const Handle handle = open_handle();
  const auto add = [&](const std::string& path) {
    return ptkit_coverage_add_image(handle.get(), path.c_str(), PTKIT_AS_LINKED);
  };
  EXPECT_EQ(add(scratch.at("missing")), PTKIT_IO_ERROR);
  EXPECT_NE(std::string(ptkit_failure_message()).find(scratch.at("missing")), std::string::npos);
  EXPECT_EQ(add(scratch.path()), PTKIT_IO_ERROR);
  EXPECT_EQ(add(scratch.write("text", "no program")), PTKIT_BAD_FILE);
  EXPECT_NE(std::string(ptkit_failure_message()).find(scratch.at("text")), std::string::npos);
  // Cut behind its header: the failure has the offset in the file.
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string head(4096, '\0');
  self.read(head.data(), static_cast<std::streamsize>(head.size()));
  EXPECT_EQ(add(scratch.write("cut", head)), PTKIT_BAD_FILE);
  EXPECT_NE(std::string(ptkit_failure_message()), "");
  EXPECT_EQ(ptkit_failure_offset() != 0,
            std::string(ptkit_failure_message()).find("at byte") != std::string::npos);
  // Nothing of them stays.
  EXPECT_EQ(decode(handle, loop(1)).first_error, PTKIT_NO_CODE);
}

TEST(CFailures, LongPathsAreCut) {
  const Handle handle = open_handle();
  const std::string path = "/" + std::string(4000, 'x');
  EXPECT_EQ(ptkit_coverage_add_image(handle.get(), path.c_str(), 0), PTKIT_IO_ERROR);
  const std::string message = ptkit_failure_message();
  EXPECT_LT(message.size(), 200u);
  EXPECT_NE(message.find("x..."), std::string::npos) << message;
}

TEST(CFailures, MessagesAreOfTheThread) {
  const Handle handle = open_handle();
  EXPECT_EQ(ptkit_coverage_forget(handle.get(), 2, 1), PTKIT_BAD_CONFIG);
  std::string other = "?";
  std::thread([&] { other = ptkit_failure_message(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_STREQ(ptkit_failure_message(), "last is below first");
}

TEST(CFailures, StatusSentences) {
  for (int status = -3; status < 300; ++status) ASSERT_NE(ptkit_status_sentence(status), nullptr);
  EXPECT_STREQ(ptkit_status_sentence(PTKIT_OK), "no error");
  EXPECT_STREQ(ptkit_status_sentence(PTKIT_IN_USE), "another call uses the handle");
  EXPECT_STREQ(ptkit_status_sentence(-1), "unknown status");
  EXPECT_STREQ(ptkit_status_sentence(200), "unknown status");
}

// A callback that does what it must not.
struct Callback {
  ptkit_coverage* coverage = nullptr;
  int status = PTKIT_OK;
  std::size_t edges = 1;
  bool throws = false;
  bool broken_size = false;
};

size_t misbehave(void* argument, uint64_t, void* out, size_t size) {
  auto& callback = *static_cast<Callback*>(argument);
  if (callback.throws) throw std::runtime_error("no page");
  std::fill_n(static_cast<unsigned char*>(out), size, static_cast<unsigned char>(0x90));
  if (callback.broken_size) return SIZE_MAX;
  callback.status = ptkit_coverage_decode(callback.coverage, "", 0, nullptr, nullptr, nullptr);
  callback.edges = ptkit_coverage_edges(callback.coverage, nullptr, 0);
  return size;
}

class Misbehaving : public testing::Test {
 protected:
  void SetUp() override {
    ptkit_options options = default_options();
    options.read_code = misbehave;
    options.read_code_argument = &callback;
    handle = open_handle(&options);
    callback.coverage = handle.get();
  }
  int decode_end() {
    const auto stream = Scene().begin().end(0x1004).bytes();
    return ptkit_coverage_decode(handle.get(), stream.data(), stream.size(), nullptr, nullptr, nullptr);
  }

  Callback callback;
  Handle handle;
};

TEST_F(Misbehaving, CallsWithTheHandleInUse) {
  EXPECT_EQ(decode_end(), PTKIT_OK);
  EXPECT_EQ(callback.status, PTKIT_IN_USE);
  EXPECT_EQ(callback.edges, 0u);
}

TEST_F(Misbehaving, ThrowsOnce) {
  callback.throws = true;
  EXPECT_EQ(decode_end(), PTKIT_INTERNAL);
  EXPECT_STREQ(ptkit_failure_message(), "read_code threw a C++ exception");
  callback.throws = false;
  EXPECT_EQ(decode_end(), PTKIT_OK);
}

TEST_F(Misbehaving, ReturnsMoreThanItWasAskedFor) {
  callback.broken_size = true;
  EXPECT_EQ(decode_end(), PTKIT_OK);
}

}  // namespace
}  // namespace ptkit::api::c
