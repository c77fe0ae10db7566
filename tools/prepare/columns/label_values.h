// The different texts of a column that may be a label.
#pragma once

#include <string>
#include <vector>

#include "tools/prepare/data_profile.h"

namespace hdps {

// Invariant: `texts` are in falling order of how often they come, without those of missing cells.
struct LabelValues {
  static constexpr size_t kTextsMax = 1000;

  // `decimal` as data.decimal.
  LabelValues(const ColumnProfile& column, const std::string& decimal);

  bool two() const { return complete && (texts.size() == 2 || binary_numbers); }
  // So many, each of which comes again, that they may be classes.
  bool MayBeClasses() const;
  // "'a', 'b', 'c', ...".
  std::string Shown(size_t count) const;

  std::vector<FrequentValues::Value> texts;
  bool complete = true;  // All texts are there.
  bool numbers = true;   // All are, and `whole` ones.
  bool whole = true;
  bool binary_numbers = false;  // 0 and 1, or -1 and 1, however they are written.
  uint64_t cells = 0;           // With one of the texts, if complete.
  double distinct = 0;
  double least = 0, most = 0;  // Of numbers.
};

}  // namespace hdps
