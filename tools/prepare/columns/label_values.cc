// Collects texts and numbers of labels.
#include "tools/prepare/columns/label_values.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "worker/data/number.h"
#include "worker/data/row.h"

namespace hdps {

LabelValues::LabelValues(const ColumnProfile& column, const std::string& decimal) {
  double missing = 0;
  for (const auto& value : column.frequent.Top(kTextsMax + std::size(kMissingTexts))) {
    const bool none = std::ranges::find(kMissingTexts, value.text) != std::end(kMissingTexts);
    missing += none ? 1 : 0;
    if (!none) texts.push_back(value);
  }
  distinct = column.distinct.distinct() - missing;
  complete = column.frequent.error() == 0 && texts.size() <= kTextsMax;
  for (const auto& value : texts) cells += value.count;
  uint64_t others = 0;
  for (const auto& [text, count] : column.missing) others += count;
  numbers = column.numbers.count() > 0 && column.numbers.count() + others == column.filled();
  whole = column.whole;
  least = column.numbers.min();
  most = column.numbers.max();
  if (!numbers || !complete) return;
  std::set<double> different;
  for (const auto& value : texts) different.insert(NumberOf(value.text, decimal).value_or(NAN));
  const bool known = std::ranges::all_of(
      different, [](double number) { return number == 0 || number == 1 || number == -1; });
  binary_numbers = different.size() == 2 && known;
}

bool LabelValues::MayBeClasses() const {
  return complete && texts.size() >= 2 && (!numbers || whole) &&
         cells >= 2 * uint64_t{texts.size()};
}

std::string LabelValues::Shown(size_t count) const {
  std::string shown;
  for (size_t i = 0; i < texts.size() && i < count; ++i) {
    shown += (i == 0 ? "'" : ", '") + Printable(texts[i].text) + "'";
  }
  return shown + (texts.size() > count ? ", ..." : "");
}

}  // namespace hdps
