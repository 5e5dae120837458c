#include "base/status.h"

namespace ptkit::base {

std::string_view status_name(Status status) noexcept {
  switch (status) {
#define PT_STATUS(name, value, sentence, remedy) \
  case Status::name:                             \
    return #name;
#include "base/status.def"
  }
  return "UNKNOWN";
}

std::string_view status_sentence(Status status) noexcept {
  switch (status) {
#define PT_STATUS(name, value, sentence, remedy) \
  case Status::name:                             \
    return sentence;
#include "base/status.def"
  }
  return "unknown status";
}

std::string_view status_remedy(Status status) noexcept {
  switch (status) {
#define PT_STATUS(name, value, sentence, remedy) \
  case Status::name:                             \
    return remedy;
#include "base/status.def"
  }
  return "";
}

}  // namespace ptkit::base
