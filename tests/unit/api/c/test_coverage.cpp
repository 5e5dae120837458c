// Counts by hand; rings in two chunks; images and code of a callback.
#include <cstring>
#include <string>

#include "handle.h"
#include "unit/support/makers/elf_maker.h"
#include "unit/support/traces/loop_stream.h"

namespace ptkit::api::c {
namespace {

using flow::kLoop;
using flow::loop;
using flow::Scene;

constexpr std::size_t kSize = 65536;

TEST(CCoverage, CountsByHand) {
  const Handle handle = open_with_code(kLoop);
  for (const unsigned times : {100U, 1U, 31U}) {
    std::vector<std::uint8_t> hits(kSize);
    const ptkit_outcome outcome = decode(handle, loop(times), hits.data());
    EXPECT_EQ(outcome.bytes, loop(times).size());
    EXPECT_EQ(outcome.edges, 2u);
    EXPECT_EQ(outcome.branches, times + 1);
    EXPECT_EQ(outcome.instructions, times + 1);
    EXPECT_EQ(outcome.errors, 0u);
    EXPECT_EQ(outcome.gaps, 0u);
    EXPECT_EQ(outcome.new_bits, 0);
    EXPECT_EQ(outcome.first_error, PTKIT_OK);
    EXPECT_EQ(sorted_edges(handle),
              (std::vector<EdgeRow>{{0x1000, 0x1000, PTKIT_COND, times}, {0x1000, 0x1002, PTKIT_COND, 1}}));
    EXPECT_EQ(hits[ptkit_edge_hash(0x1000, 0x1000) & (kSize - 1)], times);
    EXPECT_EQ(hits[ptkit_edge_hash(0x1000, 0x1002) & (kSize - 1)], 1);
    EXPECT_EQ(std::count(hits.begin(), hits.end(), 0), static_cast<std::ptrdiff_t>(kSize) - 2);
  }
}

TEST(CCoverage, ListsNewEdges) {
  const Handle handle = open_with_code(kLoop);
  std::vector<std::uint8_t> virgin(kSize, 0xff);
  const auto left = Scene().begin().tnt("n").end(0x1002).bytes();
  EXPECT_EQ(decode(handle, left, nullptr, virgin.data()).new_bits, 2);
  EXPECT_EQ(decode(handle, loop(5), nullptr, virgin.data()).new_edges, 1u);
  EXPECT_EQ(sorted_edges(handle, ptkit_coverage_new_edges),
            (std::vector<EdgeRow>{{0x1000, 0x1000, PTKIT_COND, 5}}));
  EXPECT_EQ(decode(handle, loop(5), nullptr, virgin.data()).new_bits, 0);
  EXPECT_EQ(decode(handle, loop(9), nullptr, virgin.data()).new_bits, 1);
  EXPECT_EQ(ptkit_coverage_new_edges(handle.get(), nullptr, 0), 0u);
}

TEST(CCoverage, CopiesUpToArraySize) {
  const Handle handle = open_with_code(kLoop);
  decode(handle, loop(5));
  ptkit_edge edges[2] = {};
  EXPECT_EQ(ptkit_coverage_edges(handle.get(), edges, 1), 2u);
  EXPECT_NE(edges[0].count, 0u);
  EXPECT_EQ(edges[1].count, 0u);
}

TEST(CCoverage, DecodesRingsInTwoChunks) {
  const Handle handle = open_with_code(kLoop);
  const auto stream = loop(40);
  for (std::size_t at = 0; at <= stream.size(); ++at) {
    ptkit_outcome outcome{};
    outcome.size = sizeof outcome;
    const int status = ptkit_coverage_decode_ring(handle.get(), stream.data(), at, stream.data() + at,
                                                  stream.size() - at, nullptr, nullptr, &outcome);
    ASSERT_EQ(status, PTKIT_OK);
    EXPECT_EQ(outcome.branches, 41u);
    EXPECT_EQ(outcome.bytes, stream.size());
  }
}

TEST(CCoverage, ListsErrors) {
  const Handle handle = open_with_code(kLoop);
  Scene scene;
  scene.begin(0x9000).tnt("t");
  const std::uint64_t first = scene.last;
  const ptkit_outcome outcome = decode(handle, scene.begin(0x8000).tnt("n").bytes());
  EXPECT_EQ(outcome.errors, 2u);
  EXPECT_EQ(outcome.gaps, 2u);
  EXPECT_EQ(outcome.first_error, PTKIT_NO_CODE);
  EXPECT_EQ(outcome.first_error_offset, first);
  EXPECT_EQ(outcome.first_error_ip, 0x9000u);
  ptkit_error errors[2] = {};
  EXPECT_EQ(ptkit_coverage_errors(handle.get(), errors, 2), 2u);
  EXPECT_EQ(errors[1].status, PTKIT_NO_CODE);
  EXPECT_EQ(errors[1].ip, 0x8000u);
  EXPECT_EQ(errors[1].offset, scene.last);
  decode(handle, loop(1));
  EXPECT_EQ(ptkit_coverage_errors(handle.get(), errors, 2), 0u);
}

test::ByteVector loop_elf() {
  test::Elf64Maker maker;
  maker.add({".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, kLoop, 0, 0, 0});
  maker.segments.push_back({PT_LOAD, 0x1000, maker.sections[0].offset, kLoop.size()});
  return maker.make();
}

TEST(CCoverage, TakesImagesAtAddresses) {
  const test::TemporaryFile file(loop_elf());
  for (const bool moved : {false, true}) {
    const std::uint64_t at = moved ? 0x7000 : 0x1000;
    const Handle handle = open_handle();
    ASSERT_EQ(ptkit_coverage_add_image(handle.get(), file.path().c_str(), moved ? at : PTKIT_AS_LINKED),
              PTKIT_OK)
        << ptkit_failure_message();
    decode(handle, Scene().begin(at).tnt("tn").end(at + 2).bytes());
    EXPECT_EQ(sorted_edges(handle),
              (std::vector<EdgeRow>{{at, at, PTKIT_COND, 1}, {at, at + 2, PTKIT_COND, 1}}));
  }
}

// Code that is added later hides earlier code, and is decoded at once.
TEST(CCoverage, LaterCodeHidesEarlierCode) {
  const Handle handle = open_with_code(kLoop);
  decode(handle, loop(3));
  const std::vector<std::uint8_t> other{0x74, 0x00, 0x90};  // jz 1002
  ASSERT_EQ(ptkit_coverage_add_code(handle.get(), 0x1000, other.data(), other.size()), PTKIT_OK);
  EXPECT_EQ(decode(handle, Scene().begin().tnt("t").end(0x1002).bytes()).errors, 0u);
  EXPECT_EQ(sorted_edges(handle), (std::vector<EdgeRow>{{0x1000, 0x1002, PTKIT_COND, 1}}));
}

// Two programs at one address, by the CR3 that PIP packets say.
TEST(CCoverage, TakesCodeOfProcesses) {
  const Handle handle = open_handle();
  const std::vector<std::uint8_t> other{0x90, 0x74, 0xfd, 0x90};  // nop; jz 1000
  const test::TemporaryFile file(loop_elf());
  ptkit_place location{};
  location.size = sizeof location;
  location.address = PTKIT_AS_LINKED;
  location.cr3 = 0xA005;
  location.flags = PTKIT_CR3_KNOWN;
  ASSERT_EQ(ptkit_coverage_add_image_at(handle.get(), file.path().c_str(), &location), PTKIT_OK)
      << ptkit_failure_message();
  location.address = 0x1000;
  location.cr3 = 0xB000;
  ASSERT_EQ(ptkit_coverage_add_code_at(handle.get(), other.data(), other.size(), &location), PTKIT_OK);
  for (const auto& [cr3, jump] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0xA000, 0x1000}, {0xB000, 0x1001}}) {
    Scene scene;
    scene.psb().mode(64).add(packet::PacketKind::PIP, cr3).fup(0x1000).psbend();
    EXPECT_EQ(decode(handle, scene.tnt("tn").end(jump + 2).bytes()).errors, 0u);
    EXPECT_EQ(sorted_edges(handle),
              (std::vector<EdgeRow>{{jump, 0x1000, PTKIT_COND, 1}, {jump, jump + 2, PTKIT_COND, 1}}));
  }
}

TEST(CCoverage, RefusesWrongLocations) {
  const Handle handle = open_handle();
  const auto status = [&](const ptkit_place& location) {
    return ptkit_coverage_add_code_at(handle.get(), kLoop.data(), kLoop.size(), &location);
  };
  ptkit_place right{};
  right.size = sizeof right;
  right.address = 0x1000;
  EXPECT_EQ(status(right), PTKIT_OK);
  ptkit_place wrong = right;
  wrong.size = 4;
  EXPECT_EQ(status(wrong), PTKIT_BAD_CONFIG);
  wrong = right;
  wrong.cr3 = 0x1000;
  EXPECT_EQ(status(wrong), PTKIT_BAD_CONFIG);
  wrong = right;
  wrong.flags = PTKIT_LAYOUT_MEMORY;
  EXPECT_EQ(status(wrong), PTKIT_BAD_CONFIG);
  wrong.flags = 1U << 20U;
  EXPECT_EQ(status(wrong), PTKIT_UNSUPPORTED);
  wrong = right;
  wrong.reserved[0] = 1;
  EXPECT_EQ(status(wrong), PTKIT_UNSUPPORTED);
  wrong = right;
  wrong.address = PTKIT_AS_LINKED;
  EXPECT_EQ(status(wrong), PTKIT_BAD_CONFIG);
  EXPECT_EQ(ptkit_coverage_add_code_at(handle.get(), kLoop.data(), kLoop.size(), nullptr), PTKIT_BAD_CONFIG);
  wrong = right;
  wrong.flags = PTKIT_LAYOUT_MEMORY | PTKIT_LAYOUT_FILE;
  EXPECT_EQ(ptkit_coverage_add_image_at(handle.get(), "a.out", &wrong), PTKIT_BAD_CONFIG);
  EXPECT_EQ(ptkit_coverage_add_image_at(handle.get(), nullptr, &right), PTKIT_BAD_CONFIG);
}

TEST(CCoverage, ForgetsChangedCode) {
  std::vector<std::uint8_t> code = kLoop;
  const Handle handle = open_with_code(code);
  decode(handle, loop(3));
  code[1] = 0;  // jz 1002
  ASSERT_EQ(ptkit_coverage_forget(handle.get(), 0x1000, 0x1002), PTKIT_OK);
  EXPECT_EQ(decode(handle, Scene().begin().tnt("t").end(0x1002).bytes()).errors, 0u);
  EXPECT_EQ(sorted_edges(handle), (std::vector<EdgeRow>{{0x1000, 0x1002, PTKIT_COND, 1}}));
}

struct Page {
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(4096, 0x90);
  unsigned asked = 0;
};

size_t read_page(void* argument, uint64_t address, void* out, size_t size) {
  auto& page = *static_cast<Page*>(argument);
  ++page.asked;
  if (address >> 12U != 1 || size > 4096) return 0;
  std::memcpy(out, page.bytes.data() + (address & 0xfffU), std::min(size, 4096 - (address & 0xfffU)));
  return size;
}

TEST(CCoverage, AsksCallbackOncePerPage) {
  Page page;
  std::copy(kLoop.begin(), kLoop.end(), page.bytes.begin());
  ptkit_options options = default_options();
  options.read_code = read_page;
  options.read_code_argument = &page;
  const Handle handle = open_handle(&options);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(decode(handle, loop(7)).branches, 8u);
  EXPECT_EQ(page.asked, 1u);
  page.bytes[1] = 0;  // jz 1002
  ASSERT_EQ(ptkit_coverage_forget(handle.get(), 0, UINT64_MAX), PTKIT_OK);
  EXPECT_EQ(decode(handle, Scene().begin().tnt("t").end(0x1002).bytes()).errors, 0u);
  EXPECT_EQ(page.asked, 2u);
}

}  // namespace
}  // namespace ptkit::api::c
