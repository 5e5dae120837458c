// JSON profiles of kernels: Volatility 3's ISF and Rekall's. They are read in one pass without a document in
// memory, as profiles of Linux have some hundred thousand types.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "code/source/pdb/pdb_file.h"
#include "formats/symbols/readers.h"
#include "formats/symbols/text.h"

namespace ptkit::formats::symbols {
namespace {

using Json = nlohmann::json;

// Keeps the keys of the outer objects, and takes the members that matter.
class Profile : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t value) override {
    take(value);
    return true;
  }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& text) override {
    take(text);
    return true;
  }
  bool start_object(std::size_t) override { return begin(); }
  bool end_object() override { return end(); }
  bool start_array(std::size_t) override { return begin(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    if (depth_ >= 1 && depth_ <= keys_.size()) keys_[depth_ - 1] = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error_at_ = position;
    return false;
  }

  // Members of a profile that were found.
  std::vector<trace::SymbolEntry> symbols;
  bool is_isf = false;
  bool is_rekall = false;
  std::string database;  // name of the PDB
  std::string guid;
  std::uint64_t age = 0;

  [[nodiscard]] std::size_t error_at() const noexcept { return error_at_; }

 private:
  bool begin() {
    ++depth_;
    if (depth_ <= keys_.size()) keys_[depth_ - 1].clear();  // elements of an array have no key
    return true;
  }
  bool end() {
    --depth_;
    return true;
  }
  [[nodiscard]] bool is_at(std::size_t depth, std::string_view first) const {
    return depth_ == depth && keys_[0] == first;
  }

  // A symbol without a name is no symbol.
  void add_symbol(std::uint64_t value) {
    if (!keys_[1].empty()) symbols.push_back({keys_[1], value, 0});
  }

  void take(std::uint64_t value) {
    if (is_at(3, "symbols") && keys_[2] == "address") {
      is_isf = true;
      add_symbol(value);
    } else if (is_at(2, "$CONSTANTS") || is_at(2, "$FUNCTIONS")) {
      is_rekall = true;
      add_symbol(value);
    } else if (is_at(4, "metadata") && keys_[3] == "age") {
      age = value;
    }
  }

  void take(const std::string& text) {
    if (is_at(4, "metadata") && keys_[3] == "database") database = text;
    if (is_at(4, "metadata") && keys_[3] == "GUID") guid = text;
    if (is_at(2, "$METADATA") && keys_[1] == "PDBFile") database = text;
  }

  std::array<std::string, 4> keys_;
  std::size_t depth_ = 0;
  std::size_t error_at_ = 0;
};

}  // namespace

ReadList read_json_profile(std::string_view text) {
  if (!trim(text.substr(0, text.find('\n'))).starts_with('{')) return {};
  Profile profile;
  if (!Json::sax_parse(text.begin(), text.end(), &profile)) {
    return {std::nullopt, "is no JSON at byte " + std::to_string(profile.error_at()) +
                              "; convert or download the profile again"};
  }
  if (profile.symbols.empty())
    return {std::nullopt,
            "is JSON without symbols: give a Volatility ISF or a Rekall profile, which has the "
            "member symbols or $CONSTANTS"};
  SymbolList list{.kind = profile.is_isf ? "Volatility ISF" : "Rekall profile"};
  list.symbols = std::move(profile.symbols);
  list.module = profile.database;
  list.pdb = code::pdb::pdb_id(std::move(profile.guid), profile.age);
  const bool is_relative = std::ranges::all_of(
      list.symbols, [](const trace::SymbolEntry& one) { return one.file_offset <= 0xFFFF'FFFF; });
  if (is_relative) list.linked_base = 0;  // those of Windows' kernels and drivers
  for (const trace::SymbolEntry& one : list.symbols) note_base(list, one.name, one.file_offset);
  return {std::move(list), {}};
}

}  // namespace ptkit::formats::symbols
