// Which files the guest's code comes from.
#pragma once

#include <stdint.h>

namespace ptkit::qemu {

// Tells the log of the file mapping at `pc`, if it has not been told. While translating.
void tell_mapping(uint64_t pc);
// What is mapped in [begin, end) may have changed.
void forget_mappings(uint64_t begin, uint64_t end);

}  // namespace ptkit::qemu
