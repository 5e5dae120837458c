// PTW packets that DRAKVUF inserts, in whole and in damaged streams.
#include <gtest/gtest.h>

#include "formats/foreign/drakvuf_scan.h"
#include "unit/support/traces/stream_maker.h"

namespace ptkit::formats::drakvuf {
namespace {

using test::StreamMaker;
using trace::DrakvufMark;
using Kind = packet::PacketKind;

constexpr std::uint32_t kCr3 = 0xC3000000;
constexpr std::uint32_t kTid = 0x1D000000;
constexpr std::uint32_t kNoData = 0xBAD10000;

base::Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// "CR3 a000 TID b": marks and their data.
std::string marks_of(const ScanResult& found) {
  std::string text;
  for (const Annotation& one : found.annotations) {
    char data[16];
    std::snprintf(data, sizeof data, " %x", one.data);
    text += (text.empty() ? "" : " ") +
            std::string(one.mark == DrakvufMark::CR3   ? "CR3"
                        : one.mark == DrakvufMark::TID ? "TID"
                                                       : "other") +
            data;
  }
  return text;
}

TEST(DrakvufScan, FindsMarksAndPips) {
  StreamMaker stream;
  const std::uint64_t first = stream.psb().ptw(kCr3, 0xa000).last;
  stream.ptw(kTid, 11).add(Kind::PIP, 0x1'0000'a000).run(0x1000, 0x1001);
  stream.ptw(0x12345678, 1).run(0x1001, 0x1002);  // a PTWRITE of the guest
  const std::string text = stream.text();
  const ScanResult found = scan(bytes_of(text));
  EXPECT_EQ(marks_of(found), "CR3 a000 TID b");
  EXPECT_EQ(found.annotations[0].offset, first);
  ASSERT_EQ(found.pips.size(), 1U);
  EXPECT_EQ(found.pips[0].cr3, 0x1'0000'a000U);
  EXPECT_TRUE(has_annotation(bytes_of(text)));
  const std::string guest = StreamMaker().psb().ptw(0x12345678, 1).text();
  EXPECT_FALSE(has_annotation(bytes_of(guest)));
}

TEST(DrakvufScan, FindsMarksInUndecodableBytes) {
  StreamMaker stream;
  stream.psb().ptw(kCr3, 0xa000).ptw(kTid, 11).run(0x1000, 0x1001);
  // The ring wrapped: no packet begins with 02 ff.
  const std::uint64_t damage = stream.raw("\x02\xff\x02\xff").last;
  const std::uint64_t after = stream.ptw(kCr3, 0xb000).last;
  stream.ptw(kTid, 33).raw("\x02\xff\x02\x32").psb().run(0x1000, 0x1001);
  stream.ptw(kNoData, 0);
  const std::string text = stream.text();
  const ScanResult found = scan(bytes_of(text));
  EXPECT_EQ(marks_of(found), "CR3 a000 TID b CR3 b000 TID 21 other 0");
  EXPECT_GT(after, damage);
  EXPECT_EQ(found.annotations[2].offset, after);
  EXPECT_EQ(found.no_data, 1U);
}

TEST(DrakvufScan, ResumesAtACutPsb) {
  // A PTW packet that was cut by a wrapped ring takes six bytes of the following PSB.
  constexpr std::uint64_t kThird = 0x3'0000'd000;
  StreamMaker stream;
  stream.psb().run(0x1000, 0x1001).raw(std::string("\x02\x32\x01\x02")).psb();
  stream.ptw(kCr3, 0xd000).add(Kind::PIP, kThird);
  const std::string text = stream.run(0x1000, 0x1001).text();
  const ScanResult found = scan(bytes_of(text));
  EXPECT_EQ(marks_of(found), "CR3 d000");
  ASSERT_EQ(found.pips.size(), 1U);
  EXPECT_EQ(found.pips[0].cr3, kThird);
}

}  // namespace
}  // namespace ptkit::formats::drakvuf
