// Registers an optimizer that a program brings, written like those of common/job/optimizers.
#pragma once

#include "common/job/optimizers/optimizers.h"
#include "embedding/memory/row_loops.h"
#include "embedding/memory/rule_updates.h"
#include "kernels/host/optimizer_loops.h"
#include "kernels/host/slab_loop.h"

namespace hdps {

template <typename Rule>
constexpr OptimizerLoops MakeOptimizerLoops() {
  OptimizerLoops loops = {};
  loops.init_state = InitStateBy<Rule>;
  if constexpr (Rule::kWholeTensors) {
    loops.update_tensor = UpdateTensorBy<Rule>;
    loops.find_chunk_direction = FindChunkDirectionBy<Rule>;
    loops.descend_chunk = DescendChunkBy<Rule>;
  } else {
    loops.update_row = UpdateRowBy<Rule>;
    loops.update_fp32_rows = UpdateRowsBy<Rule, WeightFormat::kFp32>;
    loops.update_fp16_rows = UpdateRowsBy<Rule, WeightFormat::kFp16>;
    loops.update_bf16_rows = UpdateRowsBy<Rule, WeightFormat::kBf16>;
    loops.update_slab = UpdateSlabRowsBy<Rule>;
  }
  return loops;
}

template <typename Rule>
inline constexpr OptimizerLoops kOwnLoops = MakeOptimizerLoops<Rule>();

template <typename Rule>
constexpr OptimizerRecord MakeOwnRecord() {
  OptimizerRecord record = RecordOfRule<Rule>(OptimizerKind::kOwn);
  record.loops = &kOwnLoops<Rule>;
  return record;
}

template <typename Rule>
inline constexpr OptimizerRecord kOwnRecord = MakeOwnRecord<Rule>();

// Returns the record of `Rule` for OptimizerRegistry::Add. `Rule` is a struct with the parts that
// optimizer_rule.h lists. It is compiled here into the loops over server rows in 32 and 16 bits,
// over dense weights and over rows kept at workers, for every vector width; not for CUDA.
template <typename Rule>
constexpr const OptimizerRecord* OwnOptimizer() {
  return &kOwnRecord<Rule>;
}

}  // namespace hdps
