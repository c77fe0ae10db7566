// The dense tensors that servers keep and update, as their weights and gradients travel.
#pragma once

#include <span>
#include <vector>

#include "common/base/ids.h"
#include "worker/dense/dense_runs.h"
#include "worker/model/model.h"

namespace hdps {

struct Job;

// Packs the servers' tensors one behind another, without those that the workers keep among them.
//
// Invariant: keys() are those of their chunks, in the order of the model's flat array, and packed
// floats are in the order of the keys.
class DenseAtServers {
 public:
  DenseAtServers(const Job& job, const std::vector<DenseTensor>& tensors);

  bool empty() const { return keys_.empty(); }
  const std::vector<Key>& keys() const { return keys_; }
  // Where they lie in the flat array, ascending; adjacent ranges are joined.
  const std::vector<FloatRun>& runs() const { return runs_; }

  // Returns the place for pulled weights [keys * kDenseChunkFloats]: `flat` [dense floats] itself
  // if servers keep all tensors, else memory of this object, from which Unpack() copies them.
  std::span<float> PlaceIn(std::span<float> flat);
  void Unpack(std::span<float> flat) const;
  // Returns the gradients of the keys among those of all tensors, which stay where they are if
  // servers keep all. Valid until the next call.
  std::span<float> Pack(std::span<float> gradients);

 private:
  bool all_ = true;  // Servers keep all tensors.
  std::vector<Key> keys_;
  std::vector<FloatRun> runs_;
  std::vector<float> weights_, gradients_;  // [keys * kDenseChunkFloats], unless all_.
};

}  // namespace hdps
