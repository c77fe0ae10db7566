// The losses of a job over the logits of a batch: of one task or several, of examples or of pairs.
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

// Sums of losses count each example by its weight; nothing divides by the weights. So what the
// servers make of it by the number of examples is a mean over the examples, as of PyTorch's losses
// with `weight` and reduction "mean" for logloss.
//
// Invariant: results are functions of (batch, logits). Pairs and sampled items are those of the
// batch at hand: a part of a step. A pass is Bring(), then Train() and Sum(), or Score().
class ModelLoss {
 public:
  // `ops` outlives it.
  ModelLoss(const Job& job, DenseOps& ops);

  // Takes labels, weights and what else the loss needs of the batch, which stays until the pass is
  // over, to the device. `training`: Train() follows.
  void Bring(const Batch& batch, bool training);
  // Writes the gradient of the sum of the losses.
  void Train(ConstMatrix logits, Matrix gradient);
  // The sum of the losses of the last Train(), once DenseOps::EndFetches() has been called; 0 of a
  // pass without examples.
  double Sum() const;
  // scores [n * ScoresAnExample(logits.cols)] of the examples: probabilities under softmax, else
  // the logit, or the inner product. Returns the sum of the losses; 0 of losses of pairs, which
  // single examples do not have.
  double Score(ConstMatrix logits, std::vector<float>* scores);

  // Columns of the scores: a class each under softmax, one each task else.
  size_t ScoresAnExample(size_t logits) const;

 private:
  void BringTasks(const Batch& batch);
  void BringPairs(const Batch& batch);
  void BringItems(const Batch& batch);
  void OfTasks(ConstMatrix logits, Matrix gradient, std::vector<float>* scores);
  void Bpr(ConstMatrix logits, Matrix gradient);
  void SampledSoftmax(ConstMatrix logits, Matrix gradient);
  // The numbers of the items of the examples, from 0 by first sight, and the logarithm of the share
  // of the examples that each has.
  void CountItems(const Batch& batch);

  // Values of the host and, elsewhere, their copy on the device.
  struct Brought {
    explicit Brought(DenseOps* ops) : array(ops) {}
    DeviceArray array;
    const float* data = nullptr;  // On the device; null: none.
  };
  void Bring(std::span<const float> values, Brought* to);

  const std::vector<TaskSpec> tasks_;
  const LossKind kind_;                  // Of the first.
  std::vector<uint32_t> item_features_;  // Columns of the batch.
  DenseOps& ops_;
  size_t examples_ = 0;  // Of the batch at hand.
  // [tasks * n], a task behind the other, where there are several; else the batch's own.
  std::vector<float> task_labels_, task_weights_;
  std::vector<float> members_, begin_, end_, items_, log_frequency_, counts_;
  Brought labels_, weights_, brought_members_, brought_begin_, brought_end_;
  DeviceArray losses_, products_;
  // What the device gives: a sum a task, or the loss of each example.
  std::vector<double> sums_;
  std::vector<float> host_losses_;
};

}  // namespace hdps
