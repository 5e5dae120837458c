#include "base/system/new_contents.h"

#include "base/system/output_file.h"

namespace ptkit::base {

std::optional<Failure> write_new_file(const std::string& path, Bytes bytes) {
  auto created = OutputFile::create(path);
  if (!created.ok()) return created.failure();
  OutputFile& file = created.value();
  if (!file.write(bytes)) return Failure{Status::IO_ERROR, 0, path + ": cannot write: " + file.error()};
  return file.name();
}

// Rights of other users come from the folder's access control list.
Result<unsigned> mode_of_new_file(const std::string& path) {
  const auto created = OutputFile::create(path);
  if (!created.ok()) return created.failure();
  return 0U;
}

}  // namespace ptkit::base
