// Where functions lie in files, by name: for filters and triggers that name them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capture/code_reader.h"
#include "symbol/symbols.h"

namespace ptkit::capture {

class SymbolFinder {
 public:
  struct Place {
    std::uint64_t offset = 0;  // in the file
    std::uint64_t size = 0;
  };
  // Every function of that name (demangled or not) in a file that process `pid` has mapped.
  [[nodiscard]] std::vector<Place> find(pid_t pid, const Mapping& mapping, const std::string& name);
  // The same for a program that runs with the rights of this process.
  [[nodiscard]] std::vector<Place> find(pid_t pid, const std::string& path, const std::string& name);
  // Names like one that was found nowhere.
  [[nodiscard]] std::vector<std::string> similar(const std::string& name);

 private:
  [[nodiscard]] std::vector<Place> find(const std::string& path, const std::string& name,
                                        const std::function<MappedFile()>& open);

  CodeReader reader_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<symbol::Symbols>> files_;  // by path
};

}  // namespace ptkit::capture
