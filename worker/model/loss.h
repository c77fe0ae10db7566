// The losses of a job over the logits of a batch: of one task or several, of examples or of pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "common/job/job.h"
#include "kernels/dense_ops.h"
#include "worker/data/batch.h"

namespace hdps {

// Sums of losses count each example by its weight; nothing divides by the weights. So what the
// servers make of it by the number of examples is a mean over the examples, as of PyTorch's losses
// with `weight` and reduction "mean" for logloss.
//
// Invariant: results are functions of (batch, logits). Pairs and sampled items are those of the
// batch at hand: a part of a step.
class ModelLoss {
 public:
  // `ops` outlives it.
  ModelLoss(const Job& job, DenseOps& ops);

  // Writes the gradient of the sum of the losses, and returns the sum.
  double Train(const Batch& batch, ConstMatrix logits, Matrix gradient);
  // scores [n * ScoresAnExample(logits.cols)] of the examples: probabilities under logloss and
  // softmax, else the logit, or the inner product. Returns the sum of the losses; 0 of losses of
  // pairs, which single examples do not have.
  double Score(const Batch& batch, ConstMatrix logits, std::vector<float>* scores);

  // Columns of the scores: a class each under softmax, one each task else.
  size_t ScoresAnExample(size_t logits) const;

 private:
  double OfTasks(const Batch& batch, ConstMatrix logits, Matrix gradient,
                 std::vector<float>* scores);
  double Bpr(const Batch& batch, ConstMatrix logits, Matrix gradient);
  double SampledSoftmax(const Batch& batch, ConstMatrix logits, Matrix gradient);
  // The numbers of the items of the examples, from 0 by first sight, and the logarithm of the share
  // of the examples that each has.
  void CountItems(const Batch& batch);
  // In the device's memory.
  const float* Bring(const std::vector<float>& values, DeviceArray* array);
  double SumOfLosses(const DeviceArray& losses, size_t count);

  const std::vector<TaskSpec> tasks_;
  const LossKind kind_;                  // Of the first.
  std::vector<uint32_t> item_features_;  // Columns of the batch.
  DenseOps& ops_;
  std::vector<float> labels_, scores_;  // Of one task.
  std::vector<float> members_, begin_, end_, items_, log_frequency_, counts_, host_losses_;
  DeviceArray device_labels_, device_weights_, device_members_, device_begin_, device_end_;
  DeviceArray losses_, products_;
};

}  // namespace hdps
