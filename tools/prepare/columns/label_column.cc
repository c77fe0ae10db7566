// Finds the label by its name, its values and its position.
#include "tools/prepare/columns/label_column.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/nearest_name.h"
#include "tools/prepare/columns/column_names.h"
#include "tools/prepare/columns/label_values.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

std::string NamesOf(const DataProfile& profile, const std::vector<size_t>& columns) {
  constexpr size_t kShownMax = 8;
  std::string names;
  for (size_t i = 0; i < columns.size() && i < kShownMax; ++i) {
    names += (i == 0 ? "'" : ", '") + Printable(profile.columns[columns[i]].name) + "'";
  }
  return columns.size() > kShownMax ? names + ", ..." : names;
}

bool IsSpokenFor(const DataWish& wish, const std::string& name) {
  for (const auto* names : {&wish.categorical, &wish.numeric, &wish.multi, &wish.skip}) {
    if (std::ranges::find(*names, name) != names->end()) return true;
  }
  return name == wish.group || name == wish.weight;
}

// "target" is the item that a history leads to, unless it has two values like a label.
bool IsTargetItem(const DataProfile& train, const ColumnProfile& column) {
  const std::vector<std::string> words = WordsOfName(column.name);
  const auto tells = [](const ColumnProfile& other) {
    const std::vector<std::string> of = WordsOfName(other.name);
    return std::ranges::any_of(of, [](const auto& w) { return w == "history" || w == "hist"; });
  };
  return !words.empty() && words[0] == "target" && column.distinct.distinct() > 2 &&
         std::ranges::any_of(train.columns, tells);
}

// Columns that may be the label, by the reason.
struct Candidates {
  std::vector<size_t> two;         // Columns with two values.
  std::vector<size_t> named;       // Two values and a label's name.
  std::vector<size_t> named_more;  // A label's name, and more values that can be learned.
  std::vector<size_t> rated;       // A rating's name, and more values, all numbers.
};

Candidates FindCandidates(const DataProfile& train, const DataWish& wish) {
  Candidates found;
  for (size_t c = 0; c < train.columns.size(); ++c) {
    const ColumnProfile& column = train.columns[c];
    if (IsSpokenFor(wish, column.name)) continue;
    const LabelValues values(column, train.layout.decimal);
    const bool named = NamesLabel(column.name) && !IsTargetItem(train, column);
    if (values.two()) {
      found.two.push_back(c);
      if (named) found.named.push_back(c);
    } else if (values.distinct > 2 && named && (values.MayBeClasses() || values.numbers)) {
      found.named_more.push_back(c);
    } else if (values.distinct > 2 && values.numbers && NamesRating(column.name)) {
      found.rated.push_back(c);
    }
  }
  return found;
}

// Returns the only column, the last one, or the first one of 0 and 1: the positions in most tables.
size_t OneOfTwoValues(const DataProfile& train, const Candidates& found) {
  if (found.two.size() == 1) return found.two[0];
  if (found.two.empty()) return kNoColumn;
  if (found.two.back() + 1 == train.columns.size()) return found.two.back();
  const bool first =
      found.two.front() == 0 && LabelValues(train.columns[0], train.layout.decimal).binary_numbers;
  return first ? 0 : kNoColumn;
}

Result<size_t> ByName(const DataProfile& train, const std::string& name) {
  for (size_t c = 0; c < train.columns.size(); ++c) {
    if (train.columns[c].name == name) return c;
  }
  return NoSuchColumn(train, "label", name);
}

Status InDoubt(const DataProfile& train, const Candidates& found) {
  std::string why = "no column has two values, or the name of a label or a rating";
  const auto of = [&](const char* what, const std::vector<size_t>& columns) {
    why = what + NamesOf(train, columns);
  };
  if (found.named_more.size() > 1) of("names of labels have ", found.named_more);
  if (!found.two.empty()) of("of two values are ", found.two);
  if (found.named.size() > 1) of("of two values, with the name of a label, are ", found.named);
  return {Code::kInvalidArgument,
          train.files[0] + ": no column is the label beyond doubt: " + why +
              "; give it with --label=NAME, or say --task=ranking where all rows are positive ones "
              "of a user and an item"};
}

}  // namespace

UserAndItem FindUserAndItem(const DataProfile& train, const DataWish& wish) {
  UserAndItem found;
  if (!HasNamedColumns(train.layout.format)) return found;
  std::vector<size_t> others;
  for (size_t c = 0; c < train.columns.size(); ++c) {
    const ColumnProfile& column = train.columns[c];
    const bool numeric = std::ranges::find(wish.numeric, column.name) != wish.numeric.end();
    const bool skipped = std::ranges::find(wish.skip, column.name) != wish.skip.end();
    const bool several = column.distinct.distinct() > 2;
    if (numeric || skipped || !several || column.name == wish.label) continue;
    if (found.user == kNoColumn && NamesUser(column.name)) {
      found.user = c;
    } else if (found.item == kNoColumn && (NamesItem(column.name) || IsTargetItem(train, column))) {
      found.item = c;
    } else if (column.whole || column.numbers.count() == 0) {
      others.push_back(c);
    }
  }
  // If a ranking is asked for and no column has such a name, the first columns are meant.
  if (wish.task == TaskKind::kPositivesOnly) {
    for (size_t* of : {&found.user, &found.item}) {
      if (*of != kNoColumn || others.empty()) continue;
      *of = others.front();
      others.erase(others.begin());
    }
  }
  return found;
}

Status NoSuchColumn(const DataProfile& train, const std::string& flag, const std::string& name) {
  std::vector<std::string> known;
  for (const ColumnProfile& column : train.columns) known.push_back(column.name);
  std::string message = "--" + flag + "=" + name + ": there is no such column in " + train.files[0];
  const std::vector<std::string>& first = train.layout.first_cells;
  const auto cell = std::ranges::find(first, name);
  if (!train.layout.header && cell != first.end()) {
    return {
        Code::kInvalidArgument,
        message + ": its first line has it, as cell " + std::to_string(cell - first.begin() + 1) +
            ", but does not look like a header (" + train.layout.why_no_header +
            "); as it is, the columns are column1, column2, ...: expected different texts there, "
            "over columns of numbers"};
  }
  return {Code::kInvalidArgument, message + DidYouMean(name, known)};
}

Result<size_t> FindLabel(const DataProfile& train, const DataWish& wish) {
  if (!HasNamedColumns(train.layout.format)) {
    if (wish.label.empty() || wish.label == "label") return size_t{0};
    return Status(Code::kInvalidArgument, "--label=" + wish.label +
                                              ": the label of this format stands "
                                              "first in a row: expected no --label");
  }
  if (!wish.label.empty()) return ByName(train, wish.label);
  const Candidates found = FindCandidates(train, wish);
  const bool pairs = FindUserAndItem(train, wish).both();
  if (wish.task == TaskKind::kPositivesOnly) {
    if (found.named.size() == 1) return found.named[0];
    if (!wish.positive.empty() && found.rated.size() == 1) return found.rated[0];
    return kNoColumn;
  }
  if (found.named.size() == 1) return found.named[0];
  if (!found.named.empty()) return InDoubt(train, found);
  // A label's name counts even if its values are odd.
  if (found.named_more.size() == 1) return found.named_more[0];
  if (!found.named_more.empty()) return InDoubt(train, found);
  if (pairs && found.rated.size() == 1) return found.rated[0];
  const size_t two = OneOfTwoValues(train, found);
  if (two != kNoColumn) {
    // Beside a user and an item, a column of two words is a feature, but 0 and 1 are outcomes.
    if (!pairs || LabelValues(train.columns[two], train.layout.decimal).binary_numbers) return two;
  }
  if (found.rated.size() == 1 && found.two.empty()) return found.rated[0];
  if (pairs) return kNoColumn;
  return InDoubt(train, found);
}

}  // namespace hdps
