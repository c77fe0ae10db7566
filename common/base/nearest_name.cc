// Edit distance (Damerau, restricted) over short names.
#include "common/base/nearest_name.h"

#include <algorithm>

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

}  // namespace

std::string NearestName(std::string_view mistyped, const std::vector<std::string>& known) {
  constexpr size_t kNameBytesMax = 64;  // What is longer is no slip, and costs no time.
  if (mistyped.size() > kNameBytesMax) return "";
  std::string nearest;
  size_t fewest = std::max<size_t>(1, mistyped.size() / 3) + 1;
  for (const std::string& name : known) {
    const size_t edits = Distance(mistyped, name);
    if (edits < fewest) {
      fewest = edits;
      nearest = name;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view mistyped, const std::vector<std::string>& known) {
  const std::string nearest = NearestName(mistyped, known);
  return nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?";
}

}  // namespace hdps
