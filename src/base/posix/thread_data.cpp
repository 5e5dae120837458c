#include "base/system/thread_data.h"

#include <cstddef>

// One access by the initial-exec model is enough: the loader then places all data of the library that has the
// variable beside the stack of each thread.
#define PT_WITH_THREADS __attribute__((tls_model("initial-exec")))

namespace ptkit::base {

static PT_WITH_THREADS constinit thread_local volatile char of_this_library = 0;
#if defined(__GLIBC__) && defined(__GLIBCXX__)
// The only thread-local variables that libstdc++ exports are those of std::call_once().
PT_WITH_THREADS extern constinit thread_local void* volatile of_cxx_library __asm__("_ZSt15__once_callable");
#endif

void allocate_data_with_threads() noexcept {
  static_cast<void>(of_this_library);
#if defined(__GLIBC__) && defined(__GLIBCXX__)
  static_cast<void>(of_cxx_library);
#endif
}

}  // namespace ptkit::base
