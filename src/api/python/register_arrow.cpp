// Tables as Arrow capsules: columns are shared with the consumer, not copied, and no Arrow library is needed.
#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include "api/python/bindings.h"

namespace ptkit::api::python {

// The structures of the Arrow C data and stream interfaces, as their specification lays them out.
namespace arrow {
inline constexpr std::int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

struct Schema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  Schema** children;
  Schema* dictionary;
  void (*release)(Schema*);
  void* private_data;
};

struct Array {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  Array** children;
  Array* dictionary;
  void (*release)(Array*);
  void* private_data;
};

struct Stream {
  int (*get_schema)(Stream*, Schema*);
  int (*get_next)(Stream*, Array*);
  const char* (*get_last_error)(Stream*);
  void (*release)(Stream*);
  void* private_data;
};
}  // namespace arrow

namespace {

// Dictionary strings of a column: concatenated UTF-8, and offsets.
struct Dictionary {
  std::int64_t count = 0;
  py::object ends;
  py::object text;
  const void* ends_cells = nullptr;
  const void* text_cells = nullptr;
};

// One column. `data` and `validity` (or None) keep their NumPy arrays alive.
struct Field {
  std::string name;
  std::string format;
  std::string metadata;
  py::object data;
  py::object validity;
  const void* cells = nullptr;
  const void* bits = nullptr;
  std::int64_t nulls = 0;
  std::optional<Dictionary> dictionary;
};

// All columns of a table. Consumers may drop it from threads without the GIL.
struct Fields {
  std::int64_t rows = 0;
  std::vector<Field> fields;
};

std::shared_ptr<Fields> with_gil_deleter(std::unique_ptr<Fields> fields) {
  return {fields.release(), [](Fields* dropped) {
            const py::gil_scoped_acquire gil;
            delete dropped;
          }};
}

// Arrow's encoding of key-value metadata: counts and lengths as native int32.
std::string encode_metadata(const std::string& key, const std::string& value) {
  std::string out;
  const auto number = [&out](std::size_t count) {
    const auto word = static_cast<std::int32_t>(count);
    out.append(reinterpret_cast<const char*>(&word), sizeof word);
  };
  number(1);
  number(key.size());
  out += key;
  number(value.size());
  return out + value;
}

using Names = std::tuple<std::int64_t, py::array, py::array>;
using Row = std::tuple<std::string, std::string, std::string, py::array, py::object, std::int64_t,
                       std::optional<Names>>;

std::shared_ptr<Fields> make_fields(std::int64_t rows, const std::vector<Row>& given) {
  auto fields = std::make_unique<Fields>();
  fields->rows = rows;
  for (const auto& [name, format, unit, data, validity, nulls, names] : given) {
    Field field;
    field.name = name;
    field.format = format;
    if (!unit.empty()) field.metadata = encode_metadata("unit", unit);
    field.data = data;
    field.cells = data.data();
    field.validity = validity;
    if (!validity.is_none()) field.bits = validity.cast<py::array>().data();
    field.nulls = nulls;
    if (names) {
      const auto& [count, ends, text] = *names;
      field.dictionary = Dictionary{count, ends, text, ends.data(), text.data()};
    }
    fields->fields.push_back(std::move(field));
  }
  return with_gil_deleter(std::move(fields));
}

struct SchemaOwner {
  std::shared_ptr<const Fields> fields;
  std::vector<arrow::Schema> children;
  std::vector<arrow::Schema*> slots;
  std::vector<arrow::Schema> dictionaries;
};

struct ArrayOwner {
  std::shared_ptr<const Fields> fields;
  std::vector<arrow::Array> children;
  std::vector<arrow::Array*> slots;
  std::vector<std::array<const void*, 2>> buffers;  // of the children
  std::vector<arrow::Array> dictionaries;
  std::vector<std::array<const void*, 3>> texts;  // of the dictionaries
  std::array<const void*, 1> own{nullptr};
};

// A consumer may move a child out and release it separately, so children own a reference, too.
template <typename Struct>
void release_child(Struct* child) {
  if (child->dictionary != nullptr && child->dictionary->release != nullptr)
    child->dictionary->release(child->dictionary);
  delete static_cast<std::shared_ptr<const void>*>(child->private_data);
  child->release = nullptr;
}

template <typename Struct, typename Owner>
void release_parent(Struct* parent) {
  auto* owner = static_cast<std::shared_ptr<Owner>*>(parent->private_data);
  for (Struct* child : (*owner)->slots) {
    if (child->release != nullptr) child->release(child);
  }
  parent->release = nullptr;
  delete owner;
}

void export_schema(const std::shared_ptr<const Fields>& fields, arrow::Schema* out) {
  auto owner = std::make_shared<SchemaOwner>();
  owner->fields = fields;
  owner->children.resize(fields->fields.size());
  owner->dictionaries.resize(fields->fields.size());
  for (std::size_t i = 0; i < fields->fields.size(); ++i) {
    const Field& field = fields->fields[i];
    arrow::Schema* dictionary = nullptr;
    if (field.dictionary) {
      dictionary = &owner->dictionaries[i];
      *dictionary = {"u",
                     "",
                     nullptr,
                     0,
                     0,
                     nullptr,
                     nullptr,
                     &release_child<arrow::Schema>,
                     new std::shared_ptr<const void>(owner)};
    }
    const char* metadata = field.metadata.empty() ? nullptr : field.metadata.data();
    owner->children[i] = {field.format.c_str(),
                          field.name.c_str(),
                          metadata,
                          arrow::kNullable,
                          0,
                          nullptr,
                          dictionary,
                          &release_child<arrow::Schema>,
                          new std::shared_ptr<const void>(owner)};
    owner->slots.push_back(&owner->children[i]);
  }
  const auto count = static_cast<std::int64_t>(owner->slots.size());
  *out = {"+s",    "",
          nullptr, 0,
          count,   owner->slots.data(),
          nullptr, &release_parent<arrow::Schema, SchemaOwner>,
          nullptr};
  out->private_data = new std::shared_ptr<SchemaOwner>(std::move(owner));
}

void export_array(const std::shared_ptr<const Fields>& fields, arrow::Array* out) {
  auto owner = std::make_shared<ArrayOwner>();
  owner->fields = fields;
  owner->children.resize(fields->fields.size());
  owner->buffers.resize(fields->fields.size());
  owner->dictionaries.resize(fields->fields.size());
  owner->texts.resize(fields->fields.size());
  for (std::size_t i = 0; i < fields->fields.size(); ++i) {
    const Field& field = fields->fields[i];
    arrow::Array* dictionary = nullptr;
    if (field.dictionary) {
      dictionary = &owner->dictionaries[i];
      owner->texts[i] = {nullptr, field.dictionary->ends_cells, field.dictionary->text_cells};
      *dictionary = {field.dictionary->count,
                     0,
                     0,
                     3,
                     0,
                     owner->texts[i].data(),
                     nullptr,
                     nullptr,
                     &release_child<arrow::Array>,
                     new std::shared_ptr<const void>(owner)};
    }
    owner->buffers[i] = {field.bits, field.cells};
    owner->children[i] = {fields->rows,
                          field.nulls,
                          0,
                          2,
                          0,
                          owner->buffers[i].data(),
                          nullptr,
                          dictionary,
                          &release_child<arrow::Array>,
                          new std::shared_ptr<const void>(owner)};
    owner->slots.push_back(&owner->children[i]);
  }
  const auto count = static_cast<std::int64_t>(owner->slots.size());
  *out = {fields->rows,
          0,
          0,
          1,
          count,
          owner->own.data(),
          owner->slots.data(),
          nullptr,
          &release_parent<arrow::Array, ArrayOwner>,
          nullptr};
  out->private_data = new std::shared_ptr<ArrayOwner>(std::move(owner));
}

// A stream of one batch.
struct StreamState {
  std::shared_ptr<const Fields> fields;
  bool done = false;
};

void export_stream(std::shared_ptr<const Fields> fields, arrow::Stream* out) {
  out->get_schema = [](arrow::Stream* self, arrow::Schema* schema) {
    export_schema(static_cast<StreamState*>(self->private_data)->fields, schema);
    return 0;
  };
  out->get_next = [](arrow::Stream* self, arrow::Array* array) {
    auto* state = static_cast<StreamState*>(self->private_data);
    if (std::exchange(state->done, true)) {
      *array = {};  // released: the end
    } else {
      export_array(state->fields, array);
    }
    return 0;
  };
  out->get_last_error = [](arrow::Stream*) -> const char* { return nullptr; };
  out->release = [](arrow::Stream* self) {
    delete static_cast<StreamState*>(self->private_data);
    self->release = nullptr;
  };
  out->private_data = new StreamState{std::move(fields), false};
}

template <typename Struct>
py::capsule capsule(std::unique_ptr<Struct> content, const char* name) {
  return py::capsule(content.release(), name, [](PyObject* object) {
    auto* held = static_cast<Struct*>(PyCapsule_GetPointer(object, PyCapsule_GetName(object)));
    if (held->release != nullptr) held->release(held);
    delete held;
  });
}

py::tuple arrow_array(std::int64_t rows, const std::vector<Row>& given) {
  const std::shared_ptr<const Fields> fields = make_fields(rows, given);
  auto schema = std::make_unique<arrow::Schema>();
  export_schema(fields, schema.get());
  auto array = std::make_unique<arrow::Array>();
  export_array(fields, array.get());
  return py::make_tuple(capsule(std::move(schema), "arrow_schema"), capsule(std::move(array), "arrow_array"));
}

py::capsule arrow_stream(std::int64_t rows, const std::vector<Row>& given) {
  auto stream = std::make_unique<arrow::Stream>();
  export_stream(make_fields(rows, given), stream.get());
  return capsule(std::move(stream), "arrow_array_stream");
}

}  // namespace

void register_arrow(py::module_& module) {
  module.def("arrow_array", &arrow_array, py::arg("rows"), py::arg("fields"));
  module.def("arrow_stream", &arrow_stream, py::arg("rows"), py::arg("fields"));
}

}  // namespace ptkit::api::python
