#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

#include "code/symbol/names/demangle.h"
#include "code/symbol/names/short_name.h"

namespace ptkit::code::symbol {
namespace {

using Pair = std::pair<const char*, const char*>;

TEST(ShortName, Cpp) {
  constexpr std::array<Pair, 30> kNames = {{
      {"void ns::f<int>(int)", "ns::f"},
      {"int ns::Map<int, long>::insert<int>(int const&) const", "ns::Map::insert"},
      {"std::__cxx11::basic_string<char, std::char_traits<char> >::append(char const*)",
       "std::__cxx11::basic_string::append"},
      {"A<int>::A(int)", "A::A"},
      {"A<int>::~A()", "A::~A"},
      {"A::operator()(int) const", "A::operator()"},
      {"A::operator->() const", "A::operator->"},
      {"A::operator=(A const&)", "A::operator="},
      {"bool A::operator==<int>(A<int> const&)", "A::operator=="},
      {"bool operator< <int>(A<int> const&, A<int> const&)", "operator<"},
      {"std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char)", "std::operator<<"},
      {"A::operator unsigned long() const", "A::operator unsigned long"},
      {"A::operator std::vector<int>() const", "A::operator std::vector"},
      {"operator new[](unsigned long)", "operator new[]"},
      {"operator delete(void*)@plt", "operator delete@plt"},
      {"operator\"\"_km(long double)", "operator\"\"_km"},
      {"f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda#1}::operator()"},
      {"A<int>::f() const::{lambda()#1}::operator()() const", "A::f::{lambda#1}::operator()"},
      {"std::_Function_handler<void (), main::{lambda()#1}>::_M_invoke(std::_Any_data const&)",
       "std::_Function_handler::_M_invoke"},
      {"(anonymous namespace)::f(int)", "(anonymous namespace)::f"},
      {"ns::(anonymous namespace)::g<int>(int)", "ns::(anonymous namespace)::g"},
      {"f(int) [clone .cold]", "f [clone .cold]"},
      {"f(int) (avx2)", "f (avx2)"},
      {"f(int) [resolver]", "f [resolver]"},
      {"std::string to_string[abi:cxx11](int)", "to_string"},
      {"virtual thunk to ns::A<int>::f(int)", "virtual thunk to ns::A::f"},
      {"decltype(auto) ns::f<int>(int)", "ns::f"},
      {"char const* ns::f<int>(int) &&", "ns::f"},
      {"std::function<int (int)>::operator()(int) const", "std::function::operator()"},
      {"std::enable_if<((sizeof...(int))>(0)), void>::type f<int>(int)", "f"},
  }};
  for (const auto& [name, shorter] : kNames) EXPECT_EQ(short_name(name), shorter) << name;
}

TEST(ShortName, Rust) {
  constexpr std::array<Pair, 9> kNames = {{
      {"core::ptr::drop_in_place<alloc::string::String>", "core::ptr::drop_in_place"},
      {"core::ptr::drop_in_place::<alloc::string::String>", "core::ptr::drop_in_place"},
      {"<alloc::vec::Vec<T,A> as alloc::vec::spec::SpecFromIter<T,I>>::from_iter",
       "<alloc::vec::Vec as alloc::vec::spec::SpecFromIter>::from_iter"},
      {"core::fmt::num::imp::<impl core::fmt::Display for u32>::fmt",
       "core::fmt::num::imp::<impl core::fmt::Display for u32>::fmt"},
      {"app::main::{{closure}}", "app::main::{{closure}}"},
      {"app::main::{closure#0}", "app::main::{closure#0}"},
      {"<(A, B) as core::fmt::Debug>::fmt", "<(A, B) as core::fmt::Debug>::fmt"},
      {"<<A as B>::C as D<E>>::f", "<<A as B>::C as D>::f"},
      {"<app::Foo<u32>>::bar::<u8>", "<app::Foo>::bar"},
  }};
  for (const auto& [name, shorter] : kNames) EXPECT_EQ(short_name(name), shorter) << name;
}

TEST(ShortName, KeepsOtherNames) {
  for (const char* name :
       {"", "malloc", "puts@plt", "f (file.py)", "<listcomp> (file.py)", "f.<locals>.<lambda> (f.py)",
        "main.(*Circle).Area", "main.Map[go.shape.int_0]", "memcpy (avx_unaligned_erms)", "memcpy [resolver]",
        "LazyCompile:~foo file.js:1:2", "srv2.sys!0x1000", "[anon 0x1000]", "void (*f(int))(char)", "f<",
        "a::b(", "a::b<c", "a::(", "::"})
    EXPECT_EQ(short_name(name), name);
}

TEST(ShortName, TakesTimeOfItsLength) {
  for (const char* const part : {"<", "a::<", "(", "a<b>::", "{(", "<<A as B>::C as ", "operator<", " ("}) {
    std::string name = "a::";
    while (name.size() < 200'000) name += part;
    EXPECT_LE(short_name(name).size(), name.size());
  }
}

TEST(EndsWithPart, ComparesWholeParts) {
  EXPECT_TRUE(ends_with_part("ns::Map::insert", "insert"));
  EXPECT_TRUE(ends_with_part("ns::Map::insert", "Map::insert"));
  EXPECT_TRUE(ends_with_part("ns::Map::insert", "ns::Map::insert"));
  EXPECT_FALSE(ends_with_part("ns::Map::insert", "ap::insert"));
  EXPECT_FALSE(ends_with_part("ns::Map::insert", ""));
  EXPECT_FALSE(ends_with_part("reinsert", "insert"));
}

TEST(Demangle, KeepsWhatIsKnownOfAnIfunc) {
  EXPECT_EQ(demangle("_Z3fooi (avx2)"), "foo(int) (avx2)");
  EXPECT_EQ(demangle("_Z3fooi [resolver]"), "foo(int) [resolver]");
  EXPECT_EQ(demangle("memcpy (avx2)"), "memcpy (avx2)");
}

}  // namespace
}  // namespace ptkit::code::symbol
