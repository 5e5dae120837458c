// Tables of this program and its libraries, against libgcc's unwinder in this process.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unwind.h>

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "code/bounds/table.h"
#include "code/image/files/segments.h"

// Of unwind-dw2-fde.h, which is not installed.
struct dwarf_eh_bases {
  void* text;
  void* data;
  void* function;
};
extern "C" const void* _Unwind_Find_FDE(void* pc, dwarf_eh_bases* bases);

namespace {

struct Landing {
  std::uintptr_t call = 0;  // a byte of the call instruction
  std::uintptr_t pad = 0;
};
std::vector<Landing> landings;
std::map<_Unwind_Word, std::uintptr_t> calls;  // by the frame's address

template <typename Function>
Function* next_symbol(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// The personality routine of C++ asks for the instruction of a frame, and then sets that of the landing pad.
extern "C" _Unwind_Ptr _Unwind_GetIPInfo(_Unwind_Context* context, int* before) {
  static auto* const real = next_symbol<_Unwind_Ptr(_Unwind_Context*, int*)>("_Unwind_GetIPInfo");
  const _Unwind_Ptr ip = real(context, before);
  calls[_Unwind_GetCFA(context)] = *before != 0 ? ip : ip - 1;
  return ip;
}
extern "C" void _Unwind_SetIP(_Unwind_Context* context, _Unwind_Ptr ip) {
  static auto* const real = next_symbol<void(_Unwind_Context*, _Unwind_Ptr)>("_Unwind_SetIP");
  landings.push_back({calls[_Unwind_GetCFA(context)], ip});
  real(context, ip);
}

namespace ptkit::code::bounds {
namespace {

struct Module {
  std::string path;
  std::uintptr_t base = 0;
  trace::TraceBuffer contents;
  std::vector<code::image::FileSegment> segments;

  // The address of a byte of code; 0: it is no code.
  [[nodiscard]] std::uintptr_t address_of(std::uint64_t offset) const {
    for (const code::image::FileSegment& one : segments) {
      const bool inside = offset >= one.file_offset && offset - one.file_offset < one.size;
      if (one.executable && inside) return base + one.rva + (offset - one.file_offset);
    }
    return 0;
  }
  [[nodiscard]] std::uint64_t offset_of(std::uintptr_t address) const {
    for (const code::image::FileSegment& one : segments) {
      const std::uint64_t inside = address - base - one.rva;
      if (one.executable && inside < one.size) return one.file_offset + inside;
    }
    return 0;
  }
};

std::vector<Module> loaded_modules() {
  std::vector<Module> found;
  const auto add = [](dl_phdr_info* info, std::size_t, void* out) {
    std::string path = info->dlpi_name;
    auto& modules = *static_cast<std::vector<Module>*>(out);
    if (path.empty() && modules.empty()) path = "/proc/self/exe";
    auto contents = trace::TraceBuffer::map_file(path);
    if (!contents.ok()) return 0;  // the vDSO
    Module module{path, info->dlpi_addr, contents.value(), {}};
    module.segments = code::image::file_segments(module.contents.bytes());
    module.base += code::image::linked_address(module.contents.bytes()).value_or(0);
    modules.push_back(std::move(module));
    return 0;
  };
  ::dl_iterate_phdr(add, &found);
  return found;
}

// Begin of the function that libgcc finds at an address; 0: none.
std::uintptr_t found_by_libgcc(std::uintptr_t address) {
  dwarf_eh_bases bases{};
  const void* const entry = _Unwind_Find_FDE(reinterpret_cast<void*>(address), &bases);
  return entry == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(bases.function);
}

TEST(UnwindRuntime, FunctionsAreThoseOfLibgcc) {
  std::size_t checked = 0;
  std::size_t functions = 0;
  for (const Module& module : loaded_modules()) {
    const UnwindTable table(module.contents.bytes());
    functions += table.size();
    for (const code::image::FileSegment& segment : module.segments) {
      for (std::uint64_t inside = 0; segment.executable && inside < segment.size; inside += 13) {
        const std::uint64_t offset = segment.file_offset + inside;
        if (table.is_stub(offset)) continue;
        const auto own = table.function_at(offset);
        const std::uintptr_t address = module.address_of(offset);
        ASSERT_EQ(own ? module.address_of(own->begin) : 0, found_by_libgcc(address))
            << module.path << " " << std::hex << offset;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 100'000u);
  EXPECT_GT(functions, 5'000u);
}

[[gnu::noinline]] void fail_at(int depth) {
  if (depth == 0) throw std::runtime_error("the test throws");
  const std::string kept(static_cast<std::size_t>(depth) * 100, 'x');  // its destructor is a cleanup
  fail_at(depth - 1);
  EXPECT_TRUE(kept.empty());
}

[[gnu::noinline]] int caught(int depth) {
  try {
    fail_at(depth);
  } catch (const std::logic_error&) {
    return 1;
  } catch (const std::exception&) {
    return 2;
  }
  return 0;
}

TEST(UnwindRuntime, LandingPadsAreThoseThatExceptionsReach) {
  landings.clear();
  EXPECT_EQ(caught(3), 2);
  ASSERT_EQ(landings.size(), 4u);  // three cleanups, one handler
  const std::vector<Module> modules = loaded_modules();
  ASSERT_FALSE(modules.empty());
  const Module& program = modules.front();
  const UnwindTable table(program.contents.bytes());
  for (const Landing& landing : landings) {
    const std::uint64_t pad = program.offset_of(landing.pad);
    EXPECT_EQ(table.landing_pad_of(program.offset_of(landing.call)), pad);
    EXPECT_TRUE(table.is_landing_pad(pad));
  }
  EXPECT_EQ(table.landing_pad_of(program.offset_of(reinterpret_cast<std::uintptr_t>(&loaded_modules))),
            std::nullopt);
}

}  // namespace
}  // namespace ptkit::code::bounds
