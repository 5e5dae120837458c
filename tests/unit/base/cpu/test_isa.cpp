#include <gtest/gtest.h>

#include "base/cpu/isa.h"

namespace ptkit::base::cpu::test {
namespace {

using base::Status;

TEST(Isa, ScalarIsAlwaysAvailable) {
  EXPECT_TRUE(isa_available(Isa::SCALAR));
  EXPECT_EQ(choose_isa("scalar").isa, Isa::SCALAR);
  EXPECT_EQ(choose_isa("scalar").status, Status::OK);
}

TEST(Isa, ChoosesTheBestOrTheForced) {
  Isa best = Isa::SCALAR;
  for (const Isa isa : kIsas) {
    const IsaChoice choice = choose_isa(isa_name(isa));
    if (isa_available(isa)) {
      best = isa;
      EXPECT_EQ(choice.isa, isa);
      EXPECT_EQ(choice.status, Status::OK);
    } else {
      EXPECT_EQ(choice.isa, Isa::SCALAR);
      EXPECT_EQ(choice.status, Status::UNSUPPORTED);
    }
  }
  EXPECT_EQ(choose_isa("").isa, best);
}

TEST(Isa, RejectsUnknownNames) {
  for (const char* name : {"sse2", "AVX512", "avx512 ", "1"}) {
    EXPECT_EQ(choose_isa(name).status, Status::BAD_CONFIG) << name;
    EXPECT_EQ(choose_isa(name).isa, Isa::SCALAR) << name;
  }
}

}  // namespace
}  // namespace ptkit::base::cpu::test
