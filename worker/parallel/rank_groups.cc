// Forms one group for each number of sharing ranks.
#include "worker/parallel/rank_groups.h"

#include <glog/logging.h>

#include <map>
#include <utility>

namespace hdps {

Result<std::unique_ptr<RankGroups>> RankGroups::Form(const RankGraph& graph, Collective& group) {
  CHECK_EQ(group.size(), graph.workers);
  std::unique_ptr<RankGroups> groups(new RankGroups());
  std::map<uint32_t, Collective*> by_ranks = {{1, nullptr}, {graph.workers, &group}};
  if (graph.workers == 1) by_ranks = {{1, nullptr}};
  for (const TensorSlice& slice : graph.tensors) {
    const auto ranks = static_cast<uint32_t>(slice.summed_by.size());
    if (!by_ranks.contains(ranks)) {
      HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Collective> formed,
                            group.Split(graph.rank % (graph.workers / ranks)));
      by_ranks[ranks] = formed.get();
      groups->formed_.push_back(std::move(formed));
    }
    groups->of_tensor_.push_back(by_ranks[ranks]);
    groups->shared_by_.push_back(ranks);
  }
  return groups;
}

}  // namespace hdps
