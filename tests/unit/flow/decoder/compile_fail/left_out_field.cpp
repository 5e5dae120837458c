// Must not compile with PTKIT_LEFT_OUT: the description of a part of the state binds `second`, and leaves it
// out. Must compile without it.
#include "flow/decoder/state_fields.h"

namespace ptkit::flow {

struct TwoFields {
  int first = 0;
  int second = 0;
};

auto fields_of(Is<TwoFields> auto& part) noexcept {
  auto& [first, second] = part;
#ifdef PTKIT_LEFT_OUT
  return std::tuple{always(first)};
#else
  return std::tuple{always(first), rebuilt(second)};
#endif
}

}  // namespace ptkit::flow

int main() {
  ptkit::flow::TwoFields part;
  ptkit::flow::each_field(part, [](const auto& field) { field.value = 1; });
  return part.first - 1;
}
