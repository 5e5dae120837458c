// Bundles that older versions wrote. They stay readable, at any alignment.
#include <gtest/gtest.h>

#include "golden_ptk.h"
#include "sample.h"
#include "unit/support/warned.h"

namespace ptkit::formats {
namespace {

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

std::string golden_data() {
  std::string data(400, '\0');
  for (std::size_t i = 0; i < 8; ++i) data.replace(2 * i, 2, "\x02\x82");
  data.replace(16, 2, "\x02\x23");
  for (std::size_t i = 18; i < 218; ++i) data[i] = static_cast<char>(6 + i % 3 * 2);
  return data;
}

void expect_configuration(const trace::Configuration& configuration) {
  EXPECT_EQ(configuration.cpu.model, 143U);
  EXPECT_EQ(configuration.cpu.stepping, 8U);
  EXPECT_EQ(configuration.clock.tsc_ctc_numerator, 480U);
  EXPECT_EQ(configuration.clock.mtc_period, 8U);
  EXPECT_EQ(configuration.clock.tsc_hz, 2400000000U);
  EXPECT_EQ(configuration.clock.time_mult, 426U);
  EXPECT_EQ(configuration.clock.time_shift, 10U);
  EXPECT_EQ(configuration.clock.time_zero, ~std::uint64_t{0} - 7);
  EXPECT_EQ(configuration.rtit_ctl, 0x2a08U);
  EXPECT_EQ(configuration.ranges[1].kind, trace::RangeKind::FILTER);
  EXPECT_EQ(configuration.ranges[1].last, 0x1fffU);
}

void expect_code(const trace::TraceBundle& bundle) {
  ASSERT_EQ(bundle.files.size(), 1U);
  EXPECT_EQ(bundle.files[0].path, "/bin/echo");
  EXPECT_EQ(bundle.files[0].build_id, "00ff");
  ASSERT_EQ(bundle.files[0].symbols.size(), 2U);
  EXPECT_EQ(bundle.files[0].symbols[0].name, "main");
  EXPECT_EQ(bundle.files[0].symbols[1].file_offset, 0x50U);
  ASSERT_EQ(bundle.code.size(), 2U);
  EXPECT_EQ(bundle.code[0].size, 0x3000U);
  EXPECT_EQ(bundle.code[0].bytes.size(), 0U);
  EXPECT_EQ(bundle.code[1].address, 0x400000U);
  EXPECT_EQ(bundle.code[1].tsc_from, 77U);
  EXPECT_EQ(bundle.code[1].tsc_to, 99U);
  EXPECT_EQ(bundle.code[1].file, 0);
  EXPECT_EQ(bundle.code[1].file_offset, 0x1000U);
  EXPECT_EQ(bundle.code[1].space, 1U);
  EXPECT_EQ(test::text_of(bundle.code[1].bytes.bytes()), "\x90\x90\xc3\xcc");
}

void expect_stream(const trace::TraceBundle& bundle) {
  ASSERT_EQ(bundle.spaces.size(), 2U);
  EXPECT_EQ(bundle.spaces[1].cr3, 0x5000U);
  ASSERT_EQ(bundle.streams.size(), 1U);
  const trace::Stream& stream = bundle.streams[0];
  EXPECT_EQ(stream.name, "thread 101 (echo)");
  EXPECT_EQ(stream.pid, 100);
  EXPECT_EQ(stream.tid, 101);
  EXPECT_EQ(stream.cpu, 3);
  EXPECT_EQ(stream.space, 1U);
  EXPECT_EQ(test::text_of(stream.data.bytes()), golden_data());
  ASSERT_EQ(stream.switches.size(), 1U);
  EXPECT_EQ(stream.switches[0].tsc, 5U);
  ASSERT_EQ(stream.losses.size(), 1U);
  EXPECT_EQ(stream.losses[0].offset, 16U);
  EXPECT_EQ(stream.losses[0].cause, base::Status::RING_WRAPPED);
  EXPECT_EQ(stream.losses[0].lost_bytes, 10U);
  ASSERT_EQ(bundle.sideband.size(), 2U);
  EXPECT_EQ(bundle.sideband[0].text, "echo");
  EXPECT_EQ(bundle.sideband[1].kind, trace::SidebandKind::EXIT);
  EXPECT_EQ(bundle.sideband[1].value, 3);
}

class GoldenPtk : public ::testing::TestWithParam<std::string_view> {};

TEST_P(GoldenPtk, Opens) {
  const test::Scratch scratch;
  const auto opened = open(scratch.write("golden.ptk", from_hex(GetParam())), {});
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  EXPECT_EQ(opened.value().warnings, std::vector<trace::Warning>());
  expect_configuration(opened.value().configuration);
  expect_code(opened.value());
  expect_stream(opened.value());
  EXPECT_NE(opened.value().metadata.find("\"instructions\":12345"), std::string::npos);
  EXPECT_NE(opened.value().metadata.find("\"exit_status\":3"), std::string::npos);
}

TEST_P(GoldenPtk, OpensAtAnyAlignment) {
  const std::string file = from_hex(GetParam());
  const std::string expected = test::unpacked(file);
  EXPECT_NE(expected.find("META {\"backend\":\"step\""), std::string::npos);
  std::vector<std::uint8_t> memory;
  for (std::size_t shift = 1; shift < 8; ++shift) {
    memory.assign(shift, 0xff);
    memory.insert(memory.end(), file.begin(), file.end());
    const base::Bytes moved = base::Bytes(memory).subspan(shift);
    const auto list = ptk::list_chunks("golden", moved);
    ASSERT_TRUE(list.ok());
    EXPECT_TRUE(list.value().indexed);
    std::string text;
    for (const auto& entry : list.value().entries) {
      const auto payload = ptk::read_chunk(moved, entry);
      ASSERT_TRUE(payload.ok()) << payload.failure().detail;
      text += ptk::type_name(entry.header.type) + " " + test::text_of(payload.value()) + "\n";
    }
    EXPECT_EQ(text, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, GoldenPtk, ::testing::Values(test::kGolden10, test::kGolden11));

}  // namespace
}  // namespace ptkit::formats
