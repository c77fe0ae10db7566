// Computes the scales and terms of an update from its pushes.
#include "server/step/step_pushes.h"

#include <glog/logging.h>

#include <string>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/message_frames.h"
#include "embedding/memory/gradient_scale.h"

namespace hdps {

StepPushes::StepPushes(const Job& job, std::vector<PlannedPush> pushes, uint64_t workers,
                       Clock clock)
    : job_(job), pushes_(std::move(pushes)), clock_(clock) {
  uint64_t examples = 0;
  for (const PlannedPush& push : pushes_) {
    CHECK_EQ(push.request.clock, clock);
    // The pushes of a worker name the same examples, and each has one of part 0.
    if (push.request.part == 0) examples += push.request.num_examples;
  }
  std::erase_if(pushes_, [](const PlannedPush& push) { return push.request.num_examples == 0; });
  if (!pushes_.empty()) scale_ = SumScale(job_.parallel, workers, examples);
}

void StepPushes::Apply(ShardSet& shards, float shrink) const {
  if (pushes_.empty()) return;
  // All workers were given the same rate for the step, which belongs to one epoch.
  const UpdateTerms terms = {.rate = pushes_.front().request.rate,
                             .steps_before = pushes_.front().request.steps_before,
                             .shrink = shrink,
                             .clip_value = static_cast<float>(job_.train.clip_value),
                             .first_epoch = pushes_.front().request.epoch == 0};
  shards.Apply(pushes_, scale_, clock_ + 1, terms);
}

SquareSum StepPushes::Squares(ShardSet& shards) const {
  return pushes_.empty() ? SquareSum() : shards.Squares(pushes_, scale_);
}

Status CheckGradients(const ShardSet& shards, const PlannedPush& push) {
  const PushRequest& request = push.request;
  const auto& [tables, keys, plan] = *push.list;
  const size_t gradients = request.gradients.size() / FloatBytes(request.format);
  if (gradients != plan.num_floats) {
    return {Code::kCorruption, std::to_string(gradients) + " gradients for key list " +
                                   std::to_string(request.list) + ", which has " +
                                   std::to_string(plan.num_floats)};
  }
  return shards.CheckFloats(plan, keys, request.gradients, request.format);
}

Frame WithKeys(const PlannedPush& push) {
  PushRequest whole = push.request;
  whole.tables = push.list->tables;
  whole.keys = push.list->keys;
  whole.list = 0;
  return EncodeMessage(whole);
}

}  // namespace hdps
