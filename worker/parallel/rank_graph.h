// A job's model cut for one rank of a strategy: layers of the rank's width, and conversions between
// those that lie differently.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/parallel/strategy.h"
#include "worker/parallel/matrix_part.h"

namespace hdps {

// Where a tensor of the rank's model lies in that of the job.
struct TensorSlice {
  uint32_t whole = 0;  // Number of the tensor in the job's model.
  // Of its first extent, and of the product of the others; a tensor of one extent is one row.
  Cut rows, columns;
  // The ranks that have the same slice and each a summand of its gradient, ascending.
  std::vector<uint32_t> summed_by;
  // The first rank that has the slice: it speaks for those that have it too.
  uint32_t first_holder = 0;
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

// Which rows of the step a layer computes: a part of those of all workers.
struct RowsOfLayer {
  uint32_t part = 0, parts = 1;
  friend bool operator==(const RowsOfLayer&, const RowsOfLayer&) = default;
};

// A layer that brings its input to another layout, and the gradient back.
struct ConversionSpec {
  std::string layer;                          // Its name in the rank's job.
  std::vector<Layout> forward, backward;      // One layout: nothing to do.
  ColumnShape input_columns, output_columns;  // Of the whole matrices.
};

struct RankMeeting;  // rank_layers.h

// Invariant: rows, conversions and tensors are in the order of job.model.layers and of their
// tensors. The graphs of all ranks have the same layers in the same order, so that they meet.
struct RankGraph {
  uint32_t rank = 0, workers = 1;
  Job job;                        // All but the model's layers is the whole job's.
  std::vector<RowsOfLayer> rows;  // [layers]
  std::shared_ptr<const std::vector<ConversionSpec>> conversions;
  std::vector<TensorSlice> tensors;
  std::shared_ptr<RankMeeting> meeting;  // Where its conversions meet those of the other ranks.
  // Embeddings are cut by features: they, and what else reads the batch, take all rows of the step.
  bool reads_whole_batch = false;
};

// The word of a conversion among the kinds of layers, and of a product whose inputs are cut.
inline constexpr char kConvertKind[] = "convert", kProductKind[] = "cut_product";

// `job` has whole layers, one entry of the strategy each. kInvalidArgument names a layer that has
// fewer columns, inputs or features than parts, or cannot be cut so.
Result<RankGraph> CutForRank(const Job& job, const Strategy& strategy, uint32_t rank);

}  // namespace hdps
