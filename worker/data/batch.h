// The examples of one step of one worker, as the model takes them.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/manifest_parts.h"

namespace hdps {

// Used in place of a number of classes: labels are not read (predicting), and a row may lack its
// own.
inline constexpr uint32_t kLabelsNotRead = 0;

// Keys of one sparse feature: example i owns keys[offsets[i] .. offsets[i + 1]).
// Invariant: offsets has num_examples + 1 entries, begins with 0, never decreases, and ends at
// keys.size(); weights is empty (all ones) or as long as keys.
struct SparseColumn {
  std::vector<uint32_t> offsets;
  std::vector<Key> keys;
  std::vector<float> weights;
};

struct Batch {
  uint32_t num_examples = 0;
  uint32_t num_labels = 1;     // More than one if there are several tasks.
  std::vector<float> labels;   // [num_examples, num_labels]; a class number under softmax.
  std::vector<float> weights;  // [num_examples]: weight of each example; empty: all 1.
  // [num_examples]: group of each example; empty: there is no group column.
  std::vector<Key> groups;
  // [num_examples]: ids of each example from their column's vocab_size on, which have no keys here;
  // empty: no column has ids.
  std::vector<uint32_t> unknown_ids;
  // [num_examples]: example i belongs to row rows[i] of this worker's rows in the step; a row may
  // give several examples, or none if it is bad. Empty: example i belongs to row i.
  std::vector<uint32_t> rows;
  uint32_t num_numeric = 0;
  std::vector<float> numeric;        // [num_examples, num_numeric]
  std::vector<SparseColumn> sparse;  // [sparse features], in the order of FeaturesOf(data).sparse.
  // Bit t is set if some row's label is the text `positive[t]` of the label's column, t < 64.
  uint64_t positive_texts = 0;
  uint64_t first_row = 0;  // Position in the epoch of the step's first row, over all workers.
  // Position of example i in the epoch: first_row + own_row + i * row_stride, unless bad rows
  // before it were left out. A row's position does not depend on the number of parts.
  uint32_t epoch = 0;
  uint32_t own_row = 0, row_stride = 1;
  // These are the messages of a topic that the step has, by this worker's partitions; empty without
  // a topic.
  std::vector<PartitionSpan> messages;
};

}  // namespace hdps
