// The examples of one step of one worker, as the model takes them.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// In place of a number of classes: labels are not read (predicting), and a row may lack its own.
inline constexpr uint32_t kLabelsNotRead = 0;

// The keys of one sparse feature: example i owns keys[offsets[i] .. offsets[i + 1]).
// Invariant: offsets has num_examples + 1 entries, begins with 0, never decreases, ends at
// keys.size(); weights is empty (all ones) or as long as keys.
struct SparseColumn {
  std::vector<uint32_t> offsets;
  std::vector<Key> keys;
  std::vector<float> weights;
};

struct Batch {
  uint32_t num_examples = 0;
  uint32_t num_labels = 1;     // More than one: of several tasks.
  std::vector<float> labels;   // [num_examples, num_labels]; a class number under softmax.
  std::vector<float> weights;  // [num_examples]: how much each counts; empty: all 1.
  std::vector<Key> groups;     // [num_examples]: whom each belongs to; empty: no column tells.
  // [num_examples]: example i is of the rows[i]-th row of this worker in the step, where a row may
  // give several or be left out as bad; empty: of the i-th.
  std::vector<uint32_t> rows;
  uint32_t num_numeric = 0;
  std::vector<float> numeric;        // [num_examples, num_numeric]
  std::vector<SparseColumn> sparse;  // [sparse features], in the order of FeaturesOf(data).sparse.
  // Bit t: the label of some row was the text `positive[t]` of the label's column, t < 64.
  uint64_t positive_texts = 0;
  uint64_t first_row = 0;  // Position in the epoch of the step's first row, over all workers.
  // Example i is the row at position first_row + own_row + i * row_stride of the epoch, unless rows
  // before it were left out as bad. The same rows have the same positions in any number of parts.
  uint32_t epoch = 0;
  uint32_t own_row = 0, row_stride = 1;
};

}  // namespace hdps
