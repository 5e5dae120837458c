#include <gtest/gtest.h>

#include "formats/registry.h"
#include "unit/support/scratch.h"
#include "unit/support/traces/stream_maker.h"
#include "unit/support/warned.h"

namespace ptkit::formats {
namespace {

using test::Scratch;
using test::StreamMaker;
using Kind = packet::PacketKind;

constexpr std::uint32_t kCr3 = 0xC3000000;
constexpr std::uint32_t kTid = 0x1D000000;
constexpr std::uint32_t kEvent = 0xCC000000;
constexpr std::uint32_t kNoData = 0xBAD10000;
constexpr std::uint64_t kFirst = 0x1'0000'a000;
constexpr std::uint64_t kSecond = 0x2'0000'b000;

trace::TraceBundle opened(const std::string& path) {
  const auto bundle = open(path, {});
  EXPECT_TRUE(bundle.ok()) << bundle.failure().detail;
  return bundle.ok() ? bundle.value() : trace::TraceBundle{};
}

constexpr const char* kLog = R"log(
{"EventType":"execframe","CR3":"0x10000a000","PageVA":"0x1000","TrapPA":"0x9123","PID":4,"TID":11,"ProcessName":"\\Device\\calc.exe","DumpFile":"/tmp/one"}
{"EventType":"pagefault","CR3":"0x20000b000","VA":"0x1234","PA":"0x9234","PID":8,"TID":22,"ProcessName":"b.exe"}
{"EventType":"pagefault","CR3":"0x20000b000","VA":"0x5234","PA":"0x9234"}
{"EventType":"execframe","CR3":"0x10000a000","PageVA":"0xfffff80000001000","TrapPA":"0x1000","DumpFile":"kernel"}
{"EventType":"execframe","CR3":"0x10000a000","PageVA":"0x2000","TrapPA":"0x8000","DumpFile":"cut"}
{"EventType":"execframe","CR3":"0x10000a000","PageVA":"0x3000","TrapPA":"0x7000","DumpFile":"(null)"}
{"Plugin":"execframe","CR3":4294975488,"FrameVA":"0x4000","TrapPA":"0x6000","FrameFile":"x/frame_00001"}
{"EventType":"execframe","CR3":"0x10000a000","TrapPA":"0x6000","DumpFile":"one"}
not "CR3" JSON
)log";

class Drakvuf : public ::testing::Test {
 protected:
  // Two processes in turn. CR3 annotations have 32 bits, PIPs have 64.
  Drakvuf() {
    stream_.psb();
    first_ = stream_.ptw(kCr3, 0xa000).last;
    stream_.ptw(kTid, 11).add(Kind::PIP, kFirst).run(0x1000, 0x1001);
    stream_.ptw(kEvent, 0x77).run(0x1001, 0x1002);
    second_ = stream_.ptw(kCr3, 0xb000).last;
    stream_.ptw(kTid, 22).add(Kind::PIP, kSecond).run(0x1000, 0x1003);
  }
  std::string page(char fill, std::size_t size = 4096) { return std::string(size, fill); }

  Scratch scratch_;
  StreamMaker stream_;
  std::uint64_t first_ = 0;
  std::uint64_t second_ = 0;
};

TEST_F(Drakvuf, MakesSwitchesOfAnnotations) {
  scratch_.write("ipt_stream_vcpu0", stream_.text());
  scratch_.write("ipt_stream_vcpu12", stream_.text());
  scratch_.write("ipt_stream_vcpu3", "");
  scratch_.write("ipt_stream_vcpuX", "other");
  const auto bundle = opened(scratch_.path());
  EXPECT_EQ(bundle.format, "drakvuf");
  ASSERT_EQ(bundle.streams.size(), 2u);
  EXPECT_EQ(bundle.streams[1].cpu, 12);
  const auto& stream = bundle.streams[0];
  EXPECT_EQ(stream.cpu, 0);
  EXPECT_TRUE(stream.switches_by_offset);
  ASSERT_EQ(stream.switches.size(), 2u);
  EXPECT_EQ(stream.switches[0].offset, first_);
  EXPECT_EQ(stream.switches[0].tid, 11);
  EXPECT_EQ(bundle.spaces[stream.switches[0].space].cr3, kFirst);
  EXPECT_EQ(stream.switches[1].offset, second_);
  EXPECT_EQ(stream.switches[1].tid, 22);
  EXPECT_EQ(bundle.spaces[stream.switches[1].space].cr3, kSecond);
  EXPECT_EQ(bundle.configuration.rtit_ctl, 0x280du);  // TraceEn, OS, User, DisRETC, BranchEn
  EXPECT_TRUE(bundle.warnings.empty());
}

TEST_F(Drakvuf, RecognisesStreamsByAnnotations) {
  EXPECT_EQ(opened(scratch_.write("renamed", stream_.text())).format, "drakvuf");
  EXPECT_EQ(opened(scratch_.write("plain", test::small_stream())).format, "raw");
  // A program's PTWRITE.
  const std::string program = StreamMaker().psb().ptw(0x12345678, 1).text();
  EXPECT_EQ(opened(scratch_.write("program", program)).format, "raw");
  EXPECT_EQ(opened(scratch_.write("a/ipt/ipt_stream_vcpu0", test::small_stream())).format, "drakvuf");
  EXPECT_EQ(opened(scratch_.at("a")).streams.size(), 1u);
}

TEST_F(Drakvuf, KeepsIncompleteCr3) {
  const std::string text = StreamMaker().psb().ptw(kCr3, 0xc123).run(0x1000, 0x1001).ptw(kTid, 5).text();
  const auto bundle = opened(scratch_.write("ipt_stream_vcpu0", text));
  const auto& switches = bundle.streams[0].switches;
  ASSERT_EQ(switches.size(), 2u);
  EXPECT_EQ(bundle.spaces[switches[0].space].cr3, 0xc000u);
  EXPECT_EQ(switches[0].tid, trace::kNoId);
  EXPECT_EQ(switches[1].tid, 5);
  EXPECT_EQ(switches[1].space, switches[0].space);
}

TEST_F(Drakvuf, FindsAnnotationsInUndecodableBytes) {
  // The ring wrapped: no packet begins with 02 ff.
  const std::uint64_t damage = stream_.raw("\x02\xff\x02\xff").last;
  const std::uint64_t third = stream_.ptw(kCr3, 0xa000).last;
  stream_.ptw(kTid, 33).raw("\x02\xff\x02\x32").psb().run(0x1000, 0x1001);
  stream_.ptw(kNoData, 0);
  const auto bundle = opened(scratch_.write("ipt_stream_vcpu0", stream_.text()));
  const auto& switches = bundle.streams[0].switches;
  ASSERT_EQ(switches.size(), 3u);
  EXPECT_GT(third, damage);
  EXPECT_EQ(switches[2].offset, third);
  EXPECT_EQ(switches[2].tid, 33);
  EXPECT_EQ(switches[2].space, switches[0].space);
  EXPECT_EQ(bundle.warnings.size(), 1u);
  EXPECT_TRUE(warns(bundle, WarningCode::DRAKVUF_EVENTS_UNTRACED, 1));
}

TEST_F(Drakvuf, ResumesAtACutPsb) {
  // A PTW packet that was cut by a wrapped ring takes six bytes of the following PSB.
  constexpr std::uint64_t kThird = 0x3'0000'd000;
  stream_.raw(std::string("\x02\x32\x01\x02")).psb().ptw(kCr3, 0xd000).add(Kind::PIP, kThird);
  const auto bundle = opened(scratch_.write("ipt_stream_vcpu0", stream_.run(0x1000, 0x1001).text()));
  const auto& switches = bundle.streams[0].switches;
  ASSERT_EQ(switches.size(), 3u);
  EXPECT_EQ(bundle.spaces[switches[2].space].cr3, kThird);
}

TEST_F(Drakvuf, IgnoresRejectedLines) {
  scratch_.write("ipt_stream_vcpu0", stream_.text());
  scratch_.write("codemon.log",
                 "{\"EventType\":\"execframe\",\"CR3\":\"0x10000a000\",\"PID\":4,\"TID\":11,"
                 "\"ProcessName\":\"calc.exe\",\"TrapPA\":\"0x6000\",\"DumpFile\":\"one\"}\n");
  const auto bundle = opened(scratch_.path());
  EXPECT_EQ(bundle.warnings.size(), 1u);
  EXPECT_TRUE(warns(bundle, WarningCode::DRAKVUF_LINES_SKIPPED, 1));
  EXPECT_TRUE(bundle.threads.empty());
  EXPECT_EQ(bundle.streams[0].switches[0].pid, trace::kNoId);
}

TEST_F(Drakvuf, MapsSavedPages) {
  scratch_.write("ipt/ipt_stream_vcpu0", stream_.text());
  scratch_.write("ipt/dumps/one", page('1'));
  scratch_.write("ipt/dumps/kernel", page('k'));
  scratch_.write("ipt/dumps/cut", page('c', 4000));
  scratch_.write("ipt/frames/frame_00001", page('f'));
  scratch_.write("codemon.log", kLog);
  const auto bundle = opened(scratch_.path());
  ASSERT_EQ(bundle.code.size(), 4u);
  const auto seen = [&](std::size_t i) { return static_cast<char>(bundle.code[i].bytes.bytes()[0]); };
  EXPECT_EQ(seen(0), '1');
  EXPECT_EQ(bundle.code[0].address, 0x1000u);
  EXPECT_EQ(bundle.spaces[bundle.code[0].space].cr3, kFirst);
  EXPECT_EQ(bundle.spaces[bundle.code[0].space].pid, 4);
  EXPECT_EQ(seen(1), 'k');
  EXPECT_EQ(bundle.code[1].space, trace::kAnySpace);
  EXPECT_EQ(seen(2), 'f');
  EXPECT_EQ(bundle.spaces[bundle.code[2].space].cr3, 0x100002000u);
  // The second process has the same frame at the same address. The frame was saved once.
  EXPECT_EQ(seen(3), '1');
  EXPECT_EQ(bundle.code[3].address, 0x1000u);
  EXPECT_EQ(bundle.spaces[bundle.code[3].space].cr3, kSecond);
  ASSERT_EQ(bundle.threads.size(), 2u);
  EXPECT_EQ(bundle.threads[0].name, "calc.exe");
  EXPECT_EQ(bundle.streams[0].switches[1].pid, 8);
  EXPECT_EQ(bundle.warnings.size(), 2u);
  EXPECT_TRUE(warns(bundle, WarningCode::DRAKVUF_LINES_SKIPPED, 2));
  EXPECT_TRUE(warns(bundle, WarningCode::DRAKVUF_PAGES_MISSING, 1));
}

TEST_F(Drakvuf, RefusesFoldersWithoutStreams) {
  scratch_.write("ipt_stream_vcpu0", "");
  EXPECT_NE(open(scratch_.path(), {}).failure().detail.find("all streams are empty"), std::string::npos);
  const Scratch other;
  const auto none = open(other.path(), {.format = "drakvuf"});
  EXPECT_NE(none.failure().detail.find("found none"), std::string::npos);
}

}  // namespace
}  // namespace ptkit::formats
