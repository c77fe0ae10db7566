// Compares the job's names with the cells of a file's first line.
#include "worker/data/header_check.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "common/base/nearest_name.h"
#include "common/job/spec/data_spec.h"

namespace hdps {
namespace {

constexpr size_t kNamesShownMax = 3;

std::string Quoted(const std::string& text) { return "'" + Printable(text) + "'"; }

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// Returns "pixel" for "pixel12"; the whole name if it does not end with a number.
std::string_view WithoutNumber(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789");
  return last == name.npos ? name : name.substr(0, last + 1);
}

// Maps names to their positions in a header.
class NameIndex {
 public:
  explicit NameIndex(const std::vector<NamedText>& header) {
    for (uint32_t i = 0; i < header.size(); ++i) {
      exact_[header[i].text].push_back(i);
      lower_[Lower(header[i].text)].push_back(i);
    }
  }
  // Returns exact matches, or else matches that ignore case; empty if there are none.
  const std::vector<uint32_t>& Find(const std::string& name) const {
    if (const auto found = exact_.find(name); found != exact_.end()) return found->second;
    const auto found = lower_.find(Lower(name));
    return found == lower_.end() ? none_ : found->second;
  }

 private:
  static std::string Lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  }
  std::map<std::string, std::vector<uint32_t>> exact_, lower_;
  const std::vector<uint32_t> none_;
};

Status Missing(const std::string& place, const std::string& holder,
               const std::vector<std::string>& missing, const std::vector<std::string>& unused) {
  const std::string hint = DidYouMean(missing[0], unused);
  std::string text = place + ": " + holder + " has no column " + Quoted(missing[0]) + hint;
  if (missing.size() > 1) {
    text += (hint.empty() ? ", and " : "; and ") + std::to_string(missing.size() - 1) +
            " more of the job are not there";
  }
  text += ": expected all names of data.columns, in any order";
  if (!unused.empty()) {
    text += "; " + holder + " also has ";
    for (size_t i = 0; i < unused.size() && i < kNamesShownMax; ++i) {
      text += (i == 0 ? "" : ", ") + Quoted(unused[i]);
    }
    if (unused.size() > kNamesShownMax) {
      text += " and " + std::to_string(unused.size() - kNamesShownMax) + " more";
    }
  }
  return {Code::kInvalidArgument, text};
}

}  // namespace

bool MayBeAbsent(ColumnType type) {
  return type == ColumnType::kLabel || type == ColumnType::kWeight || type == ColumnType::kGroup;
}

bool NamesItsColumns(const std::vector<NamedText>& first_line,
                     const std::vector<std::string>& columns) {
  size_t named = 0;
  for (const std::string& column : columns) {
    named += std::ranges::any_of(first_line, [&](const NamedText& cell) {
      return !column.empty() && SameName(column, cell.text);
    });
  }
  return 2 * named > first_line.size() && named >= std::min<size_t>(2, first_line.size());
}

CellOrder OrderOf(const std::vector<ColumnSpec>& columns, const std::vector<ColumnType>& absent) {
  CellOrder order;
  for (const ColumnSpec& column : columns) {
    const bool there = column.has_cell() && std::ranges::find(absent, column.type) == absent.end();
    order.cell_of_column.push_back(there ? order.num_cells++ : CellOrder::kAbsent);
  }
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].has_cell()) continue;
    const auto of = std::ranges::find(columns, columns[c].from, &ColumnSpec::name);
    if (of == columns.end()) continue;  // A checked job has no such column.
    order.cell_of_column[c] = order.cell_of_column[static_cast<size_t>(of - columns.begin())];
  }
  return order;
}

Result<HeaderMatch> MatchHeader(const std::string& place, const std::vector<NamedText>& header,
                                const std::vector<ColumnSpec>& columns, bool labels_read,
                                const std::string& holder) {
  const NameIndex index(header);
  HeaderMatch match;
  match.order.num_cells = static_cast<uint32_t>(header.size());
  match.as_job = header.size() == columns.size();
  std::vector<bool> taken(header.size());
  std::vector<std::string> missing;
  for (size_t c = 0; c < columns.size(); ++c) {
    const std::vector<uint32_t>& cells = index.Find(columns[c].cell());
    if (cells.size() > 1) {
      return Status(Code::kInvalidArgument,
                    place + ": column " + Quoted(columns[c].cell()) + " stands twice in " + holder +
                        ", as columns " + std::to_string(cells[0] + 1) + " and " +
                        std::to_string(cells[1] + 1) + ": expected every name once");
    }
    match.order.cell_of_column.push_back(cells.empty() ? CellOrder::kAbsent : cells[0]);
    match.as_job = match.as_job && !cells.empty() && cells[0] == c;
    if (!cells.empty()) taken[cells[0]] = true;
    const bool needed =
        columns[c].type != ColumnType::kSkip && (labels_read || !MayBeAbsent(columns[c].type));
    if (cells.empty() && needed) missing.push_back(columns[c].cell());
  }
  for (size_t i = 0; i < header.size(); ++i) {
    if (!taken[i]) match.passed_over.push_back(header[i].text);
  }
  if (!missing.empty()) return Missing(place, holder, missing, match.passed_over);
  return match;
}

Status CompareHeader(const std::string& place, const std::vector<NamedText>& header,
                     std::vector<std::string>* warnings) {
  std::string differing;
  size_t num_differing = 0;
  for (size_t i = 0; i < header.size(); ++i) {
    const NamedText& cell = header[i];
    if (cell.name.empty() || SameName(cell.name, cell.text)) continue;
    const auto elsewhere = std::find_if(header.begin(), header.end(), [&](const NamedText& other) {
      return SameName(other.text, cell.name);
    });
    const bool numbered = WithoutNumber(cell.name) != cell.name &&
                          SameName(WithoutNumber(cell.name), WithoutNumber(cell.text));
    if (elsewhere != header.end() && !numbered) {
      return {Code::kInvalidArgument,
              place + ": column " + std::to_string(i + 1) + " of the header is " +
                  Quoted(cell.text) + ", but the job has " + Quoted(cell.name) +
                  " there, which is " + "column " + std::to_string(elsewhere - header.begin() + 1) +
                  " of the header: expected data.columns in the order of the file"};
    }
    if (++num_differing > kNamesShownMax) continue;
    differing += (num_differing == 1 ? "" : ", ") + Quoted(cell.text) + " for " + Quoted(cell.name);
  }
  if (num_differing == 0) return {};
  if (num_differing > kNamesShownMax) {
    differing += " and " + std::to_string(num_differing - kNamesShownMax) + " more";
  }
  warnings->push_back(place + ": the header has other names than the job: " + differing);
  return {};
}

}  // namespace hdps
