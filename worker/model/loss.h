// Computes the losses of a job over the logits of a batch: one task or several, of examples or of
// pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/job/spec/model_spec.h"
#include "kernels/dense_ops.h"
#include "worker/data/batch.h"

namespace hdps {

struct Job;
enum class LossKind : uint8_t;

// Sums losses with each example's weight and does not divide by the weights. The servers divide by
// the number of examples; so for logloss the result is that of PyTorch with `weight` and reduction
// "mean".
//
// Invariant: results are functions of (batch, logits). Pairs and sampled items come from the
// current batch, which is a part of a step. A pass is Bring(), then Train() and Sum(), or Score().
class ModelLoss {
 public:
  // Requires: `ops` outlives it.
  ModelLoss(const Job& job, DenseOps& ops);

  // Copies labels, weights and what else the loss needs to the device. The batch must not change
  // until the pass ends. `training`: Train() follows.
  void Bring(const Batch& batch, bool training);
  // Writes the gradient of the sum of the losses.
  void Train(ConstMatrix logits, Matrix gradient);
  // Returns the sum of the losses of the last Train(). Requires: DenseOps::EndFetches() has been
  // called since. 0 for a pass without examples.
  double Sum() const;
  // Writes scores [n * ScoresAnExample(logits.cols)]: probabilities under softmax, else the logit
  // or the inner product. Returns the sum of the losses; 0 for losses of pairs, which a single
  // example does not have.
  double Score(ConstMatrix logits, std::vector<float>* scores);

  // Scores per example: one per class under softmax, else one per task.
  size_t ScoresAnExample(size_t logits) const;

 private:
  void BringTasks(const Batch& batch);
  void BringPairs(const Batch& batch);
  void BringItems(const Batch& batch);
  void OfTasks(ConstMatrix logits, Matrix gradient, std::vector<float>* scores);
  void Bpr(ConstMatrix logits, Matrix gradient);
  void SampledSoftmax(ConstMatrix logits, Matrix gradient);
  // Numbers the examples' items from 0 in order of appearance, and computes the logarithm of each
  // item's share of the examples.
  void CountItems(const Batch& batch);

  // Values on the host and, if the device is another, their copy there.
  struct Brought {
    explicit Brought(DenseOps* ops) : array(ops) {}
    DeviceArray array;
    const float* data = nullptr;  // On the device; null: there are none.
  };
  void Bring(std::span<const float> values, Brought* to);

  const std::vector<TaskSpec> tasks_;
  const LossKind kind_;                  // Loss of the first task.
  std::vector<uint32_t> item_features_;  // Columns of the batch.
  DenseOps& ops_;
  size_t examples_ = 0;  // Number of examples in the current batch.
  // [tasks * n], task after task, if there are several; else the batch's own are used.
  std::vector<float> task_labels_, task_weights_;
  std::vector<float> members_, begin_, end_, items_, log_frequency_, counts_;
  Brought labels_, weights_, brought_members_, brought_begin_, brought_end_;
  DeviceArray losses_, products_;
  // Results of the device: a sum per task, or the loss of each example.
  std::vector<double> sums_;
  std::vector<float> host_losses_;
};

}  // namespace hdps
