// Rows that every worker keeps with their state: how many a step meets, and what they cost.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "tools/plan/cost_model.h"

namespace hdps {

// What was measured had rows of a rule with two floats of state a weight: so many floats of such
// rows take as long to update as `weights` floats with `states` floats of state.
double OfMeasuredRule(double weights, double states);

// No server is asked for those of a step.
struct KeptRows {
  double rows = 0, floats = 0;          // Which one worker's step has.
  double all_rows = 0, all_floats = 0;  // Which any worker's has: they are added up.
  double pushed_floats = 0;             // Of all, by OfMeasuredRule().
  double slots = 0;                     // Keys of them, in any step.
  // Tables of as many features that keep as many rows share one set of keys.
  std::set<std::pair<uint32_t, double>> key_sets;

  // Takes the table's kept rows in, and returns how many of its distinct rows of one worker's step
  // they are. `of_feature` distinct values are expected of one feature in `examples`, and
  // `distinct` are there of all.
  double Add(const JobShape::Table& table, const PlanQuestion& question, double of_feature,
             double distinct);
  // Bytes in each direction for one worker: first which rows it has, a bit each; then those that
  // any has are added up.
  double SumBytes(double workers) const;
  // One worker's work, in seconds of one core, the socket's included. The floats of other rows are
  // not used where they came, nor their gradients made where they are sent from: both are copied.
  double CoreSeconds(const MachineConstants& constants, double workers, double other_floats) const;
};

}  // namespace hdps
