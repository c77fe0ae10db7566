// Updates rows and tensors one by one.
#include "embedding/memory/optimizer.h"

#include <glog/logging.h>

#include "embedding/memory/rule_updates.h"
#include "kernels/host/optimizer_loops.h"

namespace hdps {
namespace {

// Calls use(rule) with the rule of a built-in optimizer of whole tensors.
template <typename Use>
void WithTensorRule(const OptimizerSpec& spec, const Use& use) {
  WithOptimizer(spec.record->kind, [&](auto rule) {
    if constexpr (decltype(rule)::kWholeTensors) {
      use(rule);
    } else {
      LOG(FATAL) << decltype(rule)::kName << " changes rows one by one";
    }
  });
}

}  // namespace

uint32_t StateFloats(const OptimizerSpec& spec, uint32_t dim) {
  return static_cast<uint32_t>(RecordOf(spec).StateFloats(dim));
}

void InitState(const OptimizerSpec& spec, uint32_t dim, std::span<float> state) {
  DCHECK_EQ(state.size(), StateFloats(spec, dim));
  if (spec.record->is_own()) return LoopsOf(spec).init_state(spec, dim, state);
  WithOptimizer(spec.record->kind,
                [&](auto rule) { InitStateBy<decltype(rule)>(spec, dim, state); });
}

void UpdateRow(const OptimizerSpec& spec, int64_t step, std::span<const float> gradient,
               std::span<float> weights, std::span<float> state) {
  if (spec.record->is_own()) {
    return LoopsOf(spec).update_row(spec, step, gradient, weights, state);
  }
  WithRowOptimizer(spec.record->kind, [&](auto rule) {
    UpdateRowBy<decltype(rule)>(spec, step, gradient, weights, state);
  });
}

void UpdateTensor(const OptimizerSpec& spec, std::span<const ChunkUpdate> chunks) {
  if (spec.record->is_own()) return LoopsOf(spec).update_tensor(spec, chunks);
  WithTensorRule(spec, [&](auto rule) { UpdateTensorBy<decltype(rule)>(spec, chunks); });
}

TensorSums FindChunkDirection(const OptimizerSpec& spec, const ChunkUpdate& chunk,
                              std::span<float> direction) {
  if (spec.record->is_own()) {
    return LoopsOf(spec).find_chunk_direction(spec, chunk, direction);
  }
  TensorSums sums;
  WithTensorRule(spec, [&](auto rule) {
    sums = FindChunkDirectionBy<decltype(rule)>(spec, chunk, direction);
  });
  return sums;
}

void DescendChunk(const OptimizerSpec& spec, const TensorSums& of_tensor,
                  std::span<const float> direction, std::span<float> weights) {
  if (spec.record->is_own()) {
    return LoopsOf(spec).descend_chunk(spec, of_tensor, direction, weights);
  }
  WithTensorRule(spec, [&](auto rule) {
    DescendChunkBy<decltype(rule)>(spec, of_tensor, direction, weights);
  });
}

}  // namespace hdps
