// Reads the list of missing files from a bundle's metadata.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::test {

struct Missing {
  std::string path;
  std::string build_id;
  std::string reason;
};

inline std::vector<Missing> missing_files(const trace::TraceBundle& bundle) {
  std::vector<Missing> out;
  if (bundle.metadata.empty()) return out;
  const auto meta = nlohmann::json::parse(bundle.metadata);
  for (const auto& one : meta.value("missing_files", nlohmann::json::array())) {
    out.push_back({one.at("path"), one.value("build_id", ""), one.value("reason", "")});
  }
  return out;
}

}  // namespace ptkit::test
