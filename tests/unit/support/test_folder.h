// A folder for the files of one test, on every system. It is removed with its contents.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

namespace ptkit::test {

class TestFolder {
 public:
  TestFolder() : path_(std::filesystem::path(testing::TempDir()) / name()) {
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  [[nodiscard]] std::string at(const std::string& file) const { return (path_ / file).string(); }
  std::string write(const std::string& file, const std::string& contents) const {
    std::ofstream(path_ / file, std::ios::binary) << contents;
    return at(file);
  }

 private:
  static std::string name() { return "ptkit-test-" + std::to_string(std::random_device{}()); }

  std::filesystem::path path_;
};

}  // namespace ptkit::test
