// Ranks share a tensor where they differ in the highest digit alone, so as many ranks are the same
// ranks.
#include "worker/parallel/rank_sums.h"

#include <glog/logging.h>

#include <algorithm>

namespace hdps {

Result<std::unique_ptr<RankSums>> RankSums::Form(const RankGraph& graph,
                                                 std::span<const DenseTensor> tensors,
                                                 Collective& group) {
  CHECK_EQ(tensors.size(), graph.tensors.size());
  CHECK_EQ(group.size(), graph.workers);
  std::unique_ptr<RankSums> sums(new RankSums(group));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const auto ranks = static_cast<uint32_t>(graph.tensors[t].summed_by.size());
    if (ranks == 1) continue;
    auto sharing = std::ranges::find(sums->sharings_, ranks, &Sharing::ranks);
    if (sharing == sums->sharings_.end()) {
      sums->sharings_.push_back({.ranks = ranks, .group = &group});
      sharing = sums->sharings_.end() - 1;
      if (ranks < graph.workers) {
        const uint32_t others = graph.workers / ranks;
        HDPS_ASSIGN_OR_RETURN(sharing->formed, group.Split(graph.rank % others));
        sharing->group = sharing->formed.get();
      }
    }
    const size_t begin = tensors[t].first_chunk * kDenseChunkFloats;
    const size_t size = tensors[t].num_chunks * kDenseChunkFloats;
    std::vector<Run>& runs = sharing->runs;
    if (!runs.empty() && runs.back().begin + runs.back().size == begin) {
      runs.back().size += size;
    } else {
      runs.push_back({begin, size});
    }
  }
  return sums;
}

Status RankSums::Sum(std::span<float> flat, std::span<const ReducedValues> beside) {
  std::vector<ReducedValues> of_all(beside.begin(), beside.end());
  for (Sharing& sharing : sharings_) {
    std::vector<ReducedValues> lists;
    std::vector<ReducedValues>& taken = sharing.formed == nullptr ? of_all : lists;
    for (const Run& run : sharing.runs) taken.push_back(SumOf(flat.subspan(run.begin, run.size)));
    if (sharing.formed != nullptr) HDPS_RETURN_IF_ERROR(sharing.group->AllReduce(lists));
  }
  return of_all.empty() ? Status() : group_.AllReduce(of_all);
}

}  // namespace hdps
