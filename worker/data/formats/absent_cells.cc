// Determines the layout of a file from its first rows.
#include "worker/data/formats/absent_cells.h"

#include <algorithm>
#include <utility>

#include "common/job/spec/data_spec.h"
#include "common/parallel/strategy.h"
#include "worker/data/data_description.h"
#include "worker/data/header_check.h"

namespace hdps {
namespace {

// Returns true if a feature reads the cell of a column of this type.
bool IsFeature(const std::vector<ColumnSpec>& columns, ColumnType type) {
  return std::ranges::any_of(columns, [&](const ColumnSpec& feature) {
    if (feature.has_cell() || MayBeAbsent(feature.type)) return false;
    const auto of = std::ranges::find(columns, feature.from, &ColumnSpec::name);
    return of != columns.end() && of->type == type;
  });
}

// Returns layouts that differ in the number of cells, or, for entries, in whether there is a label.
std::vector<CellOrder> LayoutsOf(const DataSpec& data) {
  if (data.format == DataFormat::kCriteo) {
    const auto cells = static_cast<uint32_t>(ColumnNames(data).size());
    return {{{}, cells, true}, {{}, cells - 1, false}};
  }
  if (data.format != DataFormat::kCsv) return {{{}, 1, true}, {{}, 0, false}};
  std::vector<std::vector<ColumnType>> absent = {{}};
  for (const ColumnType type : {ColumnType::kLabel, ColumnType::kWeight, ColumnType::kGroup}) {
    const bool has_cells = std::ranges::any_of(data.columns, [type](const ColumnSpec& column) {
      return column.type == type && column.has_cell();
    });
    if (!has_cells || IsFeature(data.columns, type)) continue;
    for (size_t i = 0, before = absent.size(); i < before; ++i) {
      absent.push_back(absent[i]);
      absent.back().push_back(type);
    }
  }
  std::vector<CellOrder> layouts;
  for (const std::vector<ColumnType>& types : absent) {
    layouts.push_back(hdps::OrderOf(data.columns, types));
  }
  return layouts;
}

}  // namespace

std::unique_ptr<AbsentCells> AbsentCells::Of(const DataSpec& data, std::vector<std::string> paths) {
  const bool by_name =
      HasTypedCells(data.format) || (data.format == DataFormat::kCsv && data.header);
  if (by_name || data.format == DataFormat::kIdx) return nullptr;
  return std::unique_ptr<AbsentCells>(new AbsentCells(data, std::move(paths)));
}

AbsentCells::AbsentCells(const DataSpec& data, std::vector<std::string> paths)
    : paths_(std::move(paths)),
      names_(data.header ? std::vector<std::string>() : ColumnNames(data)),
      entries_(data.format != DataFormat::kCsv && data.format != DataFormat::kCriteo),
      layouts_(LayoutsOf(data)) {}

uint32_t AbsentCells::CellsOf(const std::vector<NamedText>& values) const {
  if (!entries_) return static_cast<uint32_t>(values.size());
  return values.empty() || values[0].text.find(':') != std::string::npos ? 0 : 1;
}

std::string AbsentCells::PlaceOf(uint32_t file, uint64_t number) const {
  return paths_[file] + ":" + std::to_string(number);
}

Status AbsentCells::LookCloser(const Line& line, RowParser& parser) {
  if (line.place.file != file_) {
    file_ = line.place.file;
    chosen_ = settled_ = false;
    doubts_ = 0;
    parser.UseOrder(nullptr);
  }
  const std::vector<NamedText> values = parser.Values(line.text);
  const uint32_t cells = CellsOf(values);
  if (!chosen_) {
    if (line.place.number == 1 && NamesItsColumns(values, names_)) {
      return {Code::kInvalidArgument,
              PlaceOf(file_, 1) +
                  ": this line is a header, with the names of the job's columns: expected "
                  "data.header to be true"};
    }
    return Choose(line, cells, parser);
  }
  if (cells == layouts_[layout_].num_cells) {
    settled_ = true;
    return {};
  }
  return Doubt(line, cells);
}

// Among the layouts with this many cells, chooses the one by which the row can be read. A row that
// cannot be read decides nothing.
Status AbsentCells::Choose(const Line& line, uint32_t cells, RowParser& parser) {
  std::vector<size_t> fitting, readable;
  for (size_t i = 0; i < layouts_.size(); ++i) {
    if (layouts_[i].num_cells != cells) continue;
    fitting.push_back(i);
    parser.UseOrder(OrderOf(i));
    if (!parser.Parse(line.text, &row_)) readable.push_back(i);
  }
  parser.UseOrder(fitting.empty() ? nullptr : OrderOf(fitting.front()));
  if (readable.empty()) return {};
  if (readable.size() > 1) {
    return {Code::kInvalidArgument,
            PlaceOf(file_, line.place.number) + ": " + std::to_string(cells) +
                " cells, and it cannot be told which of those of labels, weights and groups are "
                "left out: expected all of them, none of them, or a header and data.header"};
  }
  chosen_ = true;
  layout_ = readable.front();
  first_number_ = line.place.number;
  parser.UseOrder(OrderOf(layout_));
  return {};
}

Status AbsentCells::Doubt(const Line& line, uint32_t cells) {
  const bool lacks = layout_ != 0;
  const auto speaks = [&](const CellOrder& other) {
    return other.num_cells == cells && (!lacks || cells > layouts_[layout_].num_cells);
  };
  if (std::ranges::none_of(layouts_, speaks)) return {};
  if (++doubts_ < (lacks ? 1u : 2u)) return {};
  const std::string place = PlaceOf(file_, line.place.number);
  const std::string first = PlaceOf(file_, first_number_);
  if (entries_) {
    return {Code::kInvalidArgument, place + ": this row begins with " +
                                        (lacks ? "a label, and " : "an entry, and ") + first +
                                        " with " + (lacks ? "an entry" : "a label") +
                                        ": expected a label in all rows of a file or in none"};
  }
  return {
      Code::kInvalidArgument,
      place + ": this row has " + std::to_string(cells) + " cells, and " + first + " has " +
          std::to_string(layouts_[layout_].num_cells) +
          ": expected the cells of labels, weights and groups in all rows of a file or in none"};
}

}  // namespace hdps
