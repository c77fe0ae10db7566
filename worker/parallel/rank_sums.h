// Gradients of a cut model's tensors, summed over the ranks that share each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "worker/exchange/collective.h"
#include "worker/model/model.h"
#include "worker/parallel/rank_graph.h"

namespace hdps {

// Invariant: values are added in the order of the ranks, so all that share a tensor have the same
// bits. All ranks of the group make the same calls in the same order.
class RankSums {
 public:
  // `group` is of all ranks and outlives the sums; `tensors` are those of the rank's model.
  static Result<std::unique_ptr<RankSums>> Form(const RankGraph& graph,
                                                std::span<const DenseTensor> tensors,
                                                Collective& group);

  // flat[dense floats of the rank]; `beside` are lists that are reduced over all ranks.
  Status Sum(std::span<float> flat, std::span<const ReducedValues> beside);

 private:
  // Neighbouring chunks that are shared by as many ranks.
  struct Run {
    size_t begin = 0, size = 0;  // Floats of the flat array.
  };
  struct Sharing {
    uint32_t ranks = 1;
    Collective* group = nullptr;              // Of those ranks.
    std::unique_ptr<Collective> formed = {};  // Null: it is the group of all.
    std::vector<Run> runs = {};
  };

  explicit RankSums(Collective& group) : group_(group) {}

  Collective& group_;
  std::vector<Sharing> sharings_;  // Of two ranks or more, in the order of their first tensors.
};

}  // namespace hdps
