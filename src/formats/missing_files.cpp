#include "formats/missing_files.h"

#include "formats/json.h"

namespace ptkit::formats {

void list_missing_files(trace::TraceBundle& bundle, std::span<const MissingFile> files) {
  if (files.empty()) return;
  Json meta = bundle.metadata.empty() ? Json::object() : Json::parse(bundle.metadata);
  for (const MissingFile& file : files) {
    Json object = {{"path", file.path}};
    if (!file.build_id.empty()) object["build_id"] = file.build_id;
    if (!file.reason.empty()) object["reason"] = file.reason;
    meta["missing_files"].push_back(std::move(object));
  }
  bundle.metadata = meta.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ptkit::formats
