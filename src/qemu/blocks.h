// The functions that generated code calls for every block; `number` is the block's number.
#pragma once

#include <stdint.h>

extern "C" {
void ptkit_block_entry(unsigned vcpu, void* number);
void ptkit_timed_block_entry(unsigned vcpu, void* number);
}

namespace ptkit::qemu {
void add_timed_block(uint32_t number);
}
