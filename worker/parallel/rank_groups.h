// Groups of the ranks that share tensors of a cut model.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "worker/collective/collective.h"
#include "worker/parallel/rank_graph.h"

namespace hdps {

// Invariant: tensors with the same number of sharing ranks are shared by the same ranks, which
// differ only in the highest digits of their numbers, the parts of the rows.
class RankGroups {
 public:
  // Forms the groups; all ranks must call it at the same time. `group` has all ranks and outlives
  // the groups.
  static Result<std::unique_ptr<RankGroups>> Form(const RankGraph& graph, Collective& group);

  // The ranks whose gradients of the tensor are summed, this one included; null: this rank is
  // alone.
  Collective* Of(size_t tensor) const { return of_tensor_[tensor]; }
  // Number of ranks that share the tensor. Tensors with the same number travel together.
  uint32_t SharedBy(size_t tensor) const { return shared_by_[tensor]; }

 private:
  RankGroups() = default;

  std::vector<std::unique_ptr<Collective>> formed_;
  std::vector<Collective*> of_tensor_;  // [tensors]
  std::vector<uint32_t> shared_by_;     // [tensors]
};

}  // namespace hdps
