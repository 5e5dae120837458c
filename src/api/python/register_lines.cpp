// Rows as text: LineWriter writes lines of a table's rows, as text or JSON; texts of packets and events.
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "api/python/bindings.h"
#include "flow/rows/text.h"
#include "packet/opcodes.h"
#include "packet/text.h"
#include "tables/text/fields.h"
#include "trace/ptwrite_text.h"
#include "trace/rtit_ctl.h"

namespace ptkit::api::python {
namespace {

template <typename T>
using Array = py::array_t<T, py::array::c_style>;
using Known = std::optional<Array<bool>>;
using Times = std::tuple<Array<std::uint64_t>, Array<std::uint32_t>, Array<bool>>;

tables::text::Number number_by_name(std::string_view name) {
  if (name == "hex16") return tables::text::Number::HEX16;
  if (name == "hex") return tables::text::Number::HEX;
  if (name == "decimal") return tables::text::Number::DECIMAL;
  if (name == "seconds") return tables::text::Number::SECONDS;
  throw py::value_error("no form of numbers: " + std::string(name));
}

tables::text::Style style_by_name(std::string_view name) {
  if (name == "name") return tables::text::Style::NAME;
  if (name == "location") return tables::text::Style::LOCATION;
  if (name == "json") return tables::text::Style::JSON;
  throw py::value_error("no style of addresses: " + std::string(name));
}

tables::text::Names names_by_name(std::string_view name) {
  if (name == "symbol") return tables::text::Names::SYMBOL;
  if (name == "rva") return tables::text::Names::RVA;
  if (name == "rva and symbol") return tables::text::Names::RVA_AND_SYMBOL;
  throw py::value_error("no kind of names: " + std::string(name));
}

tables::text::InstructionStyle instruction_style(std::string_view name) {
  if (name == "text") return tables::text::InstructionStyle::TEXT;
  if (name == "raw") return tables::text::InstructionStyle::RAW;
  if (name == "json") return tables::text::InstructionStyle::JSON;
  if (name == "json bytes") return tables::text::InstructionStyle::JSON_BYTES;
  throw py::value_error("no style of instructions: " + std::string(name));
}

// One table's lines. Fields are added in order, and write() writes them for all rows. What is the same in
// many rows is kept from one part of the table to the next.
class LineWriter {
 public:
  LineWriter(std::shared_ptr<Session> session, std::vector<std::string> modules, std::uint32_t cs_base,
             bool file_offsets, std::string_view names, bool short_names)
      : session_(std::move(session)),
        code_{*session_->image,
              *session_->symbols,
              file_offsets ? nullptr : session_->loads.get(),
              std::move(modules),
              cs_base,
              names_by_name(names),
              short_names,
              {}},
        instructions_{{{code_, tables::text::InstructionStyle::TEXT},
                       {code_, tables::text::InstructionStyle::RAW},
                       {code_, tables::text::InstructionStyle::JSON},
                       {code_, tables::text::InstructionStyle::JSON_BYTES}}} {
    code_.modules.resize(session_->bundle->files.size());
  }
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Texts of functions by their full names.
  void show(const std::map<std::string, std::string>& names) {
    for (const auto& [full, text] : names) code_.shown.insert_or_assign(full, text);
  }
  // Begins lines of so many rows. Fields of the last ones are dropped.
  void begin(std::size_t rows) {
    lines_ = {};
    lines_.rows = rows;
    kept_.clear();
    literal_.clear();
    groups_ = 0;
  }
  // The fields between these two calls are a group.
  void begin_group() {
    if (groups_ == texts_.size()) texts_.push_back(std::make_unique<tables::text::KeptTexts>());
    lines_.groups.push_back({lines_.fields.size(), 0, texts_[groups_++].get()});
  }
  void end_group() {
    if (lines_.groups.empty()) throw py::value_error("no group has begun");
    lines_.groups.back().end = lines_.fields.size();
  }
  void literal(std::string_view text) { literal_ += text; }

  void number(const py::array& cells, std::string_view form, const Known& known, std::string_view unknown,
              std::string_view before, std::string_view after, std::size_t width) {
    tables::text::Field& field =
        add(tables::text::NumberField{cells_of(cells), number_by_name(form)}, known, unknown);
    field.before = tables::text::PaddedText(before);
    field.after = tables::text::PaddedText(after);
    field.width = width;
  }
  void label(const py::array& cells, const std::vector<std::string>& labels, const Known& known,
             std::string_view unknown) {
    if (labels.empty()) throw py::value_error("no labels");
    tables::text::LabelField value{cells_of(cells), {}};
    for (const std::string& text : labels) value.labels.emplace_back(text);
    add(std::move(value), known, unknown);
  }
  void texts(const py::list& texts) {
    if (texts.size() != lines_.rows) throw py::value_error("one text for each row");
    tables::text::TextField value;
    for (const py::handle text : texts) value.texts.push_back(py::cast<std::string_view>(text));
    kept_.push_back(texts);
    add(std::move(value), std::nullopt, {});
  }
  void address(std::string_view style, const std::string& end, const Array<std::uint64_t>& ips,
               const Array<std::uint32_t>& spaces, const Known& known, const std::optional<Times>& times,
               const std::optional<Array<std::uint64_t>>& from, const Known& from_known) {
    tables::text::AddressField value{&addresses(style_by_name(style), end),
                                     addresses_of(ips, spaces, known, times)};
    if (from) value.from = addresses_of(*from, spaces, from_known, times);
    add(std::move(value), std::nullopt, {});
  }
  void names(const Array<std::uint64_t>& from, const Known& from_known, const Array<std::uint64_t>& to,
             const Known& to_known, const Known& indirect, const Array<std::uint32_t>& spaces,
             const std::optional<Times>& times) {
    add(tables::text::AddressPairField{&addresses(tables::text::Style::NAME, ""),
                                       addresses_of(from, spaces, from_known, times),
                                       addresses_of(to, spaces, to_known, times),
                                       addresses_of(from, spaces, indirect, times)},
        std::nullopt, {});
  }
  void instruction(std::string_view style, const Array<std::uint64_t>& ips, const Array<std::uint8_t>& sizes,
                   const Array<std::uint8_t>& modes, const Array<std::uint32_t>& spaces,
                   const Array<std::uint64_t>& tsc, const Array<bool>& time_known) {
    add(tables::text::InstructionField{&instructions_[static_cast<std::size_t>(instruction_style(style))],
                                       {span(ips), span(sizes), span(modes), span(spaces), span(tsc),
                                        span(time_known)}},
        std::nullopt, {});
  }
  void packet(const Array<std::uint8_t>& kinds, const Array<std::uint64_t>& payload,
              const Array<std::uint64_t>& payload2, const Array<std::uint8_t>& flags, std::size_t width) {
    tables::text::Field& field =
        add(tables::text::PacketField{span(kinds), span(payload), span(payload2), span(flags),
                                      trace::ptw_disabled(session_->bundle->configuration)},
            std::nullopt, {});
    field.width = width;
    field.right = true;
  }

  // Gives the lines to a function, some at a time.
  void write(const py::function& output, const std::vector<std::pair<std::size_t, py::bytes>>& notes,
             const Known& shown, bool strip) {
    if (!lines_.groups.empty() && lines_.groups.back().end == 0) throw py::value_error("a group has no end");
    add(tables::text::NoField{}, std::nullopt, {});  // literals after the last field
    lines_.strip = strip;
    if (shown) lines_.shown = span(*shown);
    std::vector<tables::text::Note> between;
    between.reserve(notes.size());
    for (const auto& [row, text] : notes) between.emplace_back(row, text);
    {
      const py::gil_scoped_release release;
      tables::text::write_lines(lines_, between, buffer_, [&](std::string_view text) {
        const py::gil_scoped_acquire gil;
        output(py::memoryview::from_memory(static_cast<const void*>(text.data()),
                                           static_cast<py::ssize_t>(text.size())));
      });
    }
    if (session_->callback != nullptr) session_->callback->rethrow();
    begin(0);
  }

 private:
  template <typename Value>
  tables::text::Field& add(Value value, const Known& known, std::string_view unknown) {
    tables::text::Field& field = lines_.fields.emplace_back();
    field.first = tables::text::PaddedText(literal_);
    literal_.clear();
    field.value = std::move(value);
    if (known) field.known = span(*known);
    field.unknown = tables::text::PaddedText(unknown);
    return field;
  }

  template <typename T>
  std::span<const T> span(const Array<T>& array) {
    if (array.ndim() != 1 || static_cast<std::size_t>(array.size()) != lines_.rows)
      throw py::value_error("an array of " + std::to_string(array.size()) + " values does not fit " +
                            std::to_string(lines_.rows) + " rows");
    kept_.push_back(array);
    return {array.data(), lines_.rows};
  }

  // An array of stride 0 (a column of equal values) is copied.
  template <typename T, typename... More>
  tables::text::Cells cells_of(const py::array& array) {
    if (py::isinstance<py::array_t<T>>(array)) return span(py::cast<Array<T>>(array));
    if constexpr (sizeof...(More) != 0) return cells_of<More...>(array);
    throw py::type_error("no array of integers");
  }
  tables::text::Cells cells_of(const py::array& array) {
    return cells_of<bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int32_t,
                    std::int64_t>(array);
  }

  code::symbol::RowAddresses addresses_of(const Array<std::uint64_t>& ips, const Array<std::uint32_t>& spaces,
                                          const Known& known, const std::optional<Times>& times) {
    code::symbol::RowAddresses rows;
    rows.ips = span(ips);
    rows.spaces = span(spaces);
    if (known) rows.known = span(*known);
    if (times) {
      rows.tsc = span(std::get<0>(*times));
      rows.tsc_error = span(std::get<1>(*times));
      rows.time_known = span(std::get<2>(*times));
    }
    return rows;
  }

  tables::text::AddressTexts& addresses(tables::text::Style style, const std::string& end) {
    return addresses_.try_emplace({style, end}, code_, style, end).first->second;
  }

  std::shared_ptr<Session> session_;
  tables::text::Code code_;
  std::map<std::pair<tables::text::Style, std::string>, tables::text::AddressTexts> addresses_;
  std::array<tables::text::InstructionTexts, 4> instructions_;  // by InstructionStyle
  tables::text::TextBuffer buffer_;
  tables::text::Lines lines_;
  std::vector<std::unique_ptr<tables::text::KeptTexts>> texts_;  // of the groups
  std::size_t groups_ = 0;
  std::string literal_;
  std::vector<py::object> kept_;  // arrays and texts of the fields
};

using Numbers = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

void check_rows(std::initializer_list<Numbers> columns) {
  for (const Numbers& column : columns) {
    if (column.ndim() != 1 || column.size() != columns.begin()->size())
      throw py::value_error("columns must have one dimension and the same length");
  }
}

py::list packet_texts(const Numbers& kind, const Numbers& payload, const Numbers& payload2,
                      const Numbers& flags, bool annotated) {
  check_rows({kind, payload, payload2, flags});
  py::list texts;
  for (py::ssize_t row = 0; row < kind.size(); ++row) {
    if (kind.data()[row] >= packet::kPacketKinds) throw py::value_error("no such kind of packet");
    packet::Packet packet;
    packet.kind = static_cast<packet::PacketKind>(kind.data()[row]);
    packet.payload = payload.data()[row];
    packet.payload2 = payload2.data()[row];
    packet.flags = static_cast<std::uint8_t>(flags.data()[row]);
    const packet::DumpText text = packet::dump_text(packet);
    std::string detail(std::string_view(text.detail));
    if (annotated && packet.kind == packet::PacketKind::PTW) detail += trace::ptwrite_text(packet.payload);
    texts.append(py::make_tuple(text.opcode, std::string_view(text.payload), detail));
  }
  return texts;
}

py::list event_texts(const Numbers& kind, const Numbers& payload, const Numbers& payload2,
                     const Numbers& payload3, const Numbers& flags, bool annotated) {
  check_rows({kind, payload, payload2, payload3, flags});
  py::list texts;
  for (py::ssize_t row = 0; row < kind.size(); ++row) {
    flow::Event event;
    event.kind = static_cast<flow::EventKind>(kind.data()[row]);
    event.payload = payload.data()[row];
    event.payload2 = payload2.data()[row];
    event.payload3 = payload3.data()[row];
    event.flags = static_cast<std::uint16_t>(flags.data()[row]);
    std::string text = flow::event_text(event);
    if (annotated && event.kind == flow::EventKind::PTWRITE) {
      const std::string annotation = trace::ptwrite_text(event.payload);
      if (!annotation.empty()) text.append(", ").append(annotation);
    }
    texts.append(py::cast(text));
  }
  return texts;
}

}  // namespace

void register_lines(py::module_& module) {
  py::class_<LineWriter>(module, "LineWriter", "Writes rows of tables as lines of bytes.")
      .def(py::init<std::shared_ptr<Session>, std::vector<std::string>, std::uint32_t, bool, std::string_view,
                    bool>(),
           py::arg("session"), py::arg("modules"), py::arg("cs_base") = 0, py::arg("file_offsets") = false,
           py::arg("names") = "symbol", py::arg("short_names") = false,
           "file_offsets: names of files have offsets in the file, not RVAs. names: \"symbol\", \"rva\" or "
           "\"rva and symbol\". short_names: functions have their short names; JSON has both.")
      .def("show", &LineWriter::show, py::arg("names"), "What short names are shown as, by full names.")
      .def("begin", &LineWriter::begin, py::arg("rows"), "Begin lines of so many rows.")
      .def("literal", &LineWriter::literal, py::arg("text"), "Text in each line.")
      .def("begin_group", &LineWriter::begin_group, "Begin fields with texts that are kept by their values.")
      .def("end_group", &LineWriter::end_group)
      .def("number", &LineWriter::number, py::arg("cells").noconvert(), py::arg("form"), py::kw_only(),
           py::arg("known") = py::none(), py::arg("unknown") = "", py::arg("before") = "",
           py::arg("after") = "", py::arg("width") = 0)
      .def("label", &LineWriter::label, py::arg("cells").noconvert(), py::arg("labels"), py::kw_only(),
           py::arg("known") = py::none(), py::arg("unknown") = "")
      .def("texts", &LineWriter::texts, py::arg("texts"))
      .def("address", &LineWriter::address, py::arg("style"), py::arg("end"), py::arg("ips"),
           py::arg("spaces"), py::arg("known") = py::none(), py::arg("times") = py::none(),
           py::arg("from_ip") = py::none(), py::arg("from_known") = py::none(),
           "from_ip: the addresses are targets of branches that come from there; from_known: of indirect "
           "ones.")
      .def("names", &LineWriter::names, py::arg("from_ip"), py::arg("from_known"), py::arg("to_ip"),
           py::arg("to_known"), py::arg("indirect"), py::arg("spaces"), py::arg("times") = py::none(),
           "Names of both addresses: \"  a -> b\". indirect: branches that may go through import slots.")
      .def("instruction", &LineWriter::instruction, py::arg("style"), py::arg("ips"), py::arg("sizes"),
           py::arg("modes"), py::arg("spaces"), py::arg("tsc"), py::arg("time_known"))
      .def("packet", &LineWriter::packet, py::arg("kinds"), py::arg("payload"), py::arg("payload2"),
           py::arg("flags"), py::kw_only(), py::arg("width") = 0)
      .def(
          "write", &LineWriter::write, py::arg("output"), py::arg("notes") = py::list(),
          py::arg("shown") = py::none(), py::kw_only(), py::arg("strip") = true,
          "Give the lines of all rows, with notes before rows, to a function: a memoryview, valid during the "
          "call, of some lines at a time.");
  module.def(
      "packet_texts", &packet_texts, py::arg("kind"), py::arg("payload"), py::arg("payload2"),
      py::arg("flags"), py::kw_only(), py::arg("annotated") = false,
      "(opcode, payload, detail) of each packet, in the manner of ptdump; annotated: what a recorder has "
      "put in is explained.");
  module.def("event_texts", &event_texts, py::arg("kind"), py::arg("payload"), py::arg("payload2"),
             py::arg("payload3"), py::arg("flags"), py::kw_only(), py::arg("annotated") = false,
             "What each event tells, in the manner of ptxed; annotated: as for packets.");
}

}  // namespace ptkit::api::python
