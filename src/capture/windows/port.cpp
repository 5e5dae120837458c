#include "capture/windows/port.h"

#include <string>

#include "capture/common/errors.h"
#include "capture/windows/descriptions.h"

namespace ptkit::capture {

base::Result<ptkit_windows_query> query_driver(WindowsPort& port) {
  ptkit_windows_query query{};
  if (const std::uint32_t error = exchange(port, PTKIT_WINDOWS_QUERY, query); error != 0)
    return refused_by(port, "report its abilities", error);
  if (query.query.abi == PTKIT_ABI) return query;
  return unsupported("the driver speaks version " + std::to_string(query.query.abi) +
                     " of its interface, and this program version " + std::to_string(PTKIT_ABI) +
                     "; install the driver that came with this program");
}

base::Failure refused_by(WindowsPort& port, const char* what, std::uint32_t error) {
  const std::string begin = std::string("the driver does not ") + what;
  ptkit_windows_refusal why{};
  if (exchange(port, PTKIT_WINDOWS_REFUSAL, why) != 0 || why.reason == PTKIT_REASON_NONE)
    return unsupported(begin + ": error " + std::to_string(error) + " of Windows; `net helpmsg` explains it");
  std::string subject;
  if (why.reason == PTKIT_REASON_FIELD || why.reason == PTKIT_REASON_UNSUPPORTED)
    subject = std::string(field_text(why.field)) + ": ";
  const bool of_a_cpu = why.reason == PTKIT_REASON_OWNER || why.reason == PTKIT_REASON_SESSION ||
                        why.reason == PTKIT_REASON_FAULT || why.reason == PTKIT_REASON_ERROR ||
                        why.reason == PTKIT_REASON_DENIED;
  if (of_a_cpu) subject = "CPU " + std::to_string(why.cpu) + ": ";
  return unsupported(begin + ": " + subject + reason_text(why.reason));
}

}  // namespace ptkit::capture
