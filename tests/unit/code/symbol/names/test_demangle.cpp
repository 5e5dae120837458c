#include <gtest/gtest.h>

#include "code/symbol/names/demangle.h"
#include "code/symbol/table.h"

namespace ptkit::code::symbol {
namespace {

TEST(Demangle, Cpp) {
  EXPECT_EQ(demangle("_Z3fooi"), "foo(int)");
  EXPECT_EQ(demangle("_ZNK1A1fEv"), "A::f() const");
  EXPECT_EQ(demangle("_Z3foov.cold"), "foo() [clone .cold]");
  EXPECT_EQ(demangle("_Z3fooi@plt"), "foo(int)@plt");
}

TEST(Demangle, KeepsOtherNames) {
  for (const char* name : {"", "main", "f", "i", "_start", "puts@plt", "_Z", "_Znonsense!", "_ZN3foo"}) {
    EXPECT_EQ(demangle(name), name);
  }
  const std::string long_name = "_Z" + std::string(100000, 'P') + "i";
  EXPECT_EQ(demangle(long_name), long_name);
}

TEST(Demangle, PythonFunctions) {
  EXPECT_EQ(demangle("py::Class.f:/srv/app/file.py"), "Class.f (file.py)");
  EXPECT_EQ(demangle("py::f.<locals>.<lambda>:<frozen importlib._bootstrap>"),
            "f.<locals>.<lambda> (<frozen importlib._bootstrap>)");
  EXPECT_EQ(demangle("py::load:/usr/lib/json/__init__.py"), "load (json/__init__.py)");
  EXPECT_EQ(demangle("py::load:/__init__.py"), "load (__init__.py)");
  EXPECT_EQ(demangle("py::f:script.py"), "f (script.py)");
  EXPECT_EQ(demangle("py::f:"), "f");
  EXPECT_EQ(demangle("py::object::cast"), "py::object::cast");
}

TEST(Demangle, RustWithoutHash) {
  EXPECT_EQ(demangle("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE"),
            "core::fmt::Formatter::write_str");
  EXPECT_EQ(
      demangle("_ZN58_$LT$alloc..string..String$u20$as$u20$core..fmt..Debug$GT$3fmt17h1234567890abcdefE"),
      "<alloc::string::String as core::fmt::Debug>::fmt");
  EXPECT_EQ(demangle("_ZN4main28_$u7b$$u7b$closure$u7d$$u7d$17h1234567890abcdefE"), "main::{{closure}}");
  EXPECT_EQ(demangle("_ZN3raw5Table7reserve17h1234567890abcdefE.llvm.18444359472589851272"),
            "raw::Table::reserve");
  EXPECT_EQ(demangle("_ZN1a1fEv.llvm.1844435947"), "a::f()");
  EXPECT_EQ(demangle("f.llvm.1844435947"), "f.llvm.1844435947");
  EXPECT_EQ(demangle("_ZN1a17hnotahashnotahashE"), "a::hnotahashnotahash");
  EXPECT_EQ(demangle("_ZN1a5$xx$b17h1234567890abcdefE"), "a::$xx$b");  // unknown escape
}

TEST(Demangle, RustV0) {
  EXPECT_EQ(demangle("_RNvC6_123foo3bar"), "123foo::bar");
  EXPECT_EQ(demangle("_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y"),
            "utf8_idents::\u10e1\u10d0\u10ed\u10db\u10d4\u10da\u10d0\u10d3_"
            "\u10d2\u10d4\u10db\u10e0\u10d8\u10d4\u10da\u10d8_\u10e1\u10d0\u10d3\u10d8\u10da\u10d8");
  EXPECT_EQ(demangle("_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_"), "cc::spawn::{closure#0}::{closure#0}");
  EXPECT_EQ(demangle("_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_"
                     "ECs1iopQbuBiw2_3std"),
            "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>");
  EXPECT_EQ(demangle("_RMC0INtC8arrayvec8ArrayVechKj7b_E"), "<arrayvec::ArrayVec<u8, 123>>");
  EXPECT_EQ(demangle("_RINvC1r3tupFG0_RL1_eRL0_eEuEB2_"), "r::tup::<for<'a, 'b> fn(&'a str, &'b str)>");
  EXPECT_EQ(demangle("_RINvC1r1aKb1_Kc78_Kln5_Kj12345678901234567_E"),
            "r::a::<true, 'x', -5, 0x12345678901234567>");
  EXPECT_EQ(demangle("_RNvC1r3bar.cold"), "r::bar.cold");
  EXPECT_EQ(demangle("_RNvC1r3bar.llvm.1234"), "r::bar");
}

TEST(Demangle, KeepsDamagedNamesOfRust) {
  const std::string name = "_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_E";
  for (std::size_t size = 0; size < name.size(); ++size)
    EXPECT_EQ(demangle(name.substr(0, size)), name.substr(0, size));
  EXPECT_EQ(demangle("_RNvB_3foo"), "_RNvB_3foo");  // refers to itself
  const std::string deep = "_RINvC1r1a" + std::string(50'000, 'S') + "uE";
  EXPECT_EQ(demangle(deep), deep);
}

TEST(Demangle, EndsWhereReferencesDoubleTheTextOfRust) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const auto reference = [&](std::size_t offset) {
    std::string text = "_";
    for (std::size_t value = offset - 1; value != 0 || text.size() == 1; value /= 62)
      text.insert(text.begin(), kDigits[value % 62]);
    return "B" + text;
  };
  std::string name = "INvC1r1aTuuE";
  std::size_t last = 8;  // of the first tuple
  for (int i = 0; i < 60; ++i) {
    const std::string twice = "T" + reference(last) + reference(last) + "E";
    last = name.size();
    name += twice;
  }
  name = "_R" + name + "E";
  EXPECT_EQ(demangle(name), name);
}

TEST(WithoutArguments, RemovesArgumentsOnly) {
  EXPECT_EQ(without_arguments("main"), "main");
  EXPECT_EQ(without_arguments("foo(int)"), "foo");
  EXPECT_EQ(without_arguments("foo(int)@plt"), "foo");
  EXPECT_EQ(without_arguments("ns::A::f(int (*)(int)) const"), "ns::A::f");
  EXPECT_EQ(without_arguments("(anonymous namespace)::bar()"), "(anonymous namespace)::bar");
  EXPECT_EQ(without_arguments("void f<int, char>(int)"), "f<int, char>");
  EXPECT_EQ(without_arguments("std::pair<int, int> g<(E)1>(int)"), "g<(E)1>");
  EXPECT_EQ(without_arguments("A::operator()(int) const"), "A::operator()");
  EXPECT_EQ(without_arguments("A::operator new(unsigned long)"), "A::operator new");
  EXPECT_EQ(without_arguments("main::{lambda(int)#1}::operator()(int) const"),
            "main::{lambda(int)#1}::operator()");
  EXPECT_EQ(without_arguments("foo(int) [clone .cold]"), "foo");
  EXPECT_EQ(without_arguments("ns::text[abi:cxx11](int)"), "ns::text");
  EXPECT_EQ(without_arguments(")("), ")(");
  EXPECT_EQ(without_arguments("()"), "()");
}

}  // namespace
}  // namespace ptkit::code::symbol
