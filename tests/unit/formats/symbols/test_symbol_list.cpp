// Lists of symbols at their addresses in traces.
#include <gtest/gtest.h>

#include "code/symbol/symbols.h"
#include "formats/symbols/symbol_list.h"
#include "unit/support/warned.h"

namespace ptkit::formats {
namespace {

using trace::TraceBundle;

constexpr std::uint64_t kKernelText = 0xffffffff81000000;

trace::CodeRegion region(std::uint64_t address, std::uint64_t size, std::int32_t file,
                         trace::SpaceId space = 0, std::uint64_t offset = 0) {
  trace::CodeRegion made;
  made.space = space;
  made.address = address;
  made.size = size;
  made.file = file;
  made.file_offset = offset;
  return made;
}

SymbolList list_of(std::vector<trace::SymbolEntry> symbols) {
  SymbolList list{.kind = "output of nm"};
  list.symbols = std::move(symbols);
  return list;
}

// The name of the address once the list is in the bundle.
std::string name_at(const TraceBundle& bundle, std::uint64_t address, trace::SpaceId space = 0) {
  const code::symbol::Symbols symbols(std::make_shared<TraceBundle>(bundle));
  const auto found = symbols.find(space, 0, address);
  return found ? std::string(found->name) : "-";
}

std::string failure_of(TraceBundle& bundle, SymbolList list, std::optional<std::uint64_t> base = {}) {
  const auto failure = add_symbols(bundle, "lists/libf.so.nm", std::move(list), base);
  EXPECT_EQ(failure ? failure->status : base::Status::BAD_CONFIG, base::Status::BAD_CONFIG);
  return failure ? failure->detail : "";
}

TEST(SymbolPlacement, GoesToEachLoadAddressOfTheModule) {
  TraceBundle bundle;
  bundle.spaces.resize(3);
  bundle.files = {{"/lib/libf.so", "", {}, {}}, {"/lib/other.so", "", {}, {}}};
  bundle.code = {region(0x7000'0000, 0x3000, 0, 1), region(0x8000'0000, 0x3000, 0, 2),
                 region(0x9000'0000, 0x3000, 1, 1)};
  EXPECT_EQ(failure_of(bundle, list_of({{"f", 0x1010, 0}, {"g", 0x1020, 4}})), "");
  EXPECT_EQ(name_at(bundle, 0x7000'101f, 1), "f");
  EXPECT_EQ(name_at(bundle, 0x8000'1022, 2), "g");
  EXPECT_EQ(name_at(bundle, 0x7000'1010, 2), "-");
  EXPECT_EQ(name_at(bundle, 0x7000'1024, 1), "-");  // behind a symbol with a size
  EXPECT_EQ(name_at(bundle, 0x9000'1010, 1), "-");
  EXPECT_TRUE(bundle.warnings.empty());
}

TEST(SymbolPlacement, KnowsModulesByPdbAndByName) {
  for (const bool by_id : {true, false}) {
    TraceBundle bundle;
    bundle.files = {{"C:\\a.sys", "", {}, {}}, {by_id ? "x.sys" : "C:\\Windows\\NTOSKRNL.EXE", "", {}, {}}};
    if (by_id) bundle.files[1].build_id = "3f2504e04f8911d39a0c0305e82c3301-1a";
    bundle.code = {region(0x1'0000'0000, 0x10000, 0), region(0x2'0000'0000, 0x10000, 1)};
    SymbolList list = list_of({{"NtClose", 0x1010, 0}});
    list.module = "ntkrnlmp.pdb";
    if (by_id) list.pdb = bundle.files[1].build_id;
    list.linked_base = 0;
    EXPECT_EQ(failure_of(bundle, std::move(list)), "");
    EXPECT_EQ(name_at(bundle, 0x2'0000'1010), "NtClose");
  }
}

TEST(SymbolPlacement, TakesAnAddressOfTheModule) {
  TraceBundle bundle;
  bundle.code = {region(0x7000'0000, 0x10000, -1, 1)};
  SymbolList list = list_of({{"f", 0x1'4000'1010, 0}});
  list.linked_base = 0x1'4000'0000;
  EXPECT_EQ(failure_of(bundle, list, 0x7000'0000), "");
  EXPECT_EQ(name_at(bundle, 0x7000'1012, 1), "f");
  list.linked_base.reset();  // what the lowest address suggests
  bundle.names.clear();
  EXPECT_EQ(failure_of(bundle, std::move(list), 0x7000'0000), "");
  EXPECT_EQ(name_at(bundle, 0x7000'1012, 1), "f");
}

TEST(SymbolPlacement, LeavesAddressesWhereCodeIs) {
  TraceBundle bundle;
  bundle.code = {region(0x40'1000, 0x1000, -1)};
  EXPECT_EQ(failure_of(bundle, list_of({{"f", 0x40'1010, 0}})), "");
  EXPECT_EQ(name_at(bundle, 0x40'1011), "f");
}

TEST(SymbolPlacement, MovesKernels) {
  TraceBundle bundle;
  bundle.code = {region(kKernelText + 0x1000'0000, 0x10000, -1)};
  SymbolList list = list_of({{"_text", kKernelText, 0}, {"f", kKernelText + 0x10, 0}});
  list.linked_base = kKernelText;
  EXPECT_EQ(failure_of(bundle, list), "");
  EXPECT_TRUE(trace::warns_at(bundle.warnings, "lists/libf.so.nm", WarningCode::SYMBOLS_ELSEWHERE, 2));
  EXPECT_EQ(name_at(bundle, kKernelText + 0x1000'0011), "-");
  EXPECT_EQ(name_at(bundle, kKernelText + 0x11), "f");
  EXPECT_EQ(failure_of(bundle, std::move(list), kKernelText + 0x1000'0000), "");
  EXPECT_EQ(name_at(bundle, kKernelText + 0x1000'0011), "f");
  EXPECT_EQ(bundle.warnings.size(), 1u);
}

TEST(SymbolPlacement, JitCodeIsOfItsProcess) {
  TraceBundle bundle;
  bundle.spaces.resize(3);
  bundle.spaces[1].pid = 10;
  bundle.spaces[2].pid = 20;
  bundle.code = {region(0x7000, 0x1000, -1, 1), region(0x7000, 0x1000, -1, 2)};
  SymbolList list = list_of({{"jit", 0x7010, 8}});
  list.at_run_time = true;
  list.pid = 20;
  EXPECT_EQ(failure_of(bundle, list), "");
  EXPECT_EQ(name_at(bundle, 0x7012, 2), "jit");
  EXPECT_EQ(name_at(bundle, 0x7012, 1), "-");
  EXPECT_NE(failure_of(bundle, std::move(list), 0x1000).find("give it without a base"), std::string::npos);
}

TEST(SymbolPlacement, RefusesToGuess) {
  TraceBundle bundle;
  bundle.files = {{"/lib/other.so", "", {}, {}}};
  bundle.code = {region(0x7000'0000, 0x3000, 0)};
  const std::string failure = failure_of(bundle, list_of({{"f", 0x1010, 0}}));
  EXPECT_NE(
      failure.find("with addresses from 0x1010 on; the trace has neither code there nor a module libf.so"),
      std::string::npos)
      << failure;
  EXPECT_TRUE(bundle.names.empty());
}

TEST(SymbolPlacement, ModulesHaveNamesWithoutCode) {
  TraceBundle bundle;
  SymbolList list{.kind = "output of WinDbg"};
  list.modules = {{"srv2", 0xfffff806'85380000, 0xfffff806'85450000}};
  add_modules(bundle, list);
  const code::symbol::Symbols symbols(std::make_shared<TraceBundle>(bundle));
  const auto module = symbols.module_at(0, 0, 0xfffff806'85389310);
  ASSERT_TRUE(module.has_value());
  EXPECT_EQ(module->rva, 0x9310u);
  EXPECT_EQ(bundle.files[static_cast<std::size_t>(module->file)].path, "srv2");
  EXPECT_FALSE(symbols.module_at(0, 0, 0xfffff806'85450000).has_value());
  // A list of the module goes there.
  SymbolList of_module = list_of({{"f", 0x1010, 0}});
  of_module.module = "srv2.pdb";
  EXPECT_EQ(failure_of(bundle, std::move(of_module)), "");
  EXPECT_EQ(name_at(bundle, 0xfffff806'85381010), "f");
}

TEST(SymbolPlacement, SurvivesTheEndOfTheAddressSpace) {
  TraceBundle bundle;
  EXPECT_EQ(failure_of(bundle, list_of({{"a", 0, 0}, {"z", ~std::uint64_t{0}, ~std::uint64_t{0}}}), 0x1000),
            "");
  EXPECT_EQ(name_at(bundle, 0x1000), "a");
  SymbolList last = list_of({{"z", ~std::uint64_t{0}, 0}});
  last.at_run_time = true;
  EXPECT_EQ(failure_of(bundle, std::move(last)), "");
  EXPECT_EQ(name_at(bundle, ~std::uint64_t{0}), "z");
}

}  // namespace
}  // namespace ptkit::formats
