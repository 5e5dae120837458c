// Code of the running kernel and its modules, and names for it, as /proc shows them to those who may see.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capture/bundle_output.h"

namespace ptkit::capture {

class KernelCode {
 public:
  // A stretch of executable memory: the kernel's own, a module's, or what the kernel makes while it runs.
  struct Part {
    std::string name;  // "[kernel]", "[ptkit]"
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<trace::SymbolEntry> symbols;  // by offset in the part
  };

  // Where to look; tests have files of their own.
  struct Files {
    std::string symbols = "/proc/kallsyms";
    std::string memory = "/proc/kcore";
    std::string modules = "/proc/modules";
  };
  explicit KernelCode(Files files) : files_(std::move(files)) {}
  KernelCode() : KernelCode(Files()) {}

  // What is there now. Fails if addresses are hidden, and says what to do.
  [[nodiscard]] std::optional<base::Failure> look();
  [[nodiscard]] const std::vector<Part>& parts() const noexcept { return parts_; }

  // Names of what is there, which takes longer to write than code.
  void save_names(BundleOutput& output) const;
  // Code and names of what is there and was not saved yet; a failure if memory cannot be read. What is where
  // something else was saved counts from `tsc` on. It takes long: `often` is called again and again
  // meanwhile.
  [[nodiscard]] std::optional<base::Failure> save(
      BundleOutput& output, std::uint64_t tsc, const std::function<void()>& often = [] {});
  // The kernel made code at [begin, end), as it told at that time: it is saved.
  void add_made(BundleOutput& output, std::uint64_t tsc, const std::string& name, std::uint64_t begin,
                std::uint64_t end);
  // The kernel changed its code at `address` at that time.
  void poke(BundleOutput& output, std::uint64_t tsc, std::uint64_t address, base::Bytes before,
            base::Bytes after);
  // How many pages of saved code have other bytes by now, and nobody told.
  [[nodiscard]] std::size_t changed_pages() const;

  struct Function {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  // Every function of that name; `module` as users write it ("ptkit.ko", "ptkit", "vmlinux"), empty: any.
  [[nodiscard]] std::vector<Function> find(const std::string& name, const std::string& module) const;
  [[nodiscard]] const Part* find_part(const std::string& module) const;
  [[nodiscard]] std::vector<std::string> similar(const std::string& name) const;

 private:
  struct Saved {
    std::string name;  // of the part
    std::uint64_t begin = 0;
    std::vector<std::uint8_t> bytes;
  };
  class Memory;

  [[nodiscard]] bool save_part(
      BundleOutput& output, const Memory& memory, const Part& part, std::uint64_t tsc,
      const std::function<void()>& often = [] {});

  void add_pages(const std::string& name, std::uint64_t first, std::uint64_t end);

  Files files_;
  std::vector<Part> parts_;
  std::vector<Saved> saved_;
  std::set<std::uint64_t> poked_;  // addresses
};

}  // namespace ptkit::capture
