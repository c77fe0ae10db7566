// The bags of a batch seen from their rows: the distinct rows of each feature, and who uses them.
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

  // Forward. With one key at most in every bag, and all factors 1, `by_bag` [num_bags] holds the
  // bag's local row, or `unique` for an empty bag; it is empty otherwise, and only then bag b owns
  // entries [key_begin[b], key_begin[b + 1]) of `key_row` and `key_factor`.
  std::vector<uint32_t> by_bag;
  std::vector<uint32_t> key_begin;  // [num_bags + 1]
  std::vector<uint32_t> key_row;    // [keys + kGatherAhead] local rows, then zeros.
  std::vector<float> key_factor;    // [keys]: weight, over the bag's keys under kMean; empty: ones.

  // Backward: local row u is in the bags of entries [row_begin[u], row_begin[u + 1]), in order of
  // bag.
  std::vector<uint32_t> row_begin;  // [unique + 1]
  std::vector<uint32_t> row_bag;    // [keys]
  std::vector<float> row_factor;    // [keys], or empty: ones
  // Scratch, of the table's rows from `used_first` on: a bit a row that is used, and how many of
  // them come before each word of bits.
  uint32_t used_first = 0;
  std::vector<uint64_t> used;
  std::vector<uint32_t> used_before;

  // The rows stand side by side in the table, and no feature before this one has any of them.
  bool in_place = false;

  size_t unique() const { return rows.size(); }
  // Where the rows lie side by side in place, of a table with rows [num_rows, dim]; null where they
  // do not, and where there are none.
  template <typename Float>
  Float* InPlace(const RowSpans<Float>& table, uint32_t dim) const {
    return in_place && !rows.empty() ? table.InOnePiece(size_t{rows[0]} * dim, unique() * dim)
                                     : nullptr;
  }
  // run(memory, first, count) for floats of the rows that lie side by side in such a table; `first`
  // counts from that of the first local row.
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

// Invariant: fields() depends on the bags alone. Its memory is kept from batch to batch.
class FeatureRows {
 public:
  // Features over one table of `num_rows` rows. Keys are copied: the spans need not stay.
  void Load(std::span<const Bags> features, Pooling pooling, uint32_t num_rows, Executor& executor);
  std::span<const FeatureRow> fields() const { return {fields_.data(), num_fields_}; }
  // Every row of the table is in place in some field: nothing else needs to be cleared or copied.
  bool covers_table() const { return covers_table_; }
  // No row belongs to two fields.
  bool disjoint() const { return disjoint_; }
  // The same, and every row of the table belongs to one.
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
