// Fields with texts that are kept by their values, and a block of their keys.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tables/text/block_field.h"
#include "tables/text/field_keys.h"
#include "tables/text/fields.h"

namespace ptkit::tables::text {

class FieldGroup {
 public:
  // `blocks` are the group's fields.
  FieldGroup(const Group& group, std::span<const Field> fields, std::span<BlockField> blocks)
      : texts_(group.texts->cache), blocks_(blocks), keys_(fields) {
    if (keys_.fits() && group.texts->layout != keys_.layout()) *group.texts = {keys_.layout()};
  }

  [[nodiscard]] bool fits() const noexcept { return keys_.fits(); }
  void load(std::size_t first, std::size_t rows) {
    first_ = first;
    keys_.read(first, std::span(row_keys_).first(rows));
  }
  void write(TextBuffer& out, std::size_t row) {
    const TextCache::Key& key = row_keys_[row - first_];
    const TextCache::Ref* const found = texts_.find(key);
    if (found == nullptr) return make(out, row, key);
    out.add_padded(texts_.text_of(*found), found->size);
  }

 private:
  void make(TextBuffer& out, std::size_t row, const TextCache::Key& key) {
    const std::size_t begin = out.size();
    bool same = true;
    for (BlockField& field : blocks_) {
      field.load(row, 1);
      same &= field.write(out, row);
    }
    if (!same) return;
    texts_.reserve();
    texts_.insert(key, texts_.store(out.view().substr(begin)));
  }

  TextCache& texts_;
  std::span<BlockField> blocks_;
  FieldKeys keys_;
  std::size_t first_ = 0;  // row of the first key
  std::array<TextCache::Key, kBlockRows> row_keys_;
};

}  // namespace ptkit::tables::text
