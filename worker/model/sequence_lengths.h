// Counts the vectors of the sequences that a layer reads.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/model/layer.h"

namespace hdps {

// The number of vectors that each example of a pass has in a sequence: its keys, at most the length
// of the layer `sequence` below, and one more for each follower that `positions` puts behind them.
class SequenceLengths {
 public:
  // Counts those of the site's first input, which is a sequence, with the followers of the site's
  // own layer.
  explicit SequenceLengths(const LayerSite& site);

  // Copies the counts to the device.
  void Bring(const Pass& pass);
  const float* counts() const { return counts_.data(); }  // [n], integers, on the device.

 private:
  uint32_t feature_ = 0;  // Column of the batch with the keys.
  uint32_t length_ = 0;   // Of the sequence's keys, the last ones of this number count.
  uint32_t followers_ = 0;
  std::vector<float> host_counts_;
  DeviceArray counts_;
};

}  // namespace hdps
