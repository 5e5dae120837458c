// Pages that a recording saved, and images beneath them.
#include <gtest/gtest.h>

#include "code/image/image.h"
#include "trace/page_dumps.h"

namespace ptkit::trace {
namespace {

CodeRegion region(SpaceId space, std::uint64_t address, std::vector<std::uint8_t> bytes, std::int32_t file) {
  CodeRegion made;
  made.space = space;
  made.address = address;
  made.size = bytes.size();
  made.bytes = TraceBuffer::from_vector(std::move(bytes));
  made.file = file;
  return made;
}

std::vector<int> files_of(const TraceBundle& bundle) {
  std::vector<int> files;
  for (const CodeRegion& one : bundle.code) files.push_back(one.file);
  return files;
}

// A page cache of all spaces, and an image that was added.
std::shared_ptr<TraceBundle> page_and_image() {
  auto bundle = std::make_shared<TraceBundle>();
  bundle->files.push_back({"image", "", {}, {}});
  bundle->code = {region(0, 0x1000, {1, 2, 3, 4}, -1), region(0, 0x1000, {1, 9, 3, 4, 5, 6}, 0)};
  order_below_page_dumps(*bundle, 1);
  return bundle;
}

TEST(PageDumps, PagesGiveTheCodeAndImagesTheFile) {
  const code::image::Image image(page_and_image());
  const code::image::CodeView& view = image.view(0, 0);
  std::vector<std::uint8_t> bytes(6);
  EXPECT_EQ(view.read(0x1000, bytes), 6u);
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(view.provenance(0x1000).file, -1);
  EXPECT_EQ(view.provenance(0x1004).file, 0);
  EXPECT_EQ(image.file_beneath(0, view.provenance(0x1000), 0x1000, 0).file, 0);
  EXPECT_EQ(image.file_beneath(0, view.provenance(0x1000), 0x1000, 0).region, 0);
  EXPECT_EQ(image.file_beneath(0, view.provenance(0x1006), 0x1006, 0).file, -1);
}

TEST(PageDumps, RecordedFilesAndRawCodeKeepTheirOrder) {
  TraceBundle bundle;
  bundle.files.resize(4);
  bundle.code = {region(0, 0x1000, {1}, 0), region(0, 0x2000, {1}, -1), region(0, 0x3000, {1}, 1),
                 region(0, 0x2000, {2}, 2), region(0, 0x2000, {3}, -1), region(0, 0x2000, {4}, 3)};
  order_below_page_dumps(bundle, 3);
  EXPECT_EQ(files_of(bundle), (std::vector<int>{0, 2, 3, -1, 1, -1}));
  EXPECT_EQ(bundle.code[5].bytes.bytes()[0], 3);
}

TEST(PageDumps, PagesOfOneSpaceMoveNothing) {
  TraceBundle bundle;
  bundle.files.resize(1);
  bundle.code = {region(1, 0x1000, {1}, -1), region(0, 0x1000, {2}, -1), region(0, 0x1000, {3}, 0)};
  order_below_page_dumps(bundle, 1);
  EXPECT_EQ(files_of(bundle), (std::vector<int>{-1, -1, 0}));
}

TEST(PageDumps, CountsPagesWithOtherCode) {
  TraceBundle bundle;
  bundle.files.resize(2);
  bundle.code = {region(1, 0x1002, {3, 4, 0, 0}, -1),  // half of two bytes
                 region(2, 0x1000, {1, 8, 8, 8}, -1),  // three of four
                 region(3, 0x1004, {7, 7}, -1),        // beside the image
                 region(0, 0x1000, {1, 2, 3, 9}, 0), region(0, 0x9000, {1}, 1)};
  const PageComparison found = compare_with_pages(bundle, 0);
  EXPECT_EQ(found.pages, 2u);
  EXPECT_EQ(found.differing, 1u);
  EXPECT_EQ(compare_with_pages(bundle, 1).pages, 0u);
}

}  // namespace
}  // namespace ptkit::trace
