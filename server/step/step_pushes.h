// The pushes that make one update, as the shards are given them.
#pragma once

#include <cstdint>
#include <vector>

#include "common/net/frame.h"
#include "server/shard_set.h"

namespace hdps {

struct Job;

// Invariant: every push has examples: who had none has no mean, and nothing to add.
class StepPushes {
 public:
  // `workers`: all of the step, also those without examples.
  StepPushes(const Job& job, std::vector<PlannedPush> pushes, uint64_t workers, Clock clock);

  // `shrink` as in UpdateTerms.
  void Apply(ShardSet& shards, float shrink) const;
  // The squares of what that would apply, before it is clipped.
  SquareSum Squares(ShardSet& shards) const;

 private:
  const Job& job_;
  std::vector<PlannedPush> pushes_;
  const Clock clock_;
  float scale_ = 1;  // Of the sum of the gradients.
};

// Whether the gradients of a push, whose keys are known, are as many as its keys want, and numbers.
Status CheckGradients(const ShardSet& shards, const PlannedPush& push);

// The push with the keys that it may only have named: whoever has not answered pulls knows no list.
Frame WithKeys(const PlannedPush& push);

}  // namespace hdps
