#include "base/system/unpacked_file.h"

namespace ptkit::base {

std::shared_ptr<UnpackedFile> UnpackedFile::create() { return nullptr; }

}  // namespace ptkit::base
