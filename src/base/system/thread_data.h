// Thread-local data of shared libraries.
#pragma once

namespace ptkit::base {

// Has the thread-local data of this library and, if possible, of the C++ library, of which exceptions need
// it, allocated with each thread. glibc allocates that of a library which a program loads later when a thread
// first uses it, and ends the process if there is no memory.
void allocate_data_with_threads() noexcept;

}  // namespace ptkit::base
