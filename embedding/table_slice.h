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

// Says where a table's part lies in rows: at which bytes its weights and its rest begin.
struct PartPlace {
  size_t weights, rest;
};

struct TableSlice::Impl {
  // `shared` receives the table's part of its rows, which lies at `place`.
  Impl(const TableSpec& table_spec, TableId table_id, uint64_t job_seed, const RowPlacement& home,
       VectorWidth vectors, std::shared_ptr<SharedRows> shared, const PartPlace& place);

  std::span<float> State(std::byte* row) const {
    return {reinterpret_cast<float*>(row + part().rest), rule_floats};
  }
  const RowPart& part() const { return rows->parts[number]; }
  // Returns the table's share of bytes of the rows; those of all tables add up to `bytes`.
  size_t ShareOf(size_t bytes) const;
  // Converts a row's own part, or only its weights, to floats, as callers see them.
  void Expand(const std::byte* row, std::span<float> floats) const { ReadRow(part(), row, floats); }

  // Fills the first values of rows, as a RowMaker does.
  void InitialRows(std::span<const Key> keys, size_t rest_at, std::byte* const* at) const;

  // Calls use(i, row of keys[i]) for every key in order, and makes missing rows. If rows spill to
  // disk, a row is valid only during its call.
  template <typename Use>
  void ForEachRow(std::span<const Key> keys, int64_t step, const Use& use) {
    rows->store.InParts(keys, true, [&](size_t begin, std::span<const Key> some, RowStore& memory) {
      memory.ForEachMade(
          some, RowVersion(step),
          [&](std::span<const Key> new_keys, std::byte* const* at) {
            MakeRows(rows->parts, new_keys, at);
          },
          [&](size_t i, std::byte* row) { use(begin + i, row); });
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
