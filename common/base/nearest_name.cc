// Restricted Damerau-Levenshtein distance over short names.
#include "common/base/nearest_name.h"

#include <algorithm>
#include <cctype>

namespace hdps {

namespace {

size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// A longer name is no slip, and the bound keeps the search cheap.
constexpr size_t kNameBytesMax = 64;

std::string Lower(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Splits "deep_loss_l2" into "deep", "loss", "l2".
std::vector<std::string> PartsOf(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (c == '_' || c == '.' || c == '@' || c == '-') {
      if (!parts.back().empty()) parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

// Returns the words of the name in alphabetical order, so auc_pr and pr_auc come out the same.
std::string Sorted(std::string_view name) {
  std::vector<std::string> parts = PartsOf(name);
  std::ranges::sort(parts);
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "_") + part;
  return text;
}

// Returns "lr" for learning_rate, and nothing for a single word.
std::string Initials(std::string_view name) {
  std::string initials;
  for (const std::string& part : PartsOf(name)) initials += part[0];
  return initials.size() < 2 ? "" : initials;
}

// Is true if `name` contains all words of `some`.
bool Holds(std::string_view name, std::string_view some) {
  const std::vector<std::string> all = PartsOf(name), wanted = PartsOf(some);
  return !wanted.empty() && std::ranges::all_of(wanted, [&](const std::string& part) {
    return std::ranges::find(all, part) != all.end();
  });
}

// Returns `"a", "b" or "c"`.
std::string AnyOf(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + ("\"" + names[i] + "\"");
  }
  return text;
}

}  // namespace

std::string NearestName(std::string_view mistyped, const std::vector<std::string>& known) {
  if (mistyped.size() > kNameBytesMax) return "";
  std::string nearest;
  size_t fewest = std::max<size_t>(1, mistyped.size() / 3) + 1;
  const std::string wanted = Lower(mistyped), wanted_parts = Sorted(wanted);
  for (const std::string& name : known) {
    const std::string lower = Lower(name);
    if (wanted == Initials(lower)) return name;
    // Another order of the words counts as one edit.
    const size_t edits =
        std::min(Distance(wanted, lower), Distance(wanted_parts, Sorted(lower)) + 1);
    if (edits < fewest) {
      fewest = edits;
      nearest = name;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view mistyped, const std::vector<std::string>& known) {
  constexpr size_t kNamesMax = 4;
  std::vector<std::string> names = {NearestName(mistyped, known)};
  if (names.front().empty() && mistyped.size() <= kNameBytesMax) {
    names.clear();
    for (const std::string& name : known) {
      if (Holds(Lower(name), Lower(mistyped))) names.push_back(name);
    }
    if (names.size() > kNamesMax) names.resize(kNamesMax);
  }
  if (names.empty() || names.front().empty()) return "";
  return "; did you mean " + AnyOf(names) + "?";
}

}  // namespace hdps
