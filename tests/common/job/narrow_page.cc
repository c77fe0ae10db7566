// Rows are shortened cell by cell, the longest first, until they fit.
#include "tests/common/job/narrow_page.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hdps {

namespace {

constexpr size_t kColumnsMax = 160, kWrapAt = 120, kCellWordsMax = 40, kSentenceMax = 90;
constexpr const char* kBelow = "see below";

using Cells = std::vector<std::string>;

// The cells of "| a | b |". A bar behind a backslash is text.
Cells CellsOf(const std::string& row) {
  Cells cells;
  std::string cell;
  for (size_t i = 1; i < row.size(); ++i) {
    if (row[i] != '|' || row[i - 1] == '\\') {
      cell += row[i];
      continue;
    }
    const size_t from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
    cells.push_back(from == cell.npos ? "" : cell.substr(from, to - from + 1));
    cell.clear();
  }
  return cells;
}

std::string RowOf(const Cells& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row += " " + cell + " |";
  return row;
}

size_t WordsIn(const std::string& text) {
  return text.empty() ? 0 : 1 + static_cast<size_t>(std::count(text.begin(), text.end(), ' '));
}

bool Fits(const Cells& cells) {
  return RowOf(cells).size() <= kColumnsMax &&
         std::all_of(cells.begin(), cells.end(),
                     [](const std::string& cell) { return WordsIn(cell) <= kCellWordsMax; });
}

// The first sentence, if it says something alone: "sync: one update a step" is one of several.
std::string Shortened(const std::string& cell) {
  const size_t end = std::min(cell.find(". "), cell.find("; "));
  if (end == cell.npos || end > kSentenceMax) return kBelow;
  const std::string sentence = cell.substr(0, end);
  const size_t colon = sentence.find(": ");
  const bool names_a_value = colon != sentence.npos && sentence.find(' ') > colon;
  return names_a_value || WordsIn(sentence) < 3 ? kBelow : sentence + " (more below)";
}

// `text` in lines of at most kWrapAt columns; those behind the first begin with `indent`.
std::string Wrapped(const std::string& text, const std::string& indent) {
  std::string lines, line;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, to - from);
    if (!line.empty() && line.size() + 1 + word.size() > kWrapAt) {
      lines += line + "\n";
      line = indent + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    from = to + 1;
  }
  return lines + line + "\n";
}

// A bar is text outside of a table.
std::string WithoutBackslashes(std::string text) {
  for (size_t at = text.find("\\|"); at != text.npos; at = text.find("\\|")) text.erase(at, 1);
  return text;
}

// Shortens `cells` until they fit; returns what stands under the table of them.
std::string Narrow(const Cells& head, Cells* cells) {
  const Cells whole = *cells;
  while (!Fits(*cells)) {
    const auto longest = std::max_element(
        cells->begin() + 1, cells->end(), [](const std::string& a, const std::string& b) {
          return (a == kBelow ? 0 : a.size()) < (b == kBelow ? 0 : b.size());
        });
    if (*longest == kBelow) break;
    const size_t at = static_cast<size_t>(longest - cells->begin());
    *longest = *longest == whole[at] ? Shortened(whole[at]) : kBelow;
  }
  std::string note;
  for (size_t i = cells->size(); i-- > 1;) {  // The meaning stands last, and comes first here.
    if ((*cells)[i] == whole[i]) continue;
    note +=
        " " + (i + 1 == cells->size() ? "" : "*" + head[i] + "*: ") + WithoutBackslashes(whole[i]);
  }
  if (note.empty()) return "";
  return Wrapped("- **" + whole[0] + "**" + note + (note.ends_with('.') ? "" : "."), "  ");
}

}  // namespace

std::string NarrowPage(const std::string& page) {
  std::string narrow, notes;
  Cells head;
  for (size_t from = 0; from < page.size();) {
    const size_t to = std::min(page.find('\n', from), page.size());
    const std::string line = page.substr(from, to - from);
    from = to + 1;
    if (!line.starts_with("|")) {
      if (!notes.empty()) narrow += "\n" + std::exchange(notes, "");
      head.clear();
      narrow +=
          line.size() > kWrapAt ? Wrapped(line, line.starts_with("- ") ? "  " : "") : line + "\n";
      continue;
    }
    Cells cells = CellsOf(line);
    if (head.empty()) head = cells;
    if (!line.starts_with("|--")) notes += Narrow(head, &cells);
    narrow += line.starts_with("|--") ? line + "\n" : RowOf(cells) + "\n";
  }
  return notes.empty() ? narrow : narrow + "\n" + notes;
}

}  // namespace hdps
