// Generates tables of Go's functions (.gopclntab) of all versions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace ptkit::test {

struct GoTableMaker {
  std::uint8_t magic = 0xF1;       // lowest byte: 0xFB Go 1.2, 0xFA 1.16, 0xF0 1.18, 0xF1 1.20
  std::size_t width = 8;           // bytes of a pointer
  std::uint64_t text = 0x40'1000;  // address of the first function
  bool has_text = true;            // the header has this address; since Go 1.26 it has not
  struct Function {
    std::string name;
    std::uint64_t size = 0;
  };
  std::vector<Function> functions;

  [[nodiscard]] std::vector<std::uint8_t> make() const {
    std::vector<std::uint8_t> out;
    put(out, 0xFFFF'FF00U | magic, 4);
    put(out, 0, 2);
    put(out, 1, 1);
    put(out, width, 1);
    put(out, functions.size(), width);
    if (magic == 0xFB) {
      const std::size_t rows = out.size();
      const std::size_t data = rows + (2 * functions.size() + 1) * width + 4;
      add_rows(out, width, text, data);  // offsets count from the table's begin
      put(out, 0, 4);                    // files
      add_data(out, width, text, data + functions.size() * (width + 4));
      add_names(out);
      return out;
    }
    const bool has_start = magic != 0xFA;
    put(out, 0, width);  // files
    if (has_start) put(out, has_text ? text : 0, width);
    const std::size_t head = out.size() + 5 * width;
    std::size_t names = 0;
    for (const Function& one : functions) names += one.name.size() + 1;
    put(out, head, width);                              // names come first,
    for (int i = 0; i < 3; ++i) put(out, head, width);  // then tables that are empty,
    put(out, head + names, width);                      // then functions
    add_names(out);
    const std::size_t cell = has_start ? 4 : width;
    const std::uint64_t base = has_start ? 0 : text;
    add_rows(out, cell, base, (2 * functions.size() + 1) * cell);
    add_data(out, cell, base, 0);
    return out;
  }

 private:
  static void put(std::vector<std::uint8_t>& out, std::uint64_t value, std::size_t bytes) {
    for (; bytes-- > 0; value >>= 8U) out.push_back(static_cast<std::uint8_t>(value));
  }
  void add_rows(std::vector<std::uint8_t>& out, std::size_t cell, std::uint64_t address,
                std::uint64_t data) const {
    for (const Function& one : functions) {
      put(out, address, cell);
      put(out, data, cell);
      address += one.size;
      data += cell + 4;
    }
    put(out, address, cell);
  }
  void add_data(std::vector<std::uint8_t>& out, std::size_t cell, std::uint64_t address,
                std::uint64_t name) const {
    for (const Function& one : functions) {
      put(out, address, cell);
      put(out, name, 4);
      address += one.size;
      name += one.name.size() + 1;
    }
  }
  void add_names(std::vector<std::uint8_t>& out) const {
    for (const Function& one : functions) {
      out.insert(out.end(), one.name.begin(), one.name.end());
      out.push_back(0);
    }
  }
};

}  // namespace ptkit::test
