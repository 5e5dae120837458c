#include "base/system/at_fork.h"

namespace ptkit::base {

void at_fork(void (* /*before*/)(), void (* /*after*/)()) noexcept {}  // Windows has no fork()

}  // namespace ptkit::base
