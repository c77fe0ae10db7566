// The ranks that share the tensors of a cut model.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "worker/collective/collective.h"
#include "worker/parallel/rank_graph.h"

namespace hdps {

// Invariant: tensors that are shared by as many ranks are shared by the same: these differ in the
// highest digits of their numbers alone, which are parts of the rows.
class RankGroups {
 public:
  // `group` is of all ranks and outlives it. All ranks call it at the same time.
  static Result<std::unique_ptr<RankGroups>> Form(const RankGraph& graph, Collective& group);

  // Whose gradients of the tensor are added up, this rank's among them; null: it is alone.
  Collective* Of(size_t tensor) const { return of_tensor_[tensor]; }
  // Tensors of the same number travel together.
  uint32_t SharedBy(size_t tensor) const { return shared_by_[tensor]; }

 private:
  RankGroups() = default;

  std::vector<std::unique_ptr<Collective>> formed_;
  std::vector<Collective*> of_tensor_;  // [tensors]
  std::vector<uint32_t> shared_by_;     // [tensors]
};

}  // namespace hdps
