// Collects the different texts of a column that may be a label.
#pragma once

#include <string>
#include <vector>

#include "tools/prepare/data_profile.h"

namespace hdps {

// The different texts of a column and what they have in common.
//
// Invariant: `texts` are in falling order of their counts, without texts of missing cells.
struct LabelValues {
  static constexpr size_t kTextsMax = 1000;

  // `decimal` is the setting data.decimal.
  LabelValues(const ColumnProfile& column, const std::string& decimal);

  bool two() const { return complete && (texts.size() == 2 || binary_numbers); }
  // Is true if the texts may be classes: all are known, and on average each stands in two cells or
  // more.
  bool MayBeClasses() const;
  // Returns the first texts: "'a', 'b', 'c', ...".
  std::string Shown(size_t count) const;

  std::vector<FrequentValues::Value> texts;
  bool complete = true;  // `texts` has all texts of the column.
  bool numbers = true;   // All texts are numbers, and with `whole`, whole ones.
  bool whole = true;
  bool binary_numbers = false;  // The texts are 0 and 1, or -1 and 1, in any spelling.
  uint64_t cells = 0;           // Cells that have one of the texts, if complete.
  double distinct = 0;
  double least = 0, most = 0;  // Smallest and largest number.
};

}  // namespace hdps
