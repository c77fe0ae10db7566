// The pushes that make one update, in the form in which shards apply them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/net/frame.h"
#include "server/shard_set.h"

namespace hdps {

struct Job;

// Invariant: every push has examples. Pushes without any are left out, as they have no mean and
// nothing to add.
class StepPushes {
 public:
  // `workers`: number of workers of the step, including those without examples.
  StepPushes(const Job& job, std::vector<PlannedPush> pushes, uint64_t workers, Clock clock);

  std::span<const PlannedPush> pushes() const { return pushes_; }
  // `shrink` as in UpdateTerms.
  void Apply(ShardSet& shards, float shrink) const;
  // Returns the squares of the gradients that Apply would use, before clipping.
  SquareSum Squares(ShardSet& shards) const;

 private:
  const Job& job_;
  std::vector<PlannedPush> pushes_;
  const Clock clock_;
  float scale_ = 1;  // Factor of the summed gradients.
};

// Checks that a push whose keys are known has as many gradients as its keys need, all finite.
Status CheckGradients(const ShardSet& shards, const PlannedPush& push);

// Returns the push with its keys written out: a backup has not answered pulls, so it knows no key
// list.
Frame WithKeys(const PlannedPush& push);

}  // namespace hdps
