#include "capture/linux/driver/port.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/posix/map_memory.h"
#include "capture/common/errors.h"
#include "capture/linux/process/process.h"

namespace ptkit::capture {

namespace {

class Device : public DriverPort {
 public:
  explicit Device(Fd file) : file_(std::move(file)) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() override {
    for (const base::Bytes& one : mapped_)
      ::munmap(const_cast<std::uint8_t*>(one.data()), one.size());  // NOLINT: it was mapped so
  }

  int request(unsigned long number, void* argument) override {
    int result = 0;
    do result = ::ioctl(file_.get(), number, argument);
    while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
  }

  base::Bytes map(std::uint64_t offset, std::uint64_t bytes) override {
    void* memory = base::map_memory(bytes, PROT_READ, MAP_SHARED, file_.get(), static_cast<off_t>(offset));
    if (memory == MAP_FAILED) return {};
    mapped_.emplace_back(static_cast<const std::uint8_t*>(memory), bytes);
    return mapped_.back();
  }

  [[nodiscard]] int file() const override { return file_.get(); }

 private:
  Fd file_;
  std::vector<base::Bytes> mapped_;
};

}  // namespace

std::unique_ptr<DriverPort> try_driver(int& error) {
  Fd file(::open(PTKIT_DEVICE, O_RDWR | O_CLOEXEC));
  error = file.get() >= 0 ? 0 : errno;
  return file.get() >= 0 ? std::make_unique<Device>(std::move(file)) : nullptr;
}

base::Result<std::unique_ptr<DriverPort>> open_driver() {
  int error = 0;
  auto port = try_driver(error);
  if (port != nullptr) return port;
  const std::string what = std::string(PTKIT_DEVICE) + ": ";
  if (error == ENOENT || error == ENXIO || error == ENODEV)
    return unsupported(what + "ptkit's kernel driver is not loaded; `ptkit doctor` says what it needs");
  if (error == EACCES || error == EPERM)
    return unsupported(what + "not permitted; run as root, or with the capability CAP_PERFMON");
  return unsupported(what + std::strerror(error));
}

base::Result<ptkit_query> query_driver(DriverPort& port) {
  ptkit_query query{};
  if (const int error = port.request(PTKIT_QUERY, &query); error != 0) {
    return unsupported(std::string(PTKIT_DEVICE) +
                       " does not answer as ptkit's kernel driver does: " + std::strerror(error));
  }
  if (query.abi != PTKIT_ABI) {
    return unsupported("the kernel driver has version " + std::to_string(query.abi) +
                       " of its interface, and this ptkit version " + std::to_string(PTKIT_ABI) +
                       (query.abi < PTKIT_ABI ? "; load the driver that belongs to it"
                                              : "; take the ptkit that belongs to the driver"));
  }
  return query;
}

}  // namespace ptkit::capture
