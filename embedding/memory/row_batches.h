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

class RowPolicy;
struct OptimizerSpec;

// Fills the weights of new rows, or of those read for keys without a row, at weights[k], and what
// stands behind a weight at weights[k] + rest_at in bytes; rest_at 0: weights alone.
using RowMaker =
    std::function<void(std::span<const Key> keys, size_t rest_at, std::byte* const* weights)>;

// Collects keys without a row during a read, and fills in their initial values many at a time.
class MissingRows {
 public:
  // `rest_at`: as RowMaker has it.
  MissingRows(const RowMaker& make, size_t rest_at) : make_(make), rest_at_(rest_at) {}
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
    if (count_ > 0) make_({keys_, count_}, rest_at_, out_);
    count_ = 0;
  }

  const RowMaker& make_;
  const size_t rest_at_;
  size_t count_ = 0;
  Key keys_[kBatch];
  std::byte* out_[kBatch];
};

// One table's part of the rows of a store: `dim` weights in `format`, and the rest, optimizer state
// and then the policy's floats in 32 bits. The parts of other tables may lie between these two.
// Callers see a part as floats; `initial` makes floats too.
struct RowPart {
  WeightFormat format;
  uint32_t dim;
  uint64_t rounding_seed;  // Seed for the random rounding of 16-bit weights.
  size_t offset;           // The weights begin at this byte of the row.
  size_t rest;             // The rest begins at this byte, behind the weights.
  size_t bytes;            // Length of both.
  const RowMaker& initial;

  size_t weight_bytes() const { return WeightBytes(format, dim); }
  size_t rest_bytes() const { return bytes - weight_bytes(); }
  size_t end() const { return rest + rest_bytes(); }
  // Floats of a part as callers see it.
  size_t row_floats() const { return dim + rest_bytes() / sizeof(float); }
};

// A read of one part of rows.
struct PartRead {
  const RowPart& part;
  uint32_t row_floats;  // At least the dim: the first floats of the part.
  float* out;           // [keys * row_floats]
};
// Reads parts of the row of every key, with one look-up for all parts.
void ReadRows(VectorWidth width, const RowStore& store, std::span<const Key> keys,
              std::span<const PartRead> reads);

// An update of one part of rows.
struct PartUpdate {
  const RowPart& part;
  const OptimizerSpec& spec;  // The table's optimizer of rows, as of this step.
  const float* values;        // [keys * dim]
  GradientScale scale;
  const RowPolicy& policy;  // Its floats are told of the update.
};
// Updates parts of the row of every key once, with one look-up for all parts: each by the record of
// its optimizer, with its values times its scale. Makes missing rows, with all of `parts`. The
// result does not depend on `width`, bit for bit. Weights of 16 bits are rounded up or down at
// random, from the seed, the key and the step.
void UpdateRows(VectorWidth width, RowStore& store, std::span<const RowPart> parts,
                std::span<const Key> keys, int64_t step, std::span<const PartUpdate> updates);

// Initializes the new rows of keys at the addresses `at`, with all of `parts`; weights of 16 bits
// are rounded to the nearest.
void MakeRows(std::span<const RowPart> parts, std::span<const Key> keys, std::byte* const* at);
// Convert a part of a row between its bytes and floats: [dim] or [dim + rest].
void ReadRow(const RowPart& part, const std::byte* row, std::span<float> floats);
void WriteRow(const RowPart& part, std::span<const float> floats, std::byte* row);

}  // namespace hdps
