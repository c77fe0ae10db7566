// Rows and tensors one by one.
#include "embedding/memory/optimizer.h"

#include <glog/logging.h>

#include "embedding/memory/rule_updates.h"
#include "kernels/host/optimizer_loops.h"

namespace hdps {

uint32_t StateFloats(const OptimizerSpec& spec, uint32_t dim) {
  return static_cast<uint32_t>(RecordOf(spec).StateFloats(dim));
}

void InitState(const OptimizerSpec& spec, uint32_t dim, std::span<float> state) {
  DCHECK_EQ(state.size(), StateFloats(spec, dim));
  if (spec.kind == OptimizerKind::kOwn) return LoopsOf(spec).init_state(spec, dim, state);
  WithOptimizer(spec.kind, [&](auto rule) { InitStateBy<decltype(rule)>(spec, dim, state); });
}

void UpdateRow(const OptimizerSpec& spec, int64_t step, std::span<const float> gradient,
               std::span<float> weights, std::span<float> state) {
  if (spec.kind == OptimizerKind::kOwn) {
    return LoopsOf(spec).update_row(spec, step, gradient, weights, state);
  }
  WithRowOptimizer(spec.kind, [&](auto rule) {
    UpdateRowBy<decltype(rule)>(spec, step, gradient, weights, state);
  });
}

void UpdateTensor(const OptimizerSpec& spec, std::span<const ChunkUpdate> chunks) {
  if (spec.kind == OptimizerKind::kOwn) return LoopsOf(spec).update_tensor(spec, chunks);
  WithOptimizer(spec.kind, [&](auto rule) {
    using Rule = decltype(rule);
    if constexpr (Rule::kWholeTensors) {
      UpdateTensorBy<Rule>(spec, chunks);
    } else {
      LOG(FATAL) << Rule::kName << " changes rows one by one";
    }
  });
}

}  // namespace hdps
