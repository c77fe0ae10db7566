// Many rows read or updated in one call, with the widest vectors of the machine.
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

// Fills the rows, or what is read in place of rows, of keys that have none: the first `floats` of
// each.
using RowMaker =
    std::function<void(std::span<const Key> keys, size_t floats, std::byte* const* rows)>;

// Keys without a row in a list that is read: what stands for their rows is made many at a time.
class MissingRows {
 public:
  MissingRows(const RowMaker& make, size_t floats) : make_(make), floats_(floats) {}
  MissingRows(const MissingRows&) = delete;
  MissingRows& operator=(const MissingRows&) = delete;
  ~MissingRows() { Make(); }

  // `out` is filled when this is destroyed, or before.
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

// Rows of a store: [dim weights in `format` | state | what a policy keeps], the last two in 32
// bits. To everybody outside a row is floats, and so is what `initial` makes.
struct StoredRows {
  WeightFormat format;
  uint32_t dim;
  uint64_t rounding_seed;  // Of weights in 16 bits: their rounding is drawn from it.
  RowStore& store;
  const RowMaker& initial;

  size_t weight_bytes() const { return WeightBytes(format, dim); }
  // Of a row to those outside.
  size_t row_floats() const { return dim + (store.row_bytes() - weight_bytes()) / sizeof(float); }
};

// out[keys.size() * row_floats]: the first `row_floats` >= dim floats of every row.
void ReadRows(VectorWidth width, const StoredRows& rows, std::span<const Key> keys,
              uint32_t row_floats, float* out);

// One update of every key's row by spec.record, which changes rows; those that are missing are
// made. values[keys.size() * dim] times `scale`. Which width is used changes no bit. Weights of 16
// bits are rounded up or down at random, from the seed, the key and the step.
void UpdateRows(VectorWidth width, const OptimizerSpec& spec, const StoredRows& rows,
                std::span<const Key> keys, const float* values, GradientScale scale, int64_t step);

// Rows of new keys, `at` where they lie; weights of 16 bits are rounded to the nearest.
void MakeRows(const StoredRows& rows, std::span<const Key> keys, std::byte* const* at);
// A row as floats, [dim] or [dim + floats behind the weights], from and to its bytes.
void ReadRow(WeightFormat format, uint32_t dim, const std::byte* row, std::span<float> floats);
void WriteRow(WeightFormat format, uint32_t dim, std::span<const float> floats, std::byte* row);

}  // namespace hdps
