// Reading a directory of golden cases: manifest.tsv and the files that its rows name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "case.h"

namespace ptkit::golden {

struct Manifest {
  std::vector<Case> cases;
  std::string problem;  // defect of the directory; empty: none
};

[[nodiscard]] Manifest read_manifest(const std::filesystem::path& directory);

}  // namespace ptkit::golden
