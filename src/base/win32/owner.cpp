#include "base/system/owner.h"

namespace ptkit::base {

// An administrator's program that is elevated is still the user's own.
std::optional<Owner> sudo_caller() { return std::nullopt; }

}  // namespace ptkit::base
