// Several threads that write to one bundle.
#include <gtest/gtest.h>

#include <thread>

#include "capture/linux/output/bundle_output.h"
#include "formats/registry.h"
#include "unit/support/scratch.h"

namespace ptkit::capture {
namespace {

// Each thread uses the stream numbers that it gets.
TEST(BundleOutput, NumbersStreamsAsReadersDo) {
  const formats::test::Scratch scratch;
  const std::string path = scratch.at("streams.ptk");
  FileParser parser(nullptr);
  BundleOutput output(std::move(formats::PtkWriter::create(path).value()), 0, parser);
  output.metadata("{}");
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&output] {
      for (int i = 0; i < 500; ++i) {
        const std::uint32_t id = output.stream({});
        trace::Stream named;
        named.name = std::to_string(id);
        output.add_to(id, named);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(output.finish().ok());
  const auto opened = formats::open(path, {});
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  ASSERT_EQ(opened.value().streams.size(), 2000U);
  for (std::size_t i = 0; i < opened.value().streams.size(); ++i)
    ASSERT_EQ(opened.value().streams[i].name, std::to_string(i));
}

}  // namespace
}  // namespace ptkit::capture
