// Splits every line with the parser that will read it in training.
#include "tools/prepare/data_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/data_description.h"
#include "worker/data/header_check.h"
#include "worker/data/indexed_reader.h"
#include "worker/data/line_reader.h"
#include "worker/data/number.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

constexpr size_t kDistinctOfAllMax = size_t{1} << 22;  // Distinct values kept, over all columns.
constexpr size_t kDistinctMin = 1024;
constexpr size_t kFieldsMax = 65536;
constexpr double kFloatMax = std::numeric_limits<float>::max();

DataSpec SpecOf(const DataLayout& layout) {
  DataSpec data;
  // Lines of libfm are split like those of libsvm; their fields are found here.
  data.format = layout.format == DataFormat::kLibfm || layout.format == DataFormat::kLibffm
                    ? DataFormat::kLibsvm
                    : layout.format;
  data.delimiter = layout.delimiter;
  data.quote = layout.quote;
  data.header = layout.header;
  data.comment = layout.comment;
  for (const std::string& name : layout.names) {
    ColumnSpec& column = data.columns.emplace_back();
    column.name = name;
    // Of records, the most liberal type that the file's fits.
    if (layout.lists.contains(name)) column.type = ColumnType::kMulti;
    if (layout.fractions.contains(name)) column.type = ColumnType::kNumeric;
  }
  return data;
}

void AddNumber(double number, std::string_view cell, ColumnProfile* column) {
  constexpr double kExactMax = 9007199254740992;  // 2^53.
  column->leading_zeros += cell.size() > 1 && cell[0] == '0' && cell[1] >= '0' && cell[1] <= '9';
  column->beyond_exact += std::abs(number) > kExactMax && cell.find_first_of(".eE") == cell.npos;
  column->whole = column->whole && number == std::floor(number);
  column->rising =
      column->rising && (column->numbers.count() == 0 || number > column->numbers.max());
  column->numbers.Add(number);
  column->sample.Add(number);
}

void AddParts(std::string_view cell, char separator, size_t kept, ColumnProfile* column) {
  if (cell.find(separator) == cell.npos) return;
  PartsProfile& parts = column->parts.try_emplace(separator, kept).first->second;
  ++parts.cells;
  while (true) {
    const size_t end = std::min(cell.find(separator), cell.size());
    const std::string_view part = TrimBlanks(cell.substr(0, end));
    if (!part.empty()) {
      ++parts.parts;
      parts.numbers += part.find_first_not_of("0123456789") == part.npos ? 1 : 0;
      parts.distinct.Add(HashString(part));
    }
    if (end == cell.size()) return;
    cell.remove_prefix(end + 1);
  }
}

// Rules by which the cells of one file are split, and the current position in it.
struct CellPlace {
  const std::string& path;
  uint64_t line;
  std::string Text() const { return path + ":" + std::to_string(line); }
};

void AddText(std::string_view cell, const DataLayout& layout, const CellPlace& place, size_t kept,
             ColumnProfile* column) {
  if (const std::optional<CellKind> kind = CellKindOf(cell, layout.decimal)) {
    ForeignCells& foreign = column->foreign[*kind];
    if (foreign.count++ == 0) foreign = {1, std::string(cell.substr(0, 60)), place.Text()};
  }
  for (const char separator : kSeparators) {
    if (layout.delimiter != std::string(1, separator)) AddParts(cell, separator, kept, column);
  }
}

void AddCell(std::string_view cell, const DataLayout& layout, const CellPlace& place, size_t kept,
             ColumnProfile* column) {
  ++column->cells;
  if (cell.empty()) {
    ++column->empty;
    if (column->first_missing.empty()) column->first_missing = place.Text();
    return;
  }
  const uint64_t hash = HashString(cell);
  column->distinct.Add(hash);
  column->frequent.Add(hash, cell);
  const std::optional<double> number = NumberOf(cell, layout.decimal);
  if (number && std::abs(*number) <= kFloatMax) {
    AddNumber(*number, cell, column);
    return;
  }
  if (std::ranges::find(kMissingTexts, cell) != std::end(kMissingTexts)) {
    ++column->missing[std::string(cell)];
    if (column->first_missing.empty()) column->first_missing = place.Text();
    return;
  }
  AddText(cell, layout, place, kept, column);
}

class Profiler {
 public:
  Profiler(const DataLayout& layout, const ProfileOptions& options)
      : layout_(layout),
        data_(SpecOf(layout)),
        parser_(NewRowParser(data_, {LabelSpec()})),
        only_(options.only) {
    profile_.layout = layout;
    for (const std::string& name : ColumnNames(data_)) names_.push_back(name);
    by_cell_ = !names_.empty();
    if (!by_cell_) names_ = {"label"};
    kept_ = std::clamp(kDistinctOfAllMax / std::max<size_t>(names_.size(), layout.num_fields + 1),
                       kDistinctMin, std::max(kDistinctMin, options.distinct_kept));
    for (const std::string& name : names_) profile_.columns.emplace_back(name, kept_);
  }

  Status Add(FileSystem& files, const std::string& path) {
    order_.reset();
    LineRules rules = FileRulesOf(data_, {path}, /*labels_read=*/true);
    if (records_ == nullptr) records_ = rules.records;
    rules.records = records_;
    LineReader lines(files, {path}, rules,
                     [&](uint32_t, std::string_view text) { return TakeHeader(path, text); });
    HDPS_RETURN_IF_ERROR(lines.Start());
    for (Line line;;) {
      HDPS_ASSIGN_OR_RETURN(const bool found, lines.Next(&line));
      if (!found) break;
      if (layout_.header && line.text == layout_.header_line) {
        ++profile_.header_rows;
        continue;
      }
      const std::vector<NamedText> cells = parser_->Values(line.text);
      if (by_cell_) {
        AddCells(path, line, cells);
      } else {
        HDPS_RETURN_IF_ERROR(AddEntries(path, line, cells));
      }
    }
    profile_.files.push_back(path);
    return {};
  }

  DataProfile Take() { return std::move(profile_); }

 private:
  Status TakeHeader(const std::string& path, std::string_view text) {
    if (layout_.format != DataFormat::kCsv) return {};
    parser_->UseOrder(nullptr);
    HDPS_ASSIGN_OR_RETURN(HeaderMatch match,
                          MatchHeader(path + ":1", parser_->Values(text), data_.columns, true));
    order_ = std::move(match.order);
    return {};
  }

  void AddCells(const std::string& path, const Line& line, const std::vector<NamedText>& cells) {
    const size_t expected = order_ ? order_->num_cells : names_.size();
    if (cells.size() != expected) {
      AddRagged(path, line, cells.size(), expected);
      return;
    }
    ++profile_.rows;
    for (size_t c = 0; c < names_.size(); ++c) {
      if (only_ && names_[c] != *only_) continue;
      const size_t cell = order_ ? order_->cell_of_column[c] : c;
      AddCell(cells[cell].text, layout_, {path, line.place.number}, kept_, &profile_.columns[c]);
    }
  }

  void AddRagged(const std::string& path, const Line& line, size_t cells, size_t expected) {
    Row row;
    const std::optional<RowError> error = parser_->Parse(line.text, &row);
    const bool unpaired = error && error->expected.find("quote") != error->expected.npos;
    profile_.unpaired_rows += unpaired ? 1 : 0;
    if (profile_.ragged_rows++ > 0) return;
    profile_.first_ragged = unpaired ? DescribeRowError(path, line.place.number, line.text, *error)
                                     : path + ":" + std::to_string(line.place.number) + ": " +
                                           std::to_string(cells) + " cells where there should be " +
                                           std::to_string(expected);
  }

  Status AddEntries(const std::string& path, const Line& line,
                    const std::vector<NamedText>& cells) {
    ++profile_.rows;
    AddCell(cells[0].text, layout_, {path, line.place.number}, kept_, &profile_.columns[0]);
    for (size_t e = 1; e < cells.size() && !only_; ++e) {
      std::string_view entry = cells[e].text;
      size_t field = layout_.format == DataFormat::kLibfm ? e - 1 : 0;
      if (layout_.format == DataFormat::kLibffm) {
        const size_t colon = std::min(entry.find(':'), entry.size());
        const std::optional<double> number = ParseNumber(entry.substr(0, colon));
        if (!number || *number < 0 || *number >= kFieldsMax) {
          return {Code::kInvalidArgument, path + ":" + std::to_string(line.place.number) + ": '" +
                                              Printable(entry) + "': expected field:index:value"};
        }
        field = static_cast<size_t>(*number);
        entry.remove_prefix(std::min(colon + 1, entry.size()));
      }
      while (profile_.columns.size() < field + 2) {
        const size_t next = profile_.columns.size() - 1;
        profile_.columns.emplace_back(
            layout_.format == DataFormat::kLibsvm ? "features" : "field" + std::to_string(next),
            kept_);
      }
      const std::string_view index = entry.substr(0, entry.find(':'));
      ColumnProfile& column = profile_.columns[field + 1];
      ++column.cells;
      const uint64_t hash = HashString(index);
      column.distinct.Add(hash);
      column.frequent.Add(hash, index);
    }
    return {};
  }

  const DataLayout& layout_;
  const DataSpec data_;
  const std::unique_ptr<RowParser> parser_;
  const std::optional<std::string> only_;
  std::vector<std::string> names_;
  bool by_cell_ = false;  // False: entries carry their own index.
  size_t kept_ = 0;
  std::optional<CellOrder> order_;        // Order of the current file.
  std::shared_ptr<RecordFiles> records_;  // Compares the types of all files; null: they are text.
  DataProfile profile_;
};

}  // namespace

Result<DataProfile> ProfileData(FileSystem& files, const DataLayout& layout,
                                const std::vector<std::string>& paths,
                                const ProfileOptions& options) {
  Profiler profiler(layout, options);
  for (const std::string& path : paths) HDPS_RETURN_IF_ERROR(profiler.Add(files, path));
  DataProfile profile = profiler.Take();
  if (profile.header_rows > 0 && profile.layout.comment.empty()) {
    profile.layout.comment = profile.layout.header_line;
  }
  return profile;
}

}  // namespace hdps
