// Turns a step's combined gradient into what the table's rule is given: adds the penalties of the
// loss, then clips. Used alike for rows at servers, dense tensors under allreduce and rows kept at
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

// Terms of one update of all tables.
struct UpdateTerms {
  double rate = 1;  // Factor of the learning rates, besides their schedules.
  // Steps of the jobs that this one began from, which count for lazy Adam's bias correction.
  int64_t steps_before = 0;
  float shrink = 1;      // Factor of the gradients; below 1 if their norm is clipped.
  float clip_value = 0;  // Limit of each element's magnitude after that; 0: none.
  // Keys are counted for admission only in the first epoch: later ones bring the same keys.
  bool first_epoch = true;
  // The other chunks of dense tensors, for an optimizer of whole tensors on a slice with some
  // chunks.
  TensorPeers* peers = nullptr;
};

// The terms of the gradients of one table.
class GradientTerms {
 public:
  GradientTerms(const TableSpec& table, const UpdateTerms& terms);

  // Is true if gradients stay as they are.
  bool none() const { return !penalizes() && shrink_ == 1 && clip_value_ == 0; }
  // Is true if loss_l1 or loss_l2 of the table is not 0, so that the weights are needed.
  bool penalizes() const { return l1_ != 0 || l2_ != 0; }

  // Adds l2 weights[i] + l1 sign(weights[i]) to gradient[i] if there are penalties.
  void AddPenalties(std::span<const float> weights, std::span<float> gradient) const;
  // Sets gradient[i] = shrink gradient[i], limited to +-clip_value.
  void Clip(std::span<float> gradient) const;
  // Returns both as one elementwise operation, which runs on any device.
  GradientFinish finish() const { return {l1_, l2_, shrink_, clip_value_}; }

 private:
  const float l1_, l2_, shrink_, clip_value_;
};

// Finishes the gradients of many rows, [keys * dim], in place: scales them, adds penalties by the
// rows' `weights`, [keys * dim] (may be empty without penalties), and clips them.
void FinishGradients(const TableSpec& table, const GradientTerms& terms, float scale,
                     std::span<const Key> keys, std::span<const float> weights,
                     std::span<float> gradients);
// Returns the sum of squares of those gradients.
SquareSum SquaresOf(const TableSpec& table, std::span<const Key> keys,
                    std::span<const float> gradients);

// Returns the factor that limits the norm of gradients with these squares to `most`; 0: no limit.
// As clip_grad_norm_ of PyTorch: most / (norm + 1e-6), at most 1.
float ShrinkTo(double most, const SquareSum& squares);

}  // namespace hdps
