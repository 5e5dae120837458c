// Code and symbols of the running kernel and its modules, from /proc, for users with the right to read them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capture/linux/output/bundle_output.h"

namespace ptkit::capture {

class KernelCode {
 public:
  // A range of executable memory: kernel text, a module, or code that the kernel generates at run time.
  struct Part {
    std::string name;  // "[kernel]", "[ptkit]"
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<trace::SymbolEntry> symbols;  // by offset in the part
  };

  // Tests use files of their own.
  struct Files {
    std::string symbols = "/proc/kallsyms";
    std::string memory = "/proc/kcore";
    std::string modules = "/proc/modules";
  };
  explicit KernelCode(Files files) : files_(std::move(files)) {}
  KernelCode() : KernelCode(Files()) {}

  // Finds the current parts. Fails if addresses are hidden; the failure has the remedy.
  [[nodiscard]] std::optional<base::Failure> find_parts();
  // Whether kernel modules were loaded or unloaded since find_parts().
  [[nodiscard]] bool modules_changed() const;
  [[nodiscard]] const std::vector<Part>& parts() const noexcept { return parts_; }

  // Writes the symbols of all parts, which takes longer than save().
  void save_names(BundleOutput& output) const;
  // Writes code and symbols of the parts that are not saved yet. Fails if memory cannot be read. Code at an
  // address where other code was saved is valid from `tsc` on. Calls `on_progress` after each chunk.
  [[nodiscard]] std::optional<base::Failure> save(
      BundleOutput& output, std::uint64_t tsc, const std::function<void()>& on_progress = [] {});
  // Saves generated code at [begin, end), which a KSYMBOL record at `tsc` reported.
  void add_ksymbol(BundleOutput& output, std::uint64_t tsc, const std::string& name, std::uint64_t begin,
                   std::uint64_t end);
  // The kernel changed its code at `address`, which a TEXT_POKE record at `tsc` reported.
  void text_poke(BundleOutput& output, std::uint64_t tsc, std::uint64_t address, base::Bytes before,
                 base::Bytes after);
  // Whether saved code has the address.
  [[nodiscard]] bool has_code(std::uint64_t address) const noexcept;
  // Saves what is not saved yet of the pages of these addresses, where code was executed. Returns the pages
  // of which the code is gone: they cannot be read, or have a filler there.
  [[nodiscard]] std::vector<std::uint64_t> save_pages(BundleOutput& output,
                                                      const std::set<std::uint64_t>& addresses) const;
  // The number of pages of saved code that have changed without a TEXT_POKE record.
  [[nodiscard]] std::size_t changed_pages() const;

  struct Function {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  // All functions with that name. `module`: "ptkit.ko", "ptkit" or "vmlinux"; empty: any.
  [[nodiscard]] std::vector<Function> find(const std::string& name, const std::string& module) const;
  [[nodiscard]] const Part* find_part(const std::string& module) const;
  [[nodiscard]] std::vector<std::string> similar(const std::string& name) const;

 private:
  struct Saved {
    std::string name;  // Part::name
    std::uint64_t begin = 0;
    std::vector<std::uint8_t> bytes;
  };
  class Memory;

  [[nodiscard]] bool save_part(
      BundleOutput& output, const Memory& memory, const Part& part, std::uint64_t tsc,
      const std::function<void()>& on_progress = [] {});

  [[nodiscard]] std::vector<trace::CodeRegion> unsaved_regions(std::uint64_t page,
                                                               const std::vector<std::uint8_t>& bytes) const;
  void add_pages(const std::string& name, std::uint64_t first, std::uint64_t end);

  Files files_;
  std::vector<Part> parts_;
  std::string modules_;  // the list of modules when parts_ were found
  std::vector<Saved> saved_;
  std::set<std::uint64_t> poked_;  // addresses of TEXT_POKE records
};

}  // namespace ptkit::capture
