// Reads or updates many rows in one call, with the widest vectors of the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "common/base/ids.h"
#include "common/job/spec/table_spec.h"
#include "embedding/memory/row_store.h"
#include "embedding/memory/weight_format.h"
#include "kernels/host/row_update.h"
#include "kernels/vector_width.h"

namespace hdps {

struct OptimizerSpec;

// Fills new rows, or the values read for keys without a row: the first `floats` floats of each.
using RowMaker =
    std::function<void(std::span<const Key> keys, size_t floats, std::byte* const* rows)>;

// Collects keys without a row during a read, and fills in their initial values many at a time.
class MissingRows {
 public:
  MissingRows(const RowMaker& make, size_t floats) : make_(make), floats_(floats) {}
  MissingRows(const MissingRows&) = delete;
  MissingRows& operator=(const MissingRows&) = delete;
  ~MissingRows() { Make(); }

  // Fills `out` when this object is destroyed, or earlier.
  void Add(Key key, float* out) {
    keys_[count_] = key;
    out_[count_] = reinterpret_cast<std::byte*>(out);
    if (++count_ == kBatch) Make();
  }

 private:
  static constexpr size_t kBatch = 64;
  void Make() {
    if (count_ > 0) make_({keys_, count_}, floats_, out_);
    count_ = 0;
  }

  const RowMaker& make_;
  const size_t floats_;
  size_t count_ = 0;
  Key keys_[kBatch];
  std::byte* out_[kBatch];
};

// Rows of a store: [dim weights in `format` | optimizer state | policy's floats], the last two in
// 32 bits. Callers see a row as floats; `initial` makes floats too.
struct StoredRows {
  WeightFormat format;
  uint32_t dim;
  uint64_t rounding_seed;  // Seed for the random rounding of 16-bit weights.
  RowStore& store;
  const RowMaker& initial;

  size_t weight_bytes() const { return WeightBytes(format, dim); }
  // Floats of a row as callers see it.
  size_t row_floats() const { return dim + (store.row_bytes() - weight_bytes()) / sizeof(float); }
};

// Reads the first `row_floats` >= dim floats of every row into out[keys.size() * row_floats].
void ReadRows(VectorWidth width, const StoredRows& rows, std::span<const Key> keys,
              uint32_t row_floats, float* out);

// Updates the row of every key once by spec.record, an optimizer of rows, with values[keys.size() *
// dim] times `scale`; makes missing rows. The result does not depend on `width`, bit for bit.
// Weights of 16 bits are rounded up or down at random, from the seed, the key and the step.
void UpdateRows(VectorWidth width, const OptimizerSpec& spec, const StoredRows& rows,
                std::span<const Key> keys, const float* values, GradientScale scale, int64_t step);

// Initializes the rows of new keys at the addresses `at`; weights of 16 bits are rounded to the
// nearest.
void MakeRows(const StoredRows& rows, std::span<const Key> keys, std::byte* const* at);
// Convert a row between its bytes and floats: [dim] or [dim + floats behind the weights].
void ReadRow(WeightFormat format, uint32_t dim, const std::byte* row, std::span<float> floats);
void WriteRow(WeightFormat format, uint32_t dim, std::span<const float> floats, std::byte* row);

}  // namespace hdps
