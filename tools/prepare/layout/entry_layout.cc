// Splits lines into words: a label, then entries with one or two colons.
#include "tools/prepare/layout/entry_layout.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>

#include "common/base/shell_word.h"
#include "worker/data/number.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

constexpr std::string_view kBlanks = " \t\r";

bool AllDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

struct Words {
  std::string_view label;
  std::vector<std::string_view> entries;  // Up to a '#'.
};

std::string_view NextWord(std::string_view* rest, std::string_view between) {
  rest->remove_prefix(std::min(rest->find_first_not_of(between), rest->size()));
  const std::string_view word = rest->substr(0, rest->find_first_of(between));
  rest->remove_prefix(word.size());
  return word;
}

// Splits a line like the parser of these formats: also by commas if the label ends at one,
// otherwise by blanks alone.
Words WordsOf(std::string_view line) {
  Words words;
  std::string_view rest = line;
  words.label = NextWord(&rest, kBlanks);
  std::string_view between = kBlanks;
  const size_t comma = words.label.find(',');
  const bool blanks = rest.find_first_not_of(kBlanks) != rest.npos;
  if (comma != words.label.npos && (!blanks || comma + 1 == words.label.size())) {
    between = ", \t\r";
    rest = line;
    words.label = NextWord(&rest, between);
  }
  for (std::string_view word = NextWord(&rest, between); !word.empty() && word[0] != '#';
       word = NextWord(&rest, between)) {
    words.entries.push_back(word);
  }
  return words;
}

// Returns the number of colons in all entries: 0, 1 or 2; nothing if the entries differ or one is
// invalid.
std::optional<int> ColonsOf(const Words& words) {
  std::optional<int> colons;
  for (const std::string_view word : words.entries) {
    if (word.find_first_not_of("0123456789:.eE+-") != word.npos) return std::nullopt;
    const auto here = static_cast<int>(std::ranges::count(word, ':'));
    if (here > 2 || (colons && *colons != here)) return std::nullopt;
    colons = here;
  }
  return colons.value_or(0);
}

// Is true if a line without blanks has only times of day behind its first cell: 08:30, 23:59:01.
bool HasTimes(std::string_view line) {
  const Words words = WordsOf(line);
  return line.find(' ') == line.npos &&
         std::ranges::all_of(words.entries, [](std::string_view word) {
           const bool seconds = word.size() == 8 && word[5] == ':';
           return (word.size() == 5 || seconds) && word[2] == ':' && word < "24" &&
                  word.substr(3) < "60";
         });
}

// Returns the number of entries if each place has its own indexes: libfm has the same fields
// everywhere.
std::optional<uint32_t> FieldsByPlace(const std::vector<FirstLine>& lines) {
  constexpr size_t kFieldsMax = 256;
  std::vector<std::set<std::string>> at_place;
  for (const FirstLine& line : lines) {
    const Words words = WordsOf(line.text);
    const size_t fields = words.entries.size();
    if (at_place.empty()) at_place.resize(fields);
    if (fields != at_place.size() || fields < 2 || fields > kFieldsMax) return std::nullopt;
    for (size_t f = 0; f < fields; ++f) {
      const std::string_view entry = words.entries[f];
      at_place[f].emplace(entry.substr(0, entry.find(':')));
    }
  }
  // Each index belongs to one place, and some place has several; dense vectors have one each.
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

// Recognizes Vowpal Wabbit: bars before namespaces, and numbers and a tag before the first.
bool IsVowpal(std::string_view line) {
  const size_t bar = line.find('|');
  if (bar == line.npos) return false;
  std::string_view front = line.substr(0, bar);
  for (std::string_view word = NextWord(&front, kBlanks); !word.empty();
       word = NextWord(&front, kBlanks)) {
    if (!ParseNumber(word) && word[0] != '\'') return false;
  }
  for (size_t at = bar; at != line.npos; at = line.find('|', at + 1)) {
    if (at > 0 && line[at - 1] != ' ') return false;
    // Cells of a table: a | b | c.
    if (at > bar && at + 1 < line.size() && line[at + 1] == ' ') return false;
  }
  return TrimBlanks(line.substr(bar)).find(' ') != line.npos;
}

bool IsQuery(std::string_view line) {
  const Words words = WordsOf(line);
  return !words.entries.empty() && words.entries[0].starts_with("qid:");
}

bool HasColon(std::string_view word) { return word.find(':') != word.npos; }

// Recognizes several labels of one row: "1,3 5:0.2".
bool HasSeveralLabels(std::string_view line) {
  const Words words = WordsOf(line);
  return words.label.find(',') != words.label.npos && !HasColon(words.label) &&
         words.label.find_first_not_of("0123456789,-+.") == words.label.npos &&
         !words.entries.empty() && std::ranges::all_of(words.entries, HasColon);
}

// Recognizes rows without a label: "0:7:1 1:9:1".
bool HasNoLabel(std::string_view line) {
  const Words words = WordsOf(line);
  Words all = {"", words.entries};
  all.entries.push_back(words.label);
  return HasColon(words.label) && ColonsOf(all).value_or(0) > 0;
}

// Recognizes a label and entries with a text as index or field: "1 user:7:1" or "1 age:3".
bool HasTextIndexes(std::string_view line) {
  const Words words = WordsOf(line);
  bool texts = false;
  for (const std::string_view word : words.entries) {
    const size_t last = word.rfind(':');
    if (last == word.npos || !ParseNumber(word.substr(last + 1))) return false;
    texts = texts || word.substr(0, last).find_first_not_of("0123456789:") != word.npos;
  }
  return texts && ParseNumber(words.label) && line.find_first_of("\t;|\"") == line.npos;
}

// Recognizes names and numbers without a label in front: "user:7 item:3 label:1".
bool AreNamedNumbers(std::string_view line) {
  const Words words = WordsOf(line);
  std::vector<std::string_view> all = words.entries;
  all.push_back(words.label);
  return all.size() > 1 && std::ranges::all_of(all, [](std::string_view word) {
           const size_t colon = word.find(':');
           return colon != word.npos && colon > 0 && ParseNumber(word.substr(colon + 1)) &&
                  word.substr(0, colon).find_first_of("0123456789\t;|\",") == word.npos;
         });
}

bool IsRemark(std::string_view line) { return line.starts_with('#'); }

struct Variant {
  bool (*is)(std::string_view line);
  const char* what;
  const char* mend;
};
constexpr Variant kVariants[] = {
    {IsVowpal, "lines of Vowpal Wabbit",
     "write a csv with a column a namespace, or libffm with a number for each of them"},
    {IsQuery, "entries of libsvm with queries (qid)",
     "write a csv with the query in a column of type group, or leave qid out: sed 's/ "
     "qid:[0-9]*//'"},
    {HasSeveralLabels, "entries with several labels a row",
     "write a row for each label, or a csv with a column a label (model.tasks)"},
    {HasNoLabel, "entries without a label in front",
     "put one there: 0 for rows to predict, as sed 's/^/0 /' does"},
    {HasTextIndexes, "entries whose index or field is a text",
     "number them, for an index and a field are whole numbers; or write a csv"},
    {AreNamedNumbers, "numbers with names", "write a csv with a column a name"},
};

// Refuses lines that, except for comments, are all of one variant.
Status CheckVariants(const std::string& path, const std::vector<FirstLine>& rows) {
  for (const Variant& variant : kVariants) {
    const bool all =
        std::ranges::all_of(rows, [&](const FirstLine& line) { return variant.is(line.text); });
    if (!all) continue;
    return {Code::kInvalidArgument, path + ":" + std::to_string(rows[0].number) + ": '" +
                                        Printable(rows[0].text) + "': these look like " +
                                        variant.what + ", which are not read: " + variant.mend};
  }
  return {};
}

// Recognizes bare indexes, whose number differs between rows: "1 3 11".
bool AreBareIndexes(const std::vector<FirstLine>& rows) {
  std::set<size_t> counts;
  for (const FirstLine& line : rows) {
    const Words words = WordsOf(line.text);
    const std::optional<double> label = ParseNumber(words.label);
    if (!label || (*label != 0 && *label != 1 && *label != -1)) return false;
    if (line.text.find(',') != std::string::npos) return false;
    if (!std::ranges::all_of(words.entries, AllDigits)) return false;
    counts.insert(words.entries.size());
  }
  return counts.size() > 2;
}

}  // namespace

Result<std::optional<DataLayout>> TellEntries(const std::string& path,
                                              const std::vector<FirstLine>& lines) {
  std::vector<FirstLine> rows;
  for (const FirstLine& line : lines) {
    if (!IsRemark(line.text)) rows.push_back(line);
  }
  if (rows.empty()) return std::optional<DataLayout>();
  HDPS_RETURN_IF_ERROR(CheckVariants(path, rows));
  std::optional<int> colons;
  for (const FirstLine& line : rows) {
    const Words words = WordsOf(line.text);
    const std::optional<int> here = ColonsOf(words);
    if (!here || !ParseNumber(words.label)) return std::optional<DataLayout>();
    if (*here == 0 && !words.entries.empty()) {
      if (!colons && AreBareIndexes(rows)) break;
      return std::optional<DataLayout>();
    }
    if (*here != 0 && colons && *here != *colons) return std::optional<DataLayout>();
    if (*here != 0) colons = here;
  }
  const bool times =
      std::ranges::all_of(rows, [](const FirstLine& line) { return HasTimes(line.text); });
  if (times || (!colons && !AreBareIndexes(rows))) return std::optional<DataLayout>();
  if (rows.size() < lines.size()) {
    const auto remark =
        std::ranges::find_if(lines, [](const FirstLine& line) { return IsRemark(line.text); });
    return Status(
        Code::kInvalidArgument,
        path + ":" + std::to_string(remark->number) + ": '" + Printable(remark->text) +
            "': a line of remarks is no row of this format: leave it out, as grep -v '^#' " +
            ShellWord(path) + " > rows.txt does");
  }
  DataLayout layout;
  layout.format = colons == 2 ? DataFormat::kLibffm : DataFormat::kLibsvm;
  const std::optional<uint32_t> fields = colons == 1 ? FieldsByPlace(rows) : std::nullopt;
  if (fields) layout.format = DataFormat::kLibfm;
  layout.num_fields = fields.value_or(0);
  return std::optional(layout);
}

}  // namespace hdps
