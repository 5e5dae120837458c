// Where trace is missing in a buffer that is filled again and again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ptkit/ptkit_abi.h"

namespace ptkit::capture {

struct Interruption {
  std::uint64_t position = 0;        // counted as ptkit_status.head
  std::optional<base::Status> loss;  // nullopt: nothing is missing (a pause)
};

class Interruptions {
 public:
  // Those since the last status, in order of their positions. `pauses` are among them.
  [[nodiscard]] std::vector<Interruption> take(const ptkit_status& status,
                                               const std::vector<std::uint64_t>& pauses = {});

 private:
  std::uint64_t stops_ = 0;
  std::uint64_t clears_ = 0;
};

}  // namespace ptkit::capture
