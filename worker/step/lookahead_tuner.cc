// Blocks in the order with, without, without, with: what drifts hits both alike.
#include "worker/step/lookahead_tuner.h"

#include <algorithm>

namespace hdps {
namespace {

// A change should be worth it, and noise of a few steps in a hundred is none.
constexpr double kWorthIt = 0.95;

int64_t MedianOf(std::vector<int64_t>* samples) {
  const auto middle = samples->begin() + static_cast<ptrdiff_t>(samples->size() / 2);
  std::nth_element(samples->begin(), middle, samples->end());
  return *middle;
}

}  // namespace

bool LookaheadTuner::OnStep(int64_t ns) {
  if (!open_) return false;
  if (rest_left_ > 0) {
    --rest_left_;
    if (rest_left_ == 0) ask_ = true;  // The first block.
    return false;
  }
  if (step_ >= kSkippedSteps) samples_[ask_ ? 1 : 0].push_back(ns);
  if (++step_ < kBlockSteps) return false;
  step_ = 0;
  if (++block_ == kBlocks) return EndTrial();
  ask_ = (block_ + 1) / 2 % 2 == 0;
  return false;
}

bool LookaheadTuner::EndTrial() {
  for (int way = 0; way < 2; ++way) {
    medians_[way] = MedianOf(&samples_[way]);
    samples_[way].clear();
  }
  const bool before = chosen_;
  const auto now = static_cast<double>(medians_[before ? 1 : 0]);
  const auto other = static_cast<double>(medians_[before ? 0 : 1]);
  chosen_ = ask_ = other < kWorthIt * now ? !before : before;
  block_ = 0;
  rest_left_ = next_rest_;
  next_rest_ = std::min(2 * next_rest_, kRestMax);
  return chosen_ != before;
}

}  // namespace hdps
