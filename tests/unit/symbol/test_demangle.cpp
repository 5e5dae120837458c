#include <gtest/gtest.h>

#include "symbol/symbols.h"
#include "symbol/table.h"

namespace ptkit::symbol {
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

TEST(Demangle, RustWithoutHash) {
  EXPECT_EQ(demangle("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE"),
            "core::fmt::Formatter::write_str");
  EXPECT_EQ(
      demangle("_ZN58_$LT$alloc..string..String$u20$as$u20$core..fmt..Debug$GT$3fmt17h1234567890abcdefE"),
      "<alloc::string::String as core::fmt::Debug>::fmt");
  EXPECT_EQ(demangle("_ZN4main28_$u7b$$u7b$closure$u7d$$u7d$17h1234567890abcdefE"), "main::{{closure}}");
  EXPECT_EQ(demangle("_ZN1a17hnotahashnotahashE"), "a::hnotahashnotahash");
  EXPECT_EQ(demangle("_ZN1a5$xx$b17h1234567890abcdefE"), "a::$xx$b");  // unknown escape
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
}  // namespace ptkit::symbol
