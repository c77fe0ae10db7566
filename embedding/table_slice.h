// The members of a slice, for the files that implement it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/job/spec/table_spec.h"
#include "embedding/memory/gradient_sums.h"
#include "embedding/memory/optimizer.h"
#include "embedding/memory/row_batches.h"
#include "embedding/memory/row_policy.h"
#include "embedding/memory/update_terms.h"
#include "embedding/memory/weight_format.h"
#include "embedding/row_eviction.h"
#include "embedding/shared_rows.h"
#include "embedding/table.h"

namespace hdps {

struct TableSlice::Impl {
  // `shared` receives the table's part of its rows, which begins at byte `offset`.
  Impl(const TableSpec& table_spec, TableId table_id, uint64_t job_seed, const RowPlacement& home,
       VectorWidth vectors, std::shared_ptr<SharedRows> shared, size_t offset);

  std::span<float> State(std::byte* own) const {
    return {reinterpret_cast<float*>(own + weight_bytes), rule_floats};
  }
  const RowPart& part() const { return rows->parts[number]; }
  const std::byte* Own(const std::byte* row) const { return row + part().offset; }
  std::byte* Own(std::byte* row) const { return row + part().offset; }
  // Returns the table's share of bytes of the rows; those of all tables add up to `bytes`.
  size_t ShareOf(size_t bytes) const;
  // Converts a row's own part, or only its weights, to floats, as callers see them.
  void Expand(const std::byte* row, std::span<float> floats) const {
    ReadRow(spec.weights, dim, Own(row), floats);
  }

  // Fills the initial weights of rows, and their initial state if `floats` exceeds the weights.
  void InitialRows(std::span<const Key> keys, size_t floats, std::byte* const* rows) const;
  void InitialRow(Key key, std::span<float> out) const {
    auto* const row = reinterpret_cast<std::byte*>(out.data());
    InitialRows({&key, 1}, out.size(), &row);
  }

  // Calls use(i, own part of the row of keys[i]) for every key in order, and makes missing rows. If
  // rows spill to disk, a part is valid only during its call.
  template <typename Use>
  void ForEachRow(std::span<const Key> keys, int64_t step, const Use& use) {
    rows->store.InParts(keys, true, [&](size_t begin, std::span<const Key> some, RowStore& memory) {
      memory.ForEachMade(
          some, RowVersion(step),
          [&](std::span<const Key> new_keys, std::byte* const* at) {
            MakeRows(rows->parts, new_keys, at);
          },
          [&](size_t i, std::byte* row) { use(begin + i, Own(row)); });
    });
  }

  // The gradients of a step, one for each key, as the rule is given them.
  struct Combined {
    std::span<const Key> keys;
    const float* values;  // [keys * dim]
    GradientScale scale;
  };
  // `*numbered`: sums of parts with the same keys, or null; becomes the table's own if it adds up.
  Combined Combine(std::span<const Gradients> parts, const GradientTerms& terms, float scale,
                   bool whole_tensors, const GradientSums** numbered);
  void AddUp(std::span<const Gradients> parts, const GradientSums* numbered) {
    numbered == nullptr ? sums.Combine(parts, dim) : sums.CombineLike(*numbered, parts, dim);
  }
  void ApplyGradients(const OptimizerSpec& rule, const Combined& gradients, int64_t step,
                      bool first_epoch);
  void ApplyToTensors(const OptimizerSpec& rule, int64_t step, TensorPeers* peers);
  // Turns `sums` into the gradients that the rule is given: scaled, with penalties, clipped.
  void FinishSums(float scale, const GradientTerms& terms);
  void FindAdmitted(std::span<const Key> keys, const float* values, int64_t step, bool first_epoch);
  PolicyRows RowsOfPolicy();
  void Evict(std::span<const Key> keys, int64_t step);

  const TableSpec spec;
  const TableId id;
  const uint64_t seed;
  const uint32_t dim, first_column;  // Of rows here; under kColumn a part of the table's.
  const uint32_t rule_floats;
  const size_t row_floats;  // [weights | state of the rule | state of the policy]
  const size_t weight_bytes;

  const VectorWidth width;
  const RowMaker make;

  RowPolicy policy;
  const std::shared_ptr<SharedRows> rows;
  const size_t number;  // Of its part among those of `rows`.
  uint64_t refused = 0;
  // Members to reuse their memory.
  GradientSums sums;
  std::vector<Key> admitted_keys;
  std::vector<float> admitted_values;
  std::vector<float> penalized;     // Weights of the rows of `sums`.
  std::vector<uint32_t> newcomers;  // Positions of keys without a row.
};

}  // namespace hdps
