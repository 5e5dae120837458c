// Names of code that has none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ptkit::code::image {

// A function of which only the first byte is known: "libc.so.6!0x26110", the module and the RVA, as several
// modules of one process have functions at equal RVAs. Without a module "sub_26110", as IDA prints it:
// readers of PE files do not know the file's name.
[[nodiscard]] std::string generated_name(std::string_view module, std::uint64_t rva);
// False: generated_name() does not give this name to a function of a module.
[[nodiscard]] bool may_be_generated(std::string_view name) noexcept;

// An address of which no function is known: "[gzip]+0x1010". Names of memory without a file have brackets
// already.
[[nodiscard]] std::string address_in_module(std::string_view module, std::uint64_t offset);

}  // namespace ptkit::code::image
