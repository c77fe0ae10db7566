// Whether asking for rows ahead of their turn makes steps shorter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hdps {

// Asking ahead hides the way to the servers behind computing, but makes work: what a push changes
// is looked for and comes again. Where workers and servers share their cores it may cost more than
// it hides. In sync mode it changes no bit of the result, so it can be tried: blocks of steps with
// and without it in turns, and then the way whose median step was shorter, until the next trial.
//
// Invariant: where it is not open, asks always.
class LookaheadTuner {
 public:
  explicit LookaheadTuner(bool open) : open_(open) {}

  // Whether to ask ahead in the step at hand.
  bool ask() const { return ask_; }
  // The step at hand has taken so long. True where a trial has just ended by changing the choice.
  bool OnStep(int64_t ns);
  // Of the last trial, in nanoseconds.
  int64_t median(bool asking) const { return medians_[asking ? 1 : 0]; }

 private:
  // The first steps of a block still have the rows of the block before, and are not counted.
  static constexpr size_t kBlockSteps = 6, kSkippedSteps = 2, kBlocks = 12;
  static constexpr uint64_t kRestFirst = 16, kRestMin = 64, kRestMax = 8192;

  bool EndTrial();

  const bool open_;
  bool ask_ = true, chosen_ = true;
  uint64_t rest_left_ = kRestFirst, next_rest_ = kRestMin;  // Steps until the next trial.
  size_t block_ = 0, step_ = 0;                             // Of a trial; step_: of the block.
  std::vector<int64_t> samples_[2];                         // Without, with.
  int64_t medians_[2] = {};
};

}  // namespace hdps
