// The bags of a batch by rows: the distinct rows of each feature, and the bags that use them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/platform/executor.h"
#include "kernels/host/embedding_bag.h"
#include "kernels/host/gather_sum.h"
#include "kernels/row_spans.h"
#include "kernels/vector_width.h"

namespace hdps {

enum class Pooling : uint8_t;

// One feature's bags over its own distinct rows. Local row u is the u-th of them, in the order of
// the table.
struct FeatureRow {
  std::vector<uint32_t> rows;  // [unique] the table's row of each local row.

  // Forward. If every bag has at most one key, and all factors are 1, `by_bag` [num_bags] holds
  // each bag's local row, or `unique` for an empty bag. Otherwise it is empty, and bag b owns
  // entries [key_begin[b], key_begin[b + 1]) of `key_row` and `key_factor`.
  std::vector<uint32_t> by_bag;
  std::vector<uint32_t> key_begin;  // [num_bags + 1]
  std::vector<uint32_t> key_row;    // [keys + kGatherAhead] local rows, then zeros.
  // [keys]: weight, times 1 / (keys of the bag) under kMean; empty: ones.
  std::vector<float> key_factor;

  // Backward. Local row u is in the bags of entries [row_begin[u], row_begin[u + 1]), in order of
  // bag.
  std::vector<uint32_t> row_begin;  // [unique + 1]
  std::vector<uint32_t> row_bag;    // [keys]
  std::vector<float> row_factor;    // [keys], or empty: ones
  // Scratch: one bit for each row of the table from `used_first` on, set if the row is used, and
  // the number of used rows before each word of bits.
  uint32_t used_first = 0;
  std::vector<uint64_t> used;
  std::vector<uint32_t> used_before;

  // The rows are contiguous in the table, and no earlier feature has any of them.
  bool in_place = false;

  size_t unique() const { return rows.size(); }
  // Returns the rows in `table` [num_rows, dim] if they are contiguous there and in one piece; null
  // if not, or if there are none.
  template <typename Float>
  Float* InPlace(const RowSpans<Float>& table, uint32_t dim) const {
    return in_place && !rows.empty() ? table.InOnePiece(size_t{rows[0]} * dim, unique() * dim)
                                     : nullptr;
  }
  // Calls run(memory, first, count) for each contiguous run of the rows' floats in such a table;
  // `first` counts from the first local row.
  template <typename Float, typename Run>
  void ForEachRun(const RowSpans<Float>& table, uint32_t dim, const Run& run) const {
    for (size_t begin = 0, end = 1; begin < rows.size(); begin = end++) {
      while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
      table.ForEachPart(size_t{rows[begin]} * dim, (end - begin) * dim,
                        [&](Float* memory, size_t first, size_t count) {
                          run(memory, begin * dim + first, count);
                        });
    }
  }
};

// The features of one batch.
//
// Invariant: fields() depends on the bags only. Memory is kept from batch to batch.
class FeatureRows {
 public:
  // Loads features over one table of `num_rows` rows. Keys are copied, so the spans need not stay
  // valid.
  void Load(std::span<const Bags> features, Pooling pooling, uint32_t num_rows, Executor& executor);
  std::span<const FeatureRow> fields() const { return {fields_.data(), num_fields_}; }
  // Is true if every row of the table is in place in some field, so nothing else needs to be
  // cleared or copied.
  bool covers_table() const { return covers_table_; }
  // Is true if no row belongs to two fields.
  bool disjoint() const { return disjoint_; }
  // Is true if disjoint() and every row of the table belongs to a field.
  bool divides_table() const { return divides_table_; }

 private:
  void FindInPlace(uint32_t num_rows);

  const VectorWidth width_ = WidestVectors();
  std::vector<FeatureRow> fields_;
  size_t num_fields_ = 0;
  bool covers_table_ = false, disjoint_ = false, divides_table_ = false;
  std::vector<bool> taken_;  // [num_rows] scratch of FindInPlace.
};

}  // namespace hdps
