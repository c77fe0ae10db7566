// The initial weights of rows: a function of (seed, table, key) and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/ids.h"
#include "kernels/vector_width.h"

namespace hdps {

struct InitSpec;

// Fills the first `dim` floats at rows[k], for every key, with the weights of columns
// `first_column` and following. A weight does not depend on the length of the row, nor, bit for
// bit, on `width`.
void InitRows(VectorWidth width, const InitSpec& init, uint64_t seed, TableId table,
              std::span<const Key> keys, size_t first_column, size_t dim, std::byte* const* rows);
void InitRow(const InitSpec& init, uint64_t seed, TableId table, Key key, std::span<float> weights);

}  // namespace hdps
