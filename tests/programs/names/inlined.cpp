// Thousands of inlined calls: containers, streams and regular expressions of the C++ library.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Ordered {
  unsigned value;
  bool operator<(const Ordered& other) const { return value < other.value; }
};

std::map<std::string, std::vector<Ordered>> groups(unsigned count) {
  std::map<std::string, std::vector<Ordered>> found;
  unsigned state = 1;
  for (unsigned i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    found[std::to_string(state >> 28U)].push_back({state});
  }
  for (auto& [name, members] : found) std::sort(members.begin(), members.end());
  return found;
}

std::string words_of(const std::string& text) {
  const std::regex word("([a-z]+)([0-9]*)");
  std::ostringstream out;
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at)
    out << std::setw(8) << (*at)[1].str() << ' ' << (*at)[2].str();
  return out.str();
}

}  // namespace

int main(int argc, char**) {
  std::unordered_map<std::string, std::size_t> sizes;
  for (const auto& [name, members] : groups(100U * static_cast<unsigned>(argc))) sizes[name] = members.size();
  std::cout << sizes.size() << words_of("hello42 and more 7 of them9") << '\n';
}
