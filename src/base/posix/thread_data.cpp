#include "base/system/thread_data.h"

#include <cstddef>

namespace ptkit::base {

// One access by the initial-exec model is enough: the loader then puts all data of the library that has the
// variable beside the stack of each thread.
static __attribute__((tls_model("initial-exec"))) constinit thread_local volatile char of_this_library = 0;

namespace {

// The C++ library may have been loaded before, and have data elsewhere since it threw an exception: the
// loader would refuse an access by the initial-exec model. One by a descriptor has its data beside each
// thread's stack only where that is possible. The only thread-local variables that libstdc++ exports are
// those of std::call_once().
#if defined(__GLIBC__) && defined(__GLIBCXX__) && defined(__x86_64__)
void access_cxx_library() noexcept {
  __asm__ volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // the red zone
      "leaq _ZSt15__once_callable@TLSDESC(%%rip), %%rax\n\t"
      "call *_ZSt15__once_callable@TLSCALL(%%rax)\n\t"
      "leaq 128(%%rsp), %%rsp"
      :
      :
      : "rax", "cc", "memory");
}
#else
void access_cxx_library() noexcept {}
#endif

}  // namespace

void allocate_data_with_threads() noexcept {
  static_cast<void>(of_this_library);
  access_cxx_library();
}

}  // namespace ptkit::base
