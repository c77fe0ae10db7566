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

// out[keys.size() * row_floats]: the first `row_floats` floats of every row, whose weights are
// fp32.
void ReadRows(VectorWidth width, const RowStore& store, std::span<const Key> keys,
              uint32_t row_floats, const RowMaker& initial, float* out);

// One update of every key's row by spec.kind, which is not LAMB; rows are [dim | state], those that
// are missing are made. values[keys.size() * dim] times `scale`. Which width is used changes no
// bit.
void UpdateRows(VectorWidth width, const OptimizerSpec& spec, uint32_t dim, RowStore& store,
                std::span<const Key> keys, const float* values, GradientScale scale, int64_t step,
                const RowMaker& initial);

// The same where weights have 16 bits, in `format`: out[keys.size() * dim], the weights; and
// updates whose rounding is drawn from `rounding_seed`, the key and the step. `floats` of a maker's
// row are 32 bits each; what it makes is rounded to the nearest.
struct NarrowRows {
  WeightFormat format;
  uint32_t dim;
  uint64_t rounding_seed;
  RowStore& store;
  const RowMaker& initial;
};
void ReadNarrowRows(VectorWidth width, const NarrowRows& rows, std::span<const Key> keys,
                    float* out);
void UpdateNarrowRows(VectorWidth width, const OptimizerSpec& spec, const NarrowRows& rows,
                      std::span<const Key> keys, const float* values, GradientScale scale,
                      int64_t step);
// A row as floats, [dim] or [dim + floats behind the weights], from and to its bytes.
void ReadRow(WeightFormat format, uint32_t dim, const std::byte* row, std::span<float> floats);
void WriteRow(WeightFormat format, uint32_t dim, std::span<const float> floats, std::byte* row);

}  // namespace hdps
