// Files outside of a recording's folder.
#include <gtest/gtest.h>

#include "formats/missing_files.h"
#include "unit/formats/scratch.h"

namespace ptkit::formats {
namespace {

using Paths = std::vector<std::string>;

TEST(OutsideFiles, AreThoseThatLinksAndDotsLeadTo) {
  const test::Scratch scratch;
  const std::string folder = scratch.at("recording");
  const std::string inside = scratch.write("recording/a", "1");
  const std::string outside = scratch.write("recording2/b", "2");
  std::filesystem::create_symlink(outside, folder + "/link");
  std::filesystem::create_symlink("a", folder + "/own");
  EXPECT_FALSE(is_outside(folder, inside));
  EXPECT_FALSE(is_outside(folder, folder + "/own"));
  EXPECT_FALSE(is_outside(folder, folder + "/../recording/a"));
  EXPECT_TRUE(is_outside(folder, outside));
  EXPECT_TRUE(is_outside(folder, folder + "/link"));
  EXPECT_TRUE(is_outside(folder, folder + "/../recording2/b"));
}

TEST(OutsideFiles, AreFoundByLinksInFoldersOfARecording) {
  const test::Scratch scratch;
  const std::string outside = scratch.write("b", "2");
  scratch.write("recording/dumps/page", "1");
  scratch.write("recording/dumps/deep/page", "1");
  std::filesystem::create_symlink(outside, scratch.at("recording/stream"));
  std::filesystem::create_symlink(outside, scratch.at("recording/dumps/linked"));
  std::filesystem::create_symlink("page", scratch.at("recording/dumps/own"));
  Paths found;
  for (const OutsideFile& file : links_to_elsewhere(scratch.at("recording"))) found.push_back(file.path);
  EXPECT_EQ(found, (Paths{scratch.at("recording/dumps/linked"), scratch.at("recording/stream")}));
}

TEST(OutsideFiles, AreListedByUse) {
  trace::TraceBundle bundle;
  bundle.metadata = R"({"backend": "x"})";
  const std::vector<OutsideFile> files{{"/a", OutsideUse::CODE}, {"/b", OutsideUse::TRACE}};
  list_outside_files(bundle, files);
  EXPECT_EQ(outside_files(bundle, OutsideUse::CODE), Paths{"/a"});
  EXPECT_EQ(outside_files(bundle, OutsideUse::TRACE), Paths{"/b"});
  EXPECT_NE(bundle.metadata.find("backend"), std::string::npos);
}

TEST(OutsideFiles, OfAnotherFormAreNone) {
  trace::TraceBundle bundle;
  for (const char* const metadata : {"", "5", R"({"outside_files": 5})", R"({"outside_files": [5, {}]})",
                                     R"({"outside_files": [{"use": "code", "path": 5}]})"}) {
    bundle.metadata = metadata;
    EXPECT_TRUE(outside_files(bundle, OutsideUse::CODE).empty()) << metadata;
  }
}

}  // namespace
}  // namespace ptkit::formats
