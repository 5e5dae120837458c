#include "base/system/at_fork.h"

#include <pthread.h>

namespace ptkit::base {

void at_fork(void (*before)(), void (*after)()) noexcept {
  static_cast<void>(::pthread_atfork(before, after, after));
}

}  // namespace ptkit::base
