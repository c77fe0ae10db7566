// Writes cells from what simdjson has parsed, or for other lines from the events of a slower
// parser.
#include <simdjson.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "worker/data/records/record_cells.h"
#include "worker/data/records/row_cells.h"

namespace hdps {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

// Reads a line with both parsers where it must: simdjson takes no integer beyond 64 bits, and says
// less about what is wrong.
class JsonCells : public RecordCells {
 public:
  JsonCells(const DataSpec& data, bool labels_read)
      : cells_(data, labels_read), by_events_(NewJsonEventCells(data, labels_read)) {}

  std::optional<RowError> Write(std::string_view record, CellLineWriter* line) override {
    if (!Read(record)) return by_events_->Write(record, line);
    cells_.WriteTo(line);
    return std::nullopt;
  }

 private:
  // Returns false if the line has to be read by its events.
  bool Read(std::string_view record) {
    cells_.Clear();
    text_.resize(record.size() + simdjson::SIMDJSON_PADDING);
    if (!record.empty()) std::memcpy(text_.data(), record.data(), record.size());
    simdjson::dom::object object;
    const auto parsed = parser_.parse(text_.data(), record.size(), /*realloc_if_needed=*/false);
    if (parsed.get(object) != simdjson::SUCCESS) return false;
    for (const auto [name, value] : object) {
      const size_t cell = cells_.Find(name);
      if (cell == RowCells::kNone) continue;
      if (!cells_.BeginCell(cell) || !AddCell(cell, value)) return false;
    }
    return true;
  }

  bool AddCell(size_t cell, element value) {
    const bool fits = value.is_array() ? AddList(cell, value) : AddValue(cell, value, false);
    if (fits) {
      cells_.EndCell();
      return true;
    }
    cells_.DropCell();
    return cells_.ignored(cell);
  }

  bool AddList(size_t cell, element list) {
    if (!cells_.WhyNot(cell, RecordValue::kList).empty()) return false;
    const size_t begin = cells_.values().BeginList();
    const simdjson::dom::array values = list.get_array().value_unsafe();
    for (const element value : values) {
      if (!AddValue(cell, value, true)) return false;
    }
    cells_.values().EndList(begin);
    return true;
  }

  bool AddValue(size_t cell, element value, bool in_list) {
    CellLineWriter& values = cells_.values();
    switch (value.type()) {
      case element_type::NULL_VALUE:
        if (in_list) values.AddMissing();
        return true;
      case element_type::BOOL:
        values.AddInteger(value.get_bool().value_unsafe() ? 1 : 0);
        return true;
      case element_type::INT64:
        values.AddInteger(value.get_int64().value_unsafe());
        return true;
      case element_type::UINT64:
        values.AddUnsigned(value.get_uint64().value_unsafe());
        return true;
      case element_type::DOUBLE:
        values.AddDouble(value.get_double().value_unsafe());
        return cells_.WhyNot(cell, in_list ? RecordValue::kFractions : RecordValue::kFraction)
            .empty();
      case element_type::STRING:
        values.AddText(value.get_string().value_unsafe());
        return true;
      case element_type::ARRAY:
      case element_type::OBJECT:
        break;
    }
    return false;
  }

  RowCells cells_;
  simdjson::dom::parser parser_;
  std::vector<char> text_;  // The line, and the room behind it that simdjson reads.
  const std::unique_ptr<RecordCells> by_events_;
};

}  // namespace

std::unique_ptr<RecordCells> NewJsonCells(const DataSpec& data, bool labels_read) {
  return std::make_unique<JsonCells>(data, labels_read);
}

}  // namespace hdps
