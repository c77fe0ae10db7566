// Cuts a job's model for one rank of a strategy into layers of the rank's width, and conversions
// between layers with different layouts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/parallel/slices.h"
#include "common/parallel/strategy.h"
#include "worker/parallel/matrix_part.h"

namespace hdps {

// Position of a tensor of the rank's model in the job's tensor.
struct TensorSlice {
  uint32_t whole = 0;  // Number of the tensor in the job's model.
  // Ranges of the first extent and of the product of the others; a tensor of one extent is one row.
  Cut rows, columns;
  AxisFirst row_order;  // The order of the whole tensor's rows in which `rows` is a run.
  // The ranks that hold the same slice, each with a summand of its gradient; ascending.
  std::vector<uint32_t> summed_by;
  // The first rank that holds the slice; it stores the slice for all of them.
  uint32_t first_holder = 0;
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

// The rows of the step that a layer computes: a part of the rows of all workers.
struct RowsOfLayer {
  uint32_t part = 0, parts = 1;
  friend bool operator==(const RowsOfLayer&, const RowsOfLayer&) = default;
};

// Describes a layer that brings its input to another layout, and the gradient back.
struct ConversionSpec {
  std::string layer;                          // Name in the rank's job.
  std::vector<Layout> forward, backward;      // With one layout there is nothing to do.
  ColumnShape input_columns, output_columns;  // Columns of the whole matrices.
};

struct LaneRows;  // rank_layers.h

// Invariant: `rows`, `conversions` and `tensors` follow the order of job.model.layers and, within a
// layer, of its tensors. The graphs of all ranks have the same layers in the same order, so that
// their exchanges match.
struct RankGraph {
  uint32_t rank = 0, workers = 1;
  Job job;                        // The whole job, but with the rank's layers.
  std::vector<RowsOfLayer> rows;  // [layers]
  std::shared_ptr<const std::vector<ConversionSpec>> conversions;
  std::vector<TensorSlice> tensors;
  std::shared_ptr<LaneRows> lane_rows;  // Rows of the current step, which the conversions need.
  // Features or numeric columns are cut, so all layers that read the batch take all rows of the
  // step. If numeric columns are, job.data.kept_numbers has those of this rank.
  bool reads_whole_batch = false;
};

// Kinds of the layers for a conversion, and for a product whose inputs are cut.
inline constexpr char kConvertKind[] = "convert", kProductKind[] = "cut_product";

// Cuts the job for a rank. `job` has whole layers, and the strategy one entry for each.
// kInvalidArgument names a layer that cannot be cut so, or that has fewer columns, inputs or
// features than parts.
Result<RankGraph> CutForRank(const Job& job, const Strategy& strategy, uint32_t rank);

}  // namespace hdps
