// What becomes of a step's combined gradient before its table's rule: the penalties of the loss,
// then clipping. The same for rows at servers, dense tensors under allreduce and rows kept at
// workers.
#pragma once

#include <cstddef>
#include <span>

#include "common/base/ids.h"
#include "common/base/square_sum.h"
#include "kernels/tasks/gradient_tasks.h"

namespace hdps {

struct TableSpec;

class TensorPeers;  // whole_tensors.h

// Of one update of all tables.
struct UpdateTerms {
  double rate = 1;       // Learning rates are multiplied with it, and with their schedules.
  float shrink = 1;      // Gradients are multiplied with it: below 1 where their norm is clipped.
  float clip_value = 0;  // Then each element stays within +-this; 0: any.
  bool first_epoch = true;  // Keys are counted for a row: later epochs bring the same again.
  // Under an optimizer of whole tensors, of which the slice has only some chunks.
  TensorPeers* peers = nullptr;
};

// Of the gradients of one table.
class GradientTerms {
 public:
  GradientTerms(const TableSpec& table, const UpdateTerms& terms);

  // Gradients stay as they are.
  bool none() const { return !penalizes() && shrink_ == 1 && clip_value_ == 0; }
  // The weights count: loss_l1 or loss_l2 of the table is not 0.
  bool penalizes() const { return l1_ != 0 || l2_ != 0; }

  // gradient[i] += l2 weights[i] + l1 sign(weights[i]), where there are penalties.
  void AddPenalties(std::span<const float> weights, std::span<float> gradient) const;
  // gradient[i] = shrink gradient[i] within +-clip_value.
  void Clip(std::span<float> gradient) const;
  // All of it, element by element, on any device.
  GradientFinish finish() const { return {l1_, l2_, shrink_, clip_value_}; }

 private:
  const float l1_, l2_, shrink_, clip_value_;
};

// Gradients of many rows, [keys * dim], in place: times `scale`, with penalties by the `weights` of
// the rows, [keys * dim], which may be empty where there are none, clipped.
void FinishGradients(const TableSpec& table, const GradientTerms& terms, float scale,
                     std::span<const Key> keys, std::span<const float> weights,
                     std::span<float> gradients);
// The squares of those gradients.
SquareSum SquaresOf(const TableSpec& table, std::span<const Key> keys,
                    std::span<const float> gradients);

// What keeps gradients, whose squares are these, within a norm of `most`; 0: any. As
// clip_grad_norm_ of PyTorch: most / (norm + 1e-6), at most 1.
float ShrinkTo(double most, const SquareSum& squares);

}  // namespace hdps
