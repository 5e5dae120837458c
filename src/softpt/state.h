// What PtUnit consists of; included by its two .cpp files only.
#pragma once

#include "softpt/generator.h"
#include "softpt/unit.h"

namespace ptkit::softpt {

struct PtUnit::State : Generator {
  using Generator::Generator;
};

}  // namespace ptkit::softpt
