// Thread-local data of shared libraries.
#pragma once

namespace ptkit::base {

// The thread-local data of this library and of the C++ library is allocated with each thread from now on.
// Exceptions need it. glibc allocates the data of a library that a program loads later when a thread first
// uses it, and ends the process if there is no memory.
void allocate_data_with_threads() noexcept;

}  // namespace ptkit::base
