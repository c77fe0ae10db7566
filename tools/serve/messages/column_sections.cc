// Walks cells column by column, in the order in which they lie in the sections.
#include "tools/serve/messages/column_sections.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "tools/serve/requests/score_request.h"
#include "worker/data/columnar/cell_layout.h"
#include "worker/data/columnar/cell_reader.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

// Values of a list that is repeated for all rows, summed over these.
constexpr uint64_t kRepeatedValuesMax = uint64_t{1} << 22;

// Returns a cell of floating-point numbers with the sign of its zero, which its text has.
double NumberAt(const CellReader& reader, const ColumnChunk& chunk, int64_t index) {
  double number = 0;
  if (!reader.Number(chunk, index, &number)) return std::numeric_limits<double>::quiet_NaN();
  CellText memory;
  std::string_view text;
  const bool negative =
      number == 0 && reader.Text(chunk, index, &memory, &text) && text.starts_with('-');
  return negative ? -0.0 : number;
}

// Adds the cells of one column after the other.
class CellWriter {
 public:
  CellWriter(const ColumnTable& table, SentCells* cells) : table_(table), cells_(*cells) {}

  void Add(size_t column) {
    const ColumnTable::Column& from = table_.columns()[column];
    const bool lists = IsList(from.type.kind);
    const CellType& cell = lists ? *from.type.values : from.type;
    const CellType& value = cell.is_dictionary() ? *cell.values : cell;
    SentColumn to{from.name, CellForm::kTexts, static_cast<uint32_t>(table_.num_rows()), lists};
    const CellReader reader(cell);
    if (lists) {
      AddLists(column, from.type.kind, reader);
    } else if (value.kind == CellKind::kFloat16 || value.kind == CellKind::kFloat32) {
      to.form = CellForm::kFloats;
      ForEach(column, [&](const ColumnChunk& chunk, int64_t index) {
        cells_.floats.push_back(static_cast<float>(NumberAt(reader, chunk, index)));
      });
    } else if (value.kind == CellKind::kFloat64) {
      to.form = CellForm::kDoubles;
      ForEach(column, [&](const ColumnChunk& chunk, int64_t index) {
        cells_.doubles.push_back(NumberAt(reader, chunk, index));
      });
    } else if (cell.kind == CellKind::kInt64 && !cell.is_dictionary() && HasAll(column)) {
      to.form = CellForm::kIntegers;
      ForEach(column, [&](const ColumnChunk& chunk, int64_t index) {
        cells_.integers.push_back(CellAt<int64_t>(chunk, index));
      });
    } else {
      MarkEnd();
      ForEach(column, [&](const ColumnChunk& chunk, int64_t index) {
        AddText(reader, chunk, index);
        MarkEnd();
      });
    }
    cells_.columns.push_back(std::move(to));
  }

 private:
  // Calls use(chunk, index) for all rows.
  template <typename Use>
  void ForEach(size_t column, const Use& use) const {
    size_t batch = 0;
    for (uint64_t row = 0; row < table_.num_rows(); ++row) {
      const ColumnTable::Place place = table_.PlaceOf(row, batch);
      batch = place.batch;
      use(table_.chunk(place.batch, column), place.index);
    }
  }
  bool HasAll(size_t column) const {
    bool all = true;
    ForEach(column, [&all](const ColumnChunk& chunk, int64_t index) {
      all = all && HasCell(chunk, index);
    });
    return all;
  }

  void MarkEnd() { cells_.ends.push_back(static_cast<uint32_t>(cells_.texts.size())); }
  // Returns whether there is a text; a missing one is empty.
  bool AddText(const CellReader& reader, const ColumnChunk& chunk, int64_t index) {
    CellText memory;
    std::string_view text;
    if (!reader.Text(chunk, index, &memory, &text)) return false;
    cells_.texts += text;
    return true;
  }
  // Values that are missing are left out, as they count for nothing.
  void AddLists(size_t column, CellKind kind, const CellReader& reader) {
    std::vector<uint32_t> ends;
    cells_.ends.push_back(0);
    ends.push_back(static_cast<uint32_t>(cells_.texts.size()));
    ForEach(column, [&](const ColumnChunk& chunk, int64_t index) {
      const CellRange range = ListAt(kind, chunk, index);
      for (int64_t i = range.begin; i < range.end; ++i) {
        if (!AddText(reader, *chunk.values, i)) continue;
        ends.push_back(static_cast<uint32_t>(cells_.texts.size()));
      }
      cells_.ends.push_back(static_cast<uint32_t>(ends.size() - 1));
    });
    cells_.ends.insert(cells_.ends.end(), ends.begin(), ends.end());
  }

  const ColumnTable& table_;
  SentCells& cells_;
};

CellType TypeOf(CellForm form) {
  switch (form) {
    case CellForm::kIntegers:
      return {CellKind::kInt64, nullptr, "int64"};
    case CellForm::kFloats:
      return {CellKind::kFloat32, nullptr, "float32"};
    case CellForm::kDoubles:
      return {CellKind::kFloat64, nullptr, "float64"};
    case CellForm::kTexts:
      break;
  }
  return {CellKind::kText, nullptr, "text"};
}

// A request, and what its columns need besides its sections.
struct HeldRequest {
  PredictRequest request;
  std::vector<uint8_t> zeros;               // Indices of the one cell, [rows].
  std::deque<std::vector<uint32_t>> lists;  // Ends and indices of lists that are repeated.
};

// Takes one column after the other out of the sections of a decoded request.
class CellTaker {
 public:
  explicit CellTaker(HeldRequest* held) : held_(*held), request_(held->request) {}

  Status Take(const SentColumn& column) {
    CellType type = TypeOf(column.form);
    ColumnChunk chunk;
    chunk.length = column.cells;
    const bool repeated = column.cells != request_.rows;
    if (column.lists) {
      HDPS_RETURN_IF_ERROR(TakeLists(column, repeated, &type, &chunk));
    } else {
      TakeCells(column.form, column.cells, &chunk);
      if (repeated) Repeat(&type, &chunk);
    }
    columns_.push_back({column.name, std::move(type)});
    chunks_.push_back(std::move(chunk));
    return {};
  }

  std::vector<ColumnTable::Column> columns_;
  std::vector<ColumnChunk> chunks_;

 private:
  void TakeCells(CellForm form, uint64_t cells, ColumnChunk* chunk) {
    switch (form) {
      case CellForm::kIntegers:
        chunk->cells = request_.integers.As<int64_t>().data() + integers_;
        integers_ += cells;
        return;
      case CellForm::kFloats:
        chunk->cells = request_.floats.As<float>().data() + floats_;
        floats_ += cells;
        return;
      case CellForm::kDoubles:
        chunk->cells = request_.doubles.As<double>().data() + doubles_;
        doubles_ += cells;
        return;
      case CellForm::kTexts:
        chunk->cells = request_.ends.As<uint32_t>().data() + ends_;
        chunk->bytes = reinterpret_cast<const char*>(request_.texts.data());
        ends_ += cells + 1;
        return;
    }
  }

  // Makes a dictionary of the one cell.
  void Repeat(CellType* type, ColumnChunk* chunk) const {
    type->values = std::make_shared<const CellType>(*type);
    type->kind = CellKind::kUint8;
    ColumnChunk all;
    all.length = request_.rows;
    all.cells = held_.zeros.data();
    all.values = std::make_shared<const ColumnChunk>(std::move(*chunk));
    *chunk = std::move(all);
  }

  Status TakeLists(const SentColumn& column, bool repeated, CellType* type, ColumnChunk* chunk) {
    const std::span<const uint32_t> ends =
        request_.ends.As<uint32_t>().subspan(ends_, column.cells + 1);
    ends_ += ends.size();
    ColumnChunk texts;
    texts.length = ends.back();
    TakeCells(CellForm::kTexts, ends.back(), &texts);
    type->values = std::make_shared<const CellType>(*type);
    chunk->cells = ends.data();
    if (repeated) HDPS_RETURN_IF_ERROR(RepeatLists(column.name, ends.back(), type, chunk, &texts));
    type->kind = CellKind::kList;
    type->name = "list of text";
    chunk->values = std::make_shared<const ColumnChunk>(std::move(texts));
    return {};
  }

  // Makes lists whose values are those of a dictionary, because a dictionary has no lists.
  Status RepeatLists(const std::string& name, uint64_t values, CellType* type, ColumnChunk* chunk,
                     ColumnChunk* texts) {
    if (values * request_.rows > kRepeatedValuesMax) {
      return {Code::kResourceExhausted,
              "input '" + Printable(name) + "': " + std::to_string(values) + " values for all of " +
                  std::to_string(request_.rows) + " rows: expected at most " +
                  std::to_string(kRepeatedValuesMax) + " together"};
    }
    std::vector<uint32_t>& ends = held_.lists.emplace_back();
    std::vector<uint32_t>& indices = held_.lists.emplace_back();
    ends.push_back(0);
    for (uint32_t row = 0; row < request_.rows; ++row) {
      for (uint32_t value = 0; value < values; ++value) indices.push_back(value);
      ends.push_back(static_cast<uint32_t>(indices.size()));
    }
    CellType dictionary = *type;
    dictionary.kind = CellKind::kUint32;
    type->values = std::make_shared<const CellType>(std::move(dictionary));
    chunk->length = request_.rows;
    chunk->cells = ends.data();
    ColumnChunk all;
    all.length = static_cast<int64_t>(indices.size());
    all.cells = indices.data();
    all.values = std::make_shared<const ColumnChunk>(std::move(*texts));
    *texts = std::move(all);
    return {};
  }

  HeldRequest& held_;
  const PredictRequest& request_;
  size_t ends_ = 0, integers_ = 0, floats_ = 0, doubles_ = 0;
};

template <typename T>
Buffer BufferOf(std::vector<T> values) {
  const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
  return {kept, kept->data(), kept->size() * sizeof(T)};
}

Status CheckRows(uint64_t rows) {
  if (rows <= kRequestRowsMax) return {};
  return {Code::kResourceExhausted, std::to_string(rows) + " rows in a request: expected at most " +
                                        std::to_string(kRequestRowsMax)};
}

}  // namespace

Status AddCells(const ColumnTable& table, const std::vector<std::string>& names, SentCells* cells) {
  HDPS_RETURN_IF_ERROR(CheckRows(table.num_rows()));
  const auto rows = static_cast<uint32_t>(table.num_rows());
  CellWriter writer(table, cells);
  for (size_t c = 0; c < table.columns().size(); ++c) {
    const ColumnTable::Column& column = table.columns()[c];
    if (std::ranges::find(names, column.name) == names.end()) continue;
    const CellType& type = IsList(column.type.kind) ? *column.type.values : column.type;
    if (type.kind == CellKind::kOther ||
        (type.is_dictionary() && type.values->kind == CellKind::kOther)) {
      return {Code::kInvalidArgument, "column '" + Printable(column.name) + "' has the type " +
                                          column.type.name +
                                          ": expected numbers or texts, or lists of them"};
    }
    if (cells->columns.empty() || cells->rows == 1) cells->rows = rows;
    if (rows != cells->rows && rows != 1) {
      return {Code::kInvalidArgument, "column '" + Printable(column.name) + "' has " +
                                          std::to_string(rows) + " rows: expected " +
                                          std::to_string(cells->rows) +
                                          " as before it, or one that counts for all"};
    }
    writer.Add(c);
    if (cells->texts.size() <= kRequestBytesMax) continue;
    return {Code::kResourceExhausted, "the texts of the rows have more than " +
                                          std::to_string(kRequestBytesMax) +
                                          " bytes, which is the most of one request"};
  }
  return {};
}

void PutInto(PredictRequest* request, SentCells cells) {
  request->rows = cells.rows;
  request->columns = std::move(cells.columns);
  request->ends = BufferOf(std::move(cells.ends));
  request->texts = Buffer::CopyOf(std::as_bytes(std::span(cells.texts)));
  request->integers = BufferOf(std::move(cells.integers));
  request->floats = BufferOf(std::move(cells.floats));
  request->doubles = BufferOf(std::move(cells.doubles));
}

Result<std::shared_ptr<const ColumnTable>> TableOf(PredictRequest request) {
  HDPS_RETURN_IF_ERROR(CheckRows(request.rows));
  const auto held = std::make_shared<HeldRequest>();
  held->request = std::move(request);
  held->zeros.resize(held->request.rows);
  CellTaker taker(held.get());
  std::set<std::string_view> names;
  for (const SentColumn& column : held->request.columns) {
    if (!names.insert(column.name).second) {
      return Status(Code::kInvalidArgument,
                    "input '" + Printable(column.name) + "' is there twice: expected each once");
    }
    HDPS_RETURN_IF_ERROR(taker.Take(column));
  }
  HDPS_ASSIGN_OR_RETURN(
      std::unique_ptr<const ColumnTable> table,
      ColumnTable::FromChunks(std::move(taker.columns_), std::move(taker.chunks_), held));
  return std::shared_ptr<const ColumnTable>(std::move(table));
}

}  // namespace hdps
