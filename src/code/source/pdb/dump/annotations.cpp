#include "code/source/pdb/dump/annotations.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "code/source/pdb/dump/output_lines.h"

namespace ptkit::code::pdb {
namespace {

// "0x14" or "14".
std::optional<std::uint32_t> hexadecimal(std::string_view word) noexcept {
  if (word.starts_with("0x")) word.remove_prefix(2);
  return whole_number(word, 16);
}

std::optional<std::int32_t> signed_number(std::string_view word) noexcept {
  std::int32_t number = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

// 5 of "0x14 (+0x5)": the bytes from the last place. Versions of LLVM count that place in different ways.
std::optional<std::uint32_t> take_step(std::string_view& text) noexcept {
  constexpr std::string_view kBegin = "(+0x";
  const auto place = hexadecimal(take_word(text));
  std::string_view step = take_word(text);
  if (!place || !step.starts_with(kBegin) || !step.ends_with(')')) return std::nullopt;
  step = step.substr(kBegin.size(), step.size() - kBegin.size() - 1);
  return whole_number(step, 16);
}

bool is_bytes(std::string_view word) noexcept {
  return word.size() >= 2 && word.size() % 2 == 0 &&
         word.find_first_not_of("0123456789ABCDEF") == std::string_view::npos;
}

bool take_item(std::string_view& text, Annotation& into) noexcept {
  const std::string_view item = take_word(text);
  if (item == "code") {
    std::string_view rest = text;
    const bool is_end = take_word(rest) == "end";
    if (is_end) text = rest;
    auto& value = is_end ? into.length : into.code;
    value = take_step(text);
    return value.has_value();
  }
  if (item == "line") {
    into.line = signed_number(take_word(text));
    return into.line.has_value() && take_word(text).starts_with('(');
  }
  if (item == "setfile") {
    into.file = hexadecimal(take_word(text));
    static_cast<void>(take_word(text));  // LLVM 14 writes what it has no value for
    return into.file && *into.file < SiteRow::kOutside;
  }
  // Columns, the end of a statement's lines, and whether it is a statement.
  return item.starts_with("Change") && signed_number(take_word(text));
}

}  // namespace

std::optional<Annotation> annotation_in(std::string_view text) noexcept {
  Annotation found;
  if (!is_bytes(take_word(text))) return std::nullopt;
  while (!trim(text).empty()) {
    if (!take_item(text, found)) return std::nullopt;
  }
  return found;
}

void SiteRows::add(const Annotation& annotation) {
  if (annotation.line) at_.line = *annotation.line;
  if (annotation.file) at_.file = *annotation.file;
  const auto go_on = [&](std::uint32_t bytes) {
    at_.offset = bytes < size_ && at_.offset < size_ - bytes ? at_.offset + bytes : size_;
  };
  if (annotation.code) {
    go_on(*annotation.code);
    add(at_.offset, at_.file, at_.line);
    is_open_ = true;
  }
  if (!annotation.length) return;
  const std::uint32_t begin = at_.offset;
  go_on(*annotation.length);
  if (is_open_) add(at_.offset, SiteRow::kOutside, 0);
  is_open_ = false;
  if (annotation.code) at_.offset = begin;  // in one annotation with the begin, the length is no step
}

void SiteRows::finish() {
  if (is_open_) add(size_, SiteRow::kOutside, 0);
}

void SiteRows::add(std::uint32_t offset, std::uint32_t file, std::int32_t line) {
  while (rows_.size() > first_ && rows_.back().offset >= offset) rows_.pop_back();
  rows_.push_back({offset, file, line});
}

}  // namespace ptkit::code::pdb
