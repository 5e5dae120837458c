// The recorder that has the processor trace by ptkit's kernel driver.
#pragma once

#include <memory>
#include <utility>

#include "capture/driver_units.h"
#include "capture/unit_recorder.h"

namespace ptkit::capture {

class DriverRecorder : public UnitRecorder {
 public:
  explicit DriverRecorder(RecordOptions options, OpenDriver open = &open_driver)
      : UnitRecorder(std::move(options), std::make_unique<DriverUnits>(std::move(open))) {}
};

}  // namespace ptkit::capture
