// The callbacks that QEMU's generated code calls for every block.
#pragma once

extern "C" {
__attribute__((visibility("hidden"))) void ptkit_block(unsigned vcpu, void* number);
// The callback if SharedMemoryHeader::block_times is set.
__attribute__((visibility("hidden"))) void ptkit_timed_block(unsigned vcpu, void* number);
}
