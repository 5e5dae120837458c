#include "capture/linux/files/symbol_finder.h"

#include <utility>

namespace ptkit::capture {

namespace {

constexpr std::size_t kSimilar = 3;  // from all files

}  // namespace

std::vector<FunctionSpan> SymbolFinder::find(pid_t pid, const Mapping& mapping, const std::string& name) {
  return find(mapping.path, name, [&] { return reader_.open(pid, mapping); });
}

std::vector<FunctionSpan> SymbolFinder::find(pid_t pid, const std::string& path, const std::string& name) {
  return find(path, name, [&] { return reopened(locate_path(pid, path)); });
}

std::vector<FunctionSpan> SymbolFinder::find(const std::string& path, const std::string& name,
                                             const std::function<MappedFile()>& open) {
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = files_.try_emplace(path);
  CachedSymbol& known = at->second;
  if (fresh) known.file = open();
  const auto [spans, unknown] = known.spans.try_emplace(name);
  if (unknown) {
    const ParseRequest request{.kind = ParseRequest::Kind::FUNCTIONS, .name = name};
    spans->second = reader_.parse(known.file, path, request).spans;
  }
  return spans->second;
}

std::vector<std::string> SymbolFinder::similar(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const ParseRequest request{.kind = ParseRequest::Kind::SIMILAR, .name = name};
  std::vector<std::string> names;
  for (const auto& [path, known] : files_) {
    for (std::string& one : reader_.parse(known.file, path, request).similar) {
      if (names.size() < kSimilar) names.push_back(std::move(one));
    }
  }
  return names;
}

}  // namespace ptkit::capture
