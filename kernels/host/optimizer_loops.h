// The loops of an optimizer that a program brings: its rule, compiled into each loop of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/dtype.h"
#include "common/job/optimizers/optimizer_record.h"
#include "kernels/host/row_slab.h"
#include "kernels/vector_width.h"

namespace hdps {

struct OptimizerSettings;
struct RowUpdate;

struct RowUpdating;  // embedding/memory/row_loops.h
struct ChunkUpdate;  // embedding/memory/optimizer.h; only passed on here.
struct TensorSums;   // Likewise.

// Made by OwnOptimizer<Rule>() of embedding/own_optimizer.h. Loops that the rule cannot have are
// null: the three of tensors and chunks, or, if it updates whole tensors, all others but
// init_state.
struct OptimizerLoops {
  void (*init_state)(const OptimizerSettings& settings, size_t dim, std::span<float> state);
  void (*update_row)(const OptimizerSettings& settings, int64_t step,
                     std::span<const float> gradient, std::span<float> weights,
                     std::span<float> state);
  void (*update_tensor)(const OptimizerSettings& settings, std::span<const ChunkUpdate> chunks);
  TensorSums (*find_chunk_direction)(const OptimizerSettings& settings, const ChunkUpdate& chunk,
                                     std::span<float> direction);
  void (*descend_chunk)(const OptimizerSettings& settings, const TensorSums& of_tensor,
                        std::span<const float> direction, std::span<float> weights);
  // For rows of servers, by the format of their weights.
  void (*update_fp32_rows)(VectorWidth width, const RowUpdating& updating);
  void (*update_fp16_rows)(VectorWidth width, const RowUpdating& updating);
  void (*update_bf16_rows)(VectorWidth width, const RowUpdating& updating);
  // Updates rows that a worker keeps in the host's memory.
  bool (*update_slab)(const RowUpdate& update, std::span<const uint32_t> slots,
                      const float* gradients, size_t first, size_t count, const RowSlab& slab);
};

// Returns the loops of a program's own optimizer. Requires: `spec` names one.
inline const OptimizerLoops& LoopsOf(const OptimizerSpec& spec) { return *spec.record->loops; }

}  // namespace hdps
