// Many rows read or updated in one call, with the widest vectors of the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "common/ids.h"
#include "common/job.h"
#include "embedding/row_rules.h"
#include "embedding/row_store.h"
#include "kernels/vector_width.h"

namespace hdps {

// What fills a row, or its reading, whose key has none: floats as many as are wanted of it.
using RowMaker = std::function<void(Key, std::span<float>)>;

// out[keys.size() * row_floats]: the first `row_floats` floats of every row.
void ReadRows(VectorWidth width, const RowStore& store, std::span<const Key> keys,
              uint32_t row_floats, const RowMaker& initial, float* out);

// One update of every key's row by spec.kind, which is not LAMB; rows are [dim | state], those that
// are missing are made. values[keys.size() * dim] times `scale`. Which width is used changes no
// bit.
void UpdateRows(VectorWidth width, const OptimizerSpec& spec, uint32_t dim, RowStore& store,
                std::span<const Key> keys, const float* values, GradientScale scale, int64_t step,
                const RowMaker& initial);

}  // namespace hdps
