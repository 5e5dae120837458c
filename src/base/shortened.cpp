#include "base/shortened.h"

namespace ptkit::base {
namespace {

constexpr std::size_t kMostBytes = 100;
constexpr std::size_t kLongestWord = 300;
constexpr std::size_t kLongestMessage = 2000;
constexpr std::string_view kBlanks = " \t\n";

std::string cut(std::string_view text, std::size_t size) {
  const auto continues = [&] { return (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80; };
  for (unsigned back = 0; back < 3 && size != 0 && continues(); ++back) --size;
  return std::string(text.substr(0, size)) + "...";
}

}  // namespace

std::string shortened(std::string_view value) {
  return value.size() <= kMostBytes ? std::string(value) : cut(value, kMostBytes);
}

std::string shortened_message(std::string_view text) {
  std::string out;
  while (!text.empty() && out.size() <= kLongestMessage) {
    const std::size_t end = text.find_first_of(kBlanks);
    const std::string_view word = text.substr(0, end);
    out += word.size() > kLongestWord ? shortened(word) : std::string(word);
    if (end == std::string_view::npos) break;
    out += text[end];
    text.remove_prefix(end + 1);
  }
  return out.size() > kLongestMessage ? cut(out, kLongestMessage) : out;
}

}  // namespace ptkit::base
