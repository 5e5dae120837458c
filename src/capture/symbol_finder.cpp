#include "capture/symbol_finder.h"

#include <utility>

namespace ptkit::capture {

namespace {

constexpr std::size_t kSimilar = 3;  // of each file, and in all

// A file as if it were mapped at address 0 as a whole: addresses are offsets.
std::unique_ptr<symbol::Symbols> symbols_of(const std::string& path, trace::TraceBuffer contents) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  trace::ImageFile& file = bundle->files.emplace_back();
  file.path = path;
  file.contents = std::move(contents);
  trace::CodeRegion& region = bundle->code.emplace_back();
  region.size = file.contents.size();
  region.file = 0;
  return std::make_unique<symbol::Symbols>(std::move(bundle));
}

}  // namespace

std::vector<SymbolFinder::Place> SymbolFinder::find(pid_t pid, const Mapping& mapping,
                                                    const std::string& name) {
  return find(mapping.path, name, [&] { return reader_.open(pid, mapping); });
}

std::vector<SymbolFinder::Place> SymbolFinder::find(pid_t pid, const std::string& path,
                                                    const std::string& name) {
  return find(path, name, [&] { return reopened(locate_path(pid, path)); });
}

std::vector<SymbolFinder::Place> SymbolFinder::find(const std::string& path, const std::string& name,
                                                    const std::function<MappedFile()>& open) {
  const std::lock_guard lock(mutex_);
  auto& symbols = files_[path];
  if (symbols == nullptr) symbols = symbols_of(path, reader_.read(open(), path));
  std::vector<Place> places;
  for (const symbol::Symbol& one : symbols->lookup(name)) places.push_back({one.address, one.size});
  return places;
}

std::vector<std::string> SymbolFinder::similar(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [path, symbols] : files_) {
    for (std::string& one : symbols->similar(name, kSimilar)) {
      if (names.size() < kSimilar) names.push_back(std::move(one));
    }
  }
  return names;
}

}  // namespace ptkit::capture
