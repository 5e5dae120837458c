// Functions that run before and after fork().
#pragma once

namespace ptkit::base {

// From now on, fork() calls `before` in the thread that forks, and then `after` in parent and child. A
// system without fork() calls neither.
void at_fork(void (*before)(), void (*after)()) noexcept;

}  // namespace ptkit::base
