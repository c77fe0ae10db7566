// Chooses the delimiter and quotes by which most lines have the same number of cells.
#include "tools/prepare/layout/table_layout.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "common/base/outside_text.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "tools/prepare/columns/cell_kinds.h"
#include "tools/prepare/data_profile.h"
#include "common/base/shell_word.h"
#include "worker/data/number.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

using Cells = std::vector<std::string>;
constexpr std::string_view kCommentMarks = "#|%";
constexpr size_t kLinesForTexts = 10;  // Lines needed to recognize a header if all cells are texts.

Status Refused(const std::string& path, const FirstLine& line, const std::string& why) {
  return {Code::kInvalidArgument,
          path + ":" + std::to_string(line.number) + ": '" + Printable(line.text) + "': " + why};
}

bool IsMissingText(const std::string& cell) {
  return std::ranges::find(kMissingTexts, cell) != std::end(kMissingTexts);
}

size_t UsualSize(const std::vector<Cells>& rows) {
  std::map<size_t, size_t> counts;
  for (const Cells& row : rows) ++counts[row.size()];
  return std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; })
      ->first;
}

// A way to split lines, and how many lines have the usual number of cells then.
struct TableCut {
  char delimiter = ',';
  std::string quote = "\"";
  size_t cells = 0, alike = 0;
};

TableCut CutBy(const std::vector<FirstLine>& lines, char delimiter, const std::string& quote) {
  std::vector<Cells> rows;
  for (const FirstLine& line : lines) rows.push_back(CellsOf(line.text, delimiter, quote));
  TableCut cut = {delimiter, quote, UsualSize(rows), 0};
  for (const Cells& row : rows) cut.alike += row.size() == cut.cells ? 1 : 0;
  return cut;
}

// Chooses the quotes by which most lines are alike: the usual ones, unless lines fall apart by
// them.
TableCut CutBy(const std::vector<FirstLine>& lines, char delimiter) {
  TableCut best = CutBy(lines, delimiter, "\"");
  for (const char* quote : {"", "'"}) {
    if (best.alike == lines.size()) break;
    const TableCut cut = CutBy(lines, delimiter, quote);
    if (cut.alike > best.alike && cut.cells > 1) best = cut;
  }
  return best;
}

// Checks for blanks as delimiters. Texts contain blanks too, so they count only if every line is
// split by nothing else, except a header without a name for the first column.
bool AreCutByBlanks(const std::vector<FirstLine>& lines, const TableCut& cut) {
  const size_t first = CellsOf(lines[0].text, cut.delimiter, cut.quote).size();
  const bool short_header = first + 1 == cut.cells && cut.alike + 1 == lines.size();
  return lines.size() > 1 && (cut.alike == lines.size() || short_header);
}

// Returns the delimiter by which most lines have the same number of cells, at least two.
std::optional<TableCut> BestCut(const std::vector<FirstLine>& lines) {
  std::optional<TableCut> best;
  for (const char delimiter : {',', '\t', ';', '|', '\x01', ' '}) {
    const bool there = std::ranges::any_of(lines, [delimiter](const FirstLine& line) {
      return line.text.find(delimiter) != std::string::npos;
    });
    if (!there || (delimiter == ' ' && best)) continue;
    const TableCut cut = CutBy(lines, delimiter);
    if (cut.cells < 2 || 2 * cut.alike < lines.size()) continue;
    if (delimiter == ' ' && !AreCutByBlanks(lines, cut)) continue;
    const bool better =
        !best || cut.alike > best->alike || (cut.alike == best->alike && cut.cells > best->cells);
    if (better) best = cut;
  }
  return best;
}

// Splits by pairs of colons, as MovieLens does; the job gets empty columns between them.
std::optional<TableCut> CutByColons(const std::vector<FirstLine>& lines) {
  const bool all = std::ranges::all_of(
      lines, [](const FirstLine& line) { return line.text.find("::") != std::string::npos; });
  if (!all) return std::nullopt;
  const TableCut cut = CutBy(lines, ':', "");
  if (cut.cells < 3 || cut.cells % 2 == 0 || cut.alike < lines.size()) return std::nullopt;
  return cut;
}

// Is true if nearly all cells of a column below the first line are numbers.
bool IsOverNumbers(const std::vector<Cells>& rows, size_t column) {
  size_t numbers = 0, filled = 0;
  for (size_t r = 1; r < rows.size(); ++r) {
    if (column >= rows[r].size()) continue;
    const std::string& cell = rows[r][column];
    if (cell.empty() || IsMissingText(cell)) continue;
    ++filled;
    const std::optional<CellKind> kind = CellKindOf(cell, ".");
    const bool number = ParseNumber(cell).has_value() || (kind && *kind != CellKind::kList);
    numbers += number ? 1 : 0;
  }
  return filled > 0 && 10 * numbers >= 9 * filled;
}

// Is true for 0, 1, 2, ..., maybe behind an empty name: pandas names unnamed columns so.
bool CountsUp(const Cells& first) {
  const size_t begin = first[0].empty() ? 1 : 0;
  for (size_t c = begin; c < first.size(); ++c) {
    if (first[c] != std::to_string(c - begin)) return false;
  }
  return first.size() - begin >= 3;
}

// Returns why the first line is not a header, or nothing if it is. A header has texts above columns
// of numbers, or, if all cells are texts, names that occur nowhere below. `shift`: its cells belong
// to the columns so many places to the right.
std::string WhyNoHeader(const std::vector<Cells>& rows, size_t shift) {
  const Cells& first = rows[0];
  if (rows.size() < 2) return "there is no other line";
  if (shift == 0 && CountsUp(first) && rows[1] != first) return "";
  bool over_numbers = false, recurs = false;
  for (size_t c = 0; c < first.size(); ++c) {
    if (first[c].empty()) continue;
    if (ParseNumber(first[c])) return "'" + Printable(first[c]) + "' is a number";
    if (IsMissingText(first[c])) return "'" + first[c] + "' stands for a missing cell";
    const std::optional<CellKind> kind = CellKindOf(first[c], ".");
    if (kind) return "'" + Printable(first[c]) + "' is no name";
    over_numbers = over_numbers || IsOverNumbers(rows, c + shift);
    for (size_t r = 1; r < rows.size() && !recurs; ++r) {
      recurs = c + shift < rows[r].size() && rows[r][c + shift] == first[c];
    }
  }
  if (over_numbers) return "";
  const auto empty = static_cast<size_t>(std::ranges::count(first, ""));
  if (empty > 1) return std::to_string(empty) + " of its cells are empty";
  if (recurs) return "its texts come again below";
  if (rows.size() <= kLinesForTexts) return "no column below is of numbers";
  const std::set<std::string> names(first.begin(), first.end());
  return names.size() < first.size() ? "a text stands twice there, over texts" : "";
}

class TableTeller {
 public:
  TableTeller(const std::string& path, const std::vector<FirstLine>& lines, const TableCut& cut)
      : path_(path), lines_(lines), cut_(cut) {
    for (const FirstLine& line : lines) {
      rows_.push_back(CellsOf(line.text, cut.delimiter, cut.quote));
    }
    layout_.delimiter = std::string(1, cut.delimiter);
    layout_.quote = cut.quote;
    layout_.first_cells = rows_[0];
  }

  Result<DataLayout> Tell() {
    HDPS_RETURN_IF_ERROR(CheckFront());
    FindComments();
    HDPS_RETURN_IF_ERROR(FindHeader());
    HDPS_RETURN_IF_ERROR(CheckNames());
    FindDecimal();
    if (cut_.quote != "\"") {
      layout_.notes.push_back(cut_.quote.empty()
                                  ? "quotes do not pair in this file: they are letters like others "
                                    "(data.quote \"\")"
                                  : "cells stand between ' (data.quote)");
    }
    return layout_;
  }

 private:
  // Checks lines in front of a header.
  Status CheckFront() const {
    if (lines_[0].text.starts_with("sep=")) {
      return Refused(path_, lines_[0],
                     "a line for Excel is no header: leave it out, as sed 1d " + ShellWord(path_) +
                         " > rows.csv does");
    }
    const size_t blanks = static_cast<size_t>(std::ranges::count_if(
        lines_, [](const FirstLine& line) { return line.text.find("  ") != std::string::npos; }));
    if (cut_.delimiter == ' ' && 2 * blanks >= lines_.size()) {
      return Refused(path_, lines_[0],
                     "columns between several blanks are not read: put one delimiter there, as tr "
                     "-s ' ' ',' < " +
                         ShellWord(path_) + " > rows.csv does");
    }
    return {};
  }

  void FindComments() {
    for (size_t r = 0; r < rows_.size(); ++r) {
      const bool marked = kCommentMarks.find(lines_[r].text[0]) != kCommentMarks.npos;
      if (marked && rows_[r].size() != cut_.cells) layout_.comment = lines_[r].text.substr(0, 1);
    }
  }

  Status FindHeader() {
    std::vector<Cells> whole;  // Rows of the usual size, and the first line.
    for (const Cells& row : rows_) {
      if (&row == &rows_[0] || row.size() == cut_.cells) whole.push_back(row);
    }
    const std::string& line = lines_[0].text;
    const bool marked = kCommentMarks.find(line[0]) != kCommentMarks.npos;
    if (marked) return FindMarkedHeader(whole);
    if (rows_[0].size() + 1 == cut_.cells) return FindShortHeader(whole);
    if (rows_[0].size() != cut_.cells) {
      layout_.why_no_header = "it has " + std::to_string(rows_[0].size()) + " cells, and others " +
                              std::to_string(cut_.cells);
    } else {
      layout_.why_no_header = WhyNoHeader(whole, 0);
    }
    layout_.header = layout_.why_no_header.empty();
    if (!layout_.header) return NameByNumber();
    layout_.header_line = line;
    for (size_t c = 0; c < rows_[0].size(); ++c) {
      if (!rows_[0][c].empty()) {
        layout_.names.push_back(rows_[0][c]);
        continue;
      }
      layout_.notes.push_back("column " + std::to_string(c + 1) +
                              " has no name in the header, as pandas and R write an index: it is "
                              "passed over");
    }
    return {};
  }

  // Finds a header in a comment, "# a,b,c", as NumPy writes it.
  Status FindMarkedHeader(std::vector<Cells> whole) {
    const std::string& line = lines_[0].text;
    const std::string text = line.substr(std::min(line.find_first_not_of("#|% \t"), line.size()));
    whole[0] = CellsOf(text, cut_.delimiter, cut_.quote);
    layout_.why_no_header = "it is marked as a comment";
    if (whole[0].size() != cut_.cells || !WhyNoHeader(whole, 0).empty()) {
      return rows_.size() > 1 ? CheckLineBelowComments() : NameByNumber();
    }
    layout_.comment = lines_[0].text.substr(0, 1);
    layout_.names = whole[0];
    return {};
  }

  // Refuses a header below comments, because the job reads a header only from the first line.
  Status CheckLineBelowComments() {
    size_t first = 0;
    while (first < rows_.size() && lines_[first].text.starts_with(lines_[0].text[0])) ++first;
    std::vector<Cells> below;
    for (size_t r = first; r < rows_.size(); ++r) {
      if (rows_[r].size() == cut_.cells) below.push_back(rows_[r]);
    }
    if (!below.empty() && rows_[first].size() == cut_.cells && WhyNoHeader(below, 0).empty()) {
      return Refused(path_, lines_[0],
                     "comments stand above the header, which has to be the first line: leave them "
                     "out, as tail -n +" +
                         std::to_string(lines_[first].number) + " " + ShellWord(path_) +
                         " > rows.csv does");
    }
    return NameByNumber();
  }

  // Finds a header with one name less than columns: R's write.table has no name for the row names.
  // The job skips the line as a comment.
  Status FindShortHeader(const std::vector<Cells>& whole) {
    layout_.why_no_header = WhyNoHeader(whole, 1);
    if (!layout_.why_no_header.empty()) {
      layout_.why_no_header = "it has a cell less than others";
      return NameByNumber();
    }
    layout_.comment = lines_[0].text;
    layout_.header_line = lines_[0].text;
    layout_.names = {"row_names"};
    layout_.names.insert(layout_.names.end(), rows_[0].begin(), rows_[0].end());
    layout_.notes.push_back(
        "the header has a name less than there are columns, as R writes names of "
        "rows: the first column is called row_names");
    return {};
  }

  Status NameByNumber() {
    for (size_t c = 0; c < cut_.cells; ++c) {
      layout_.names.push_back("column" + std::to_string(c + 1));
    }
    return {};
  }

  Status CheckNames() const {
    std::map<std::string, size_t> places;
    for (size_t c = 0; c < layout_.names.size(); ++c) {
      const std::string& name = layout_.names[c];
      if (EscapeUntrusted(name) != name) {
        return Refused(path_, lines_[0],
                       "a name of the header is no UTF-8, or has characters that do not print: "
                       "convert the file, as iconv -f LATIN1 -t UTF-8 " +
                           ShellWord(path_) + " > rows.csv does");
      }
      const auto [other, added] = places.emplace(name, c);
      if (added) continue;
      return Refused(path_, lines_[0],
                     "'" + Printable(name) + "' stands twice in the header, as names " +
                         std::to_string(other->second + 1) + " and " + std::to_string(c + 1) +
                         ": give every column a name of its own");
    }
    return {};
  }

  // Finds a decimal comma: a column has only such numbers, and no number has a point.
  void FindDecimal() {
    bool commas = false, points = false;
    for (size_t c = 0; c < cut_.cells; ++c) {
      size_t here = 0, numbers = 0, filled = 0;
      for (size_t r = 1; r < rows_.size(); ++r) {
        if (rows_[r].size() != cut_.cells) continue;
        const std::string& cell = rows_[r][c];
        if (cell.empty() || IsMissingText(cell)) continue;
        ++filled;
        const bool number = ParseNumber(cell).has_value();
        points = points || (number && cell.find('.') != cell.npos);
        numbers += number ? 1 : 0;
        here += CellKindOf(cell, ".") == CellKind::kDecimalComma ? 1 : 0;
      }
      commas = commas || (2 * here > filled && here + numbers == filled);
    }
    if (!commas || points) return;
    layout_.decimal = ",";
    layout_.notes.push_back("numbers have a decimal comma (data.decimal)");
  }

  const std::string& path_;
  const std::vector<FirstLine>& lines_;
  const TableCut cut_;
  std::vector<Cells> rows_;
  DataLayout layout_;
};

}  // namespace

Cells CellsOf(const std::string& line, char delimiter, const std::string& quote) {
  DataSpec data;
  data.delimiter = std::string(1, delimiter);
  data.quote = quote;
  Cells cells;
  for (NamedText& cell : NewRowParser(data, {LabelSpec()})->Values(line))
    cells.push_back(std::move(cell.text));
  return cells;
}

Result<DataLayout> TellTable(const std::string& path, const std::vector<FirstLine>& lines) {
  std::optional<TableCut> cut = CutByColons(lines);
  if (!cut) cut = BestCut(lines);
  if (!cut) {
    return Refused(path, lines[0],
                   "expected rows of csv (cells between commas, tabs, semicolons, bars or blanks), "
                   "criteo, libsvm, libffm or libfm");
  }
  return TableTeller(path, lines, *cut).Tell();
}

}  // namespace hdps
