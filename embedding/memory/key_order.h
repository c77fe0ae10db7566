// Sorts rows by key.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

struct KeyedRow {
  Key key;
  const std::byte* row;
};

// Sorts by ascending key. A radix sort from the last digit on: keys are hashes, so a sort by
// comparison mispredicts every other branch and takes five times as long.
inline void SortByKey(std::vector<KeyedRow>* rows) {
  constexpr size_t kFewRows = 256, kDigits = sizeof(Key), kValues = 256;
  if (rows->size() <= kFewRows) {
    std::ranges::sort(*rows, {}, &KeyedRow::key);
    return;
  }
  const auto digit_of = [](Key key, size_t digit) { return key >> (8 * digit) & (kValues - 1); };
  std::array<std::array<size_t, kValues>, kDigits> counts = {};
  for (const KeyedRow& row : *rows) {
    for (size_t d = 0; d < kDigits; ++d) ++counts[d][digit_of(row.key, d)];
  }
  std::vector<KeyedRow> sorted(rows->size());
  for (size_t d = 0; d < kDigits; ++d) {
    // All keys have the same digit.
    if (counts[d][digit_of(rows->front().key, d)] == rows->size()) continue;
    size_t begin = 0;
    for (size_t& count : counts[d]) begin += std::exchange(count, begin);
    for (const KeyedRow& row : *rows) sorted[counts[d][digit_of(row.key, d)]++] = row;
    rows->swap(sorted);
  }
}

}  // namespace hdps
