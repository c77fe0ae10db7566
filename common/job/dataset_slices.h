// Interprets the tuples of parallel.dataset_strategy.
#pragma once

#include <cstdint>
#include <vector>

#include "common/parallel/slices.h"

namespace hdps {

struct Job;

// Return the tuple of an input; null if it has none. A single tuple belongs to the sparse features
// if the job has any.
const std::vector<uint32_t>* SparseTuple(const Job& job);
const std::vector<uint32_t>* NumericTuple(const Job& job);

// Is true if the tuple cuts an axis other than the examples. Null cuts nothing.
bool CutsColumns(const std::vector<uint32_t>* tuple);

// Returns the order of the numeric columns in which the parts of NumericTuple() are runs: that of
// the axis of an image that it cuts, or that of the columns.
AxisFirst NumericOrder(const Job& job);

}  // namespace hdps
