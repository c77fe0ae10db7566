// The formats are tried from the most to the least particular one.
#include "tools/prepare/data_layout.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "worker/data/line_reader.h"
#include "worker/data/number.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

constexpr size_t kLinesMax = 500;
constexpr size_t kCriteoCells = 40;
constexpr std::string_view kCommentMarks = "#|%";

std::vector<std::string> CellsOf(const std::string& line, char delimiter) {
  DataSpec data;
  data.delimiter = std::string(1, delimiter);
  std::vector<std::string> cells;
  for (NamedText& cell : NewRowParser(data, {LabelSpec()})->Values(line))
    cells.push_back(std::move(cell.text));
  return cells;
}

Result<std::vector<std::string>> FirstLines(FileSystem& files, const std::string& path) {
  LineReader lines(files, {path}, {});
  HDPS_RETURN_IF_ERROR(lines.Start());
  std::vector<std::string> first;
  for (Line line; first.size() < kLinesMax;) {
    HDPS_ASSIGN_OR_RETURN(const bool found, lines.Next(&line));
    if (!found) break;
    first.emplace_back(line.text);
  }
  if (first.empty()) {
    return Status(Code::kInvalidArgument, path + ": there is no row in this file");
  }
  return first;
}

// How the entries of a line are written: "label 3:1" has one colon each, "label 0:3:1" two.
std::optional<int> ColonsOfEntries(std::string_view line) {
  const auto next = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(word.size());
    return word;
  };
  if (!ParseNumber(next())) return std::nullopt;
  std::optional<int> colons;
  for (std::string_view word = next(); !word.empty() && word[0] != '#'; word = next()) {
    if (word.find_first_not_of("0123456789:.eE+-") != word.npos) return std::nullopt;
    const auto here = static_cast<int>(std::ranges::count(word, ':'));
    if (here == 0 || here > 2 || (colons && *colons != here)) return std::nullopt;
    colons = here;
  }
  return colons.value_or(0);
}

// The numbers of entries, and of each place the indexes: libfm has the same fields everywhere.
std::optional<uint32_t> FieldsByPlace(const std::vector<std::string>& lines) {
  constexpr size_t kFieldsMax = 256;
  std::vector<std::set<std::string>> at_place;
  DataSpec data;
  data.format = DataFormat::kLibsvm;
  const std::unique_ptr<RowParser> parser = NewRowParser(data, {LabelSpec()});
  for (const std::string& line : lines) {
    const std::vector<NamedText> entries = parser->Values(line);
    const size_t fields = entries.size() - 1;
    if (at_place.empty()) at_place.resize(fields);
    if (fields != at_place.size() || fields < 2 || fields > kFieldsMax) return std::nullopt;
    for (size_t f = 0; f < fields; ++f) {
      at_place[f].insert(entries[f + 1].text.substr(0, entries[f + 1].text.find(':')));
    }
  }
  // Each index is of one place, and some place has several: dense vectors have one each.
  std::set<std::string> all;
  size_t sum = 0, several = 0;
  for (const std::set<std::string>& here : at_place) {
    all.insert(here.begin(), here.end());
    sum += here.size();
    several += here.size() > 1 ? 1 : 0;
  }
  if (sum != all.size() || several == 0) return std::nullopt;
  return static_cast<uint32_t>(at_place.size());
}

bool IsCriteo(const std::vector<std::string>& lines, bool* header) {
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string> cells = CellsOf(lines[i], '\t');
    if (cells.size() != kCriteoCells) return false;
    const std::optional<double> label = ParseNumber(cells[0]);
    bool row = label && (*label == 0 || *label == 1 || *label == -1);
    for (size_t c = 1; c <= 13; ++c) row = row && (cells[c].empty() || ParseNumber(cells[c]));
    if (!row && i == 0 && lines.size() > 1) {
      *header = true;
    } else if (!row) {
      return false;
    }
  }
  return true;
}

// The delimiter with which most lines have the same number of cells, at least two.
std::optional<char> DelimiterOf(const std::vector<std::string>& lines) {
  std::optional<char> best;
  size_t best_lines = 0, best_cells = 0;
  for (const char delimiter : {',', '\t', ';', '|'}) {
    std::map<size_t, size_t> counts;
    for (const std::string& line : lines) ++counts[CellsOf(line, delimiter).size()];
    const auto common =
        std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
    const auto [cells, alike] = *common;
    if (cells < 2 || 2 * alike < lines.size()) continue;
    if (alike > best_lines || (alike == best_lines && cells > best_cells)) {
      best = delimiter;
      best_lines = alike;
      best_cells = cells;
    }
  }
  return best;
}

// Texts over columns of numbers; or, where all are texts, names that come nowhere below.
bool IsHeader(const std::vector<std::vector<std::string>>& rows) {
  if (rows.size() < 2) return false;
  const std::vector<std::string>& first = rows[0];
  const std::set<std::string> names(first.begin(), first.end());
  if (names.size() != first.size() || names.contains("")) return false;
  bool recurs = false;
  for (size_t c = 0; c < first.size(); ++c) {
    if (ParseNumber(first[c])) return false;
    size_t numbers = 0, filled = 0;
    for (size_t r = 1; r < rows.size(); ++r) {
      if (c >= rows[r].size() || rows[r][c].empty()) continue;
      ++filled;
      numbers += ParseNumber(rows[r][c]) ? 1 : 0;
      recurs = recurs || rows[r][c] == first[c];
    }
    if (filled > 0 && 10 * numbers >= 9 * filled) return true;
  }
  return !recurs && rows.size() > 10;
}

DataLayout CsvLayout(const std::vector<std::string>& lines, char delimiter) {
  DataLayout layout;
  layout.delimiter = std::string(1, delimiter);
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : lines) rows.push_back(CellsOf(line, delimiter));
  std::map<size_t, size_t> counts;
  for (const auto& row : rows) ++counts[row.size()];
  const size_t cells =
      std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; })->first;
  for (size_t r = 0; r < rows.size(); ++r) {
    const bool marked = kCommentMarks.find(lines[r][0]) != kCommentMarks.npos;
    if (marked && rows[r].size() != cells) layout.comment = lines[r].substr(0, 1);
  }
  std::erase_if(rows, [cells](const auto& row) { return row.size() != cells; });
  layout.header = CellsOf(lines[0], delimiter).size() == cells && IsHeader(rows);
  if (layout.header) layout.header_line = lines[0];
  for (size_t c = 0; c < cells; ++c) {
    layout.names.push_back(layout.header ? rows[0][c] : "column" + std::to_string(c + 1));
  }
  return layout;
}

}  // namespace

Result<DataLayout> TellLayout(FileSystem& files, const std::string& path) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> lines, FirstLines(files, path));
  DataLayout layout;
  if (IsCriteo(lines, &layout.header)) {
    layout.format = DataFormat::kCriteo;
    return layout;
  }
  std::optional<int> colons;
  size_t entry_lines = 0;
  for (const std::string& line : lines) {
    const std::optional<int> here = ColonsOfEntries(line);
    if (!here || (colons && *here != 0 && *here != *colons)) break;
    if (*here != 0) colons = here;
    ++entry_lines;
  }
  if (entry_lines == lines.size() && colons) {
    layout.format = *colons == 2 ? DataFormat::kLibffm : DataFormat::kLibsvm;
    const std::optional<uint32_t> fields = *colons == 1 ? FieldsByPlace(lines) : std::nullopt;
    if (fields) layout.format = DataFormat::kLibfm;
    layout.num_fields = fields.value_or(0);
    return layout;
  }
  const std::optional<char> delimiter = DelimiterOf(lines);
  if (!delimiter) {
    return Status(Code::kInvalidArgument,
                  path + ":1: '" + Printable(lines[0]) +
                      "': expected rows of csv (cells between commas, tabs, semicolons or bars), "
                      "criteo, libsvm, libffm or libfm");
  }
  return CsvLayout(lines, *delimiter);
}

}  // namespace hdps
