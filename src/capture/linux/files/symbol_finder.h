// Finds functions in files by name, for filters and triggers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "capture/linux/files/code_reader.h"

namespace ptkit::capture {

class SymbolFinder {
 public:
  explicit SymbolFinder(FileParser& parser) : reader_(parser) {}

  // All functions of that name (demangled or not) in a file that process `pid` has mapped.
  [[nodiscard]] std::vector<FunctionSpan> find(pid_t pid, const Mapping& mapping, const std::string& name);
  // By path, for a program with the rights of this process.
  [[nodiscard]] std::vector<FunctionSpan> find(pid_t pid, const std::string& path, const std::string& name);
  // Symbols like a name that was not found.
  [[nodiscard]] std::vector<std::string> similar(const std::string& name);

 private:
  struct CachedSymbol {
    MappedFile file;
    std::map<std::string, std::vector<FunctionSpan>> spans;  // by name
  };
  [[nodiscard]] std::vector<FunctionSpan> find(const std::string& path, const std::string& name,
                                               const std::function<MappedFile()>& open);

  CodeReader reader_;
  std::mutex mutex_;
  std::map<std::string, CachedSymbol> files_;  // by path
};

}  // namespace ptkit::capture
