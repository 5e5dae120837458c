// Files outside of a recording's folder.
#include <gtest/gtest.h>

#include "formats/common/missing_files.h"
#include "unit/support/scratch.h"

namespace ptkit::formats {
namespace {

using Paths = std::vector<std::string>;

TEST(OutsideFiles, AreReachedByLinksAndDots) {
  const test::Scratch scratch;
  const std::string folder = scratch.at("recording");
  const std::string inside = scratch.write("recording/a", "1");
  const std::string outside = scratch.write("recording2/b", "2");
  std::filesystem::create_symlink(outside, folder + "/link");
  std::filesystem::create_symlink("a", folder + "/own");
  std::filesystem::create_directory_symlink(folder, scratch.at("other_name"));
  std::filesystem::create_directory_symlink(scratch.at("recording2"), folder + "/folder_link");
  for (const std::string& name : {folder, folder + "/", scratch.at("other_name")}) {
    RecordingFolder own(name);
    EXPECT_FALSE(own.is_outside(inside)) << name;
    EXPECT_FALSE(own.is_outside(name + "/a")) << name;
    EXPECT_FALSE(own.is_outside(name + "/none")) << name;
    EXPECT_FALSE(own.is_outside(folder + "/own")) << name;
    EXPECT_FALSE(own.is_outside(folder + "/../recording/a")) << name;
    EXPECT_TRUE(own.is_outside(outside)) << name;
    EXPECT_TRUE(own.is_outside(name + "/link")) << name;
    EXPECT_TRUE(own.is_outside(name + "/folder_link/b")) << name;
    EXPECT_TRUE(own.is_outside(name + "/../recording2/b")) << name;
  }
}

TEST(OutsideFiles, AreFoundByLinksInARecordingsFolders) {
  const test::Scratch scratch;
  const std::string outside = scratch.write("b", "2");
  scratch.write("recording/dumps/page", "1");
  scratch.write("recording/dumps/deep/page", "1");
  std::filesystem::create_symlink(outside, scratch.at("recording/stream"));
  std::filesystem::create_symlink(outside, scratch.at("recording/dumps/linked"));
  std::filesystem::create_symlink("page", scratch.at("recording/dumps/own"));
  Paths found;
  for (const OutsideFile& file : find_outside_links(scratch.at("recording"))) found.push_back(file.path);
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

TEST(OutsideFiles, IgnoresMalformedLists) {
  trace::TraceBundle bundle;
  for (const char* const metadata : {"", "5", R"({"outside_files": 5})", R"({"outside_files": [5, {}]})",
                                     R"({"outside_files": [{"use": "code", "path": 5}]})"}) {
    bundle.metadata = metadata;
    EXPECT_TRUE(outside_files(bundle, OutsideUse::CODE).empty()) << metadata;
  }
}

}  // namespace
}  // namespace ptkit::formats
