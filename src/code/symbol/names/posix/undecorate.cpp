// LLVM's demangler, where it was found when ptkit was built.
#include "code/symbol/names/microsoft.h"

#ifdef PTKIT_HAVE_LLVM_DEMANGLE
#include <llvm/Demangle/Demangle.h>

#include <cstdlib>
#include <memory>
#endif

namespace ptkit::code::symbol {

#ifdef PTKIT_HAVE_LLVM_DEMANGLE

namespace {

struct Freer {
  void operator()(char* text) const noexcept { std::free(text); }
};

constexpr auto kFlags = static_cast<llvm::MSDemangleFlags>(
    llvm::MSDF_NoAccessSpecifier | llvm::MSDF_NoCallingConvention | llvm::MSDF_NoReturnType |
    llvm::MSDF_NoMemberType | llvm::MSDF_NoVariableType);

// LLVM 17 has other parameters.
template <typename Name>
char* demangle_by_llvm(const Name& name, std::size_t& read, int& status) {
  if constexpr (requires { llvm::microsoftDemangle(name, &read, &status, kFlags); }) {
    return llvm::microsoftDemangle(name, &read, &status, kFlags);
  } else {
    return llvm::microsoftDemangle(name.c_str(), &read, nullptr, nullptr, &status, kFlags);
  }
}

}  // namespace

bool has_microsoft_demangler() noexcept { return true; }

std::optional<std::string> undecorate(const std::string& raw_name) {
  std::size_t read = 0;
  int status = 0;
  const std::unique_ptr<char, Freer> text(demangle_by_llvm(raw_name, read, status));
  if (!text || read != raw_name.size()) return std::nullopt;
  return text.get();
}

#else

bool has_microsoft_demangler() noexcept { return false; }

std::optional<std::string> undecorate(const std::string&) { return std::nullopt; }

#endif

}  // namespace ptkit::code::symbol
