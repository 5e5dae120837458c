// The functions that generated code calls for every block.
#pragma once

extern "C" {
__attribute__((visibility("hidden"))) void ptkit_block(unsigned vcpu, void* number);
// With ArenaHeader::block_times.
__attribute__((visibility("hidden"))) void ptkit_timed_block(unsigned vcpu, void* number);
}
