// Predicts how many of the rows that every worker keeps a step meets, and what they cost.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "tools/plan/cost_model.h"

namespace hdps {

// Converts floats to those of the measured rule, which has two floats of state per weight: returns
// how many of these take as long to update as `weights` floats with `states` floats of state.
double OfMeasuredRule(double weights, double states);

// The kept rows that a step meets. The servers are not asked for them.
struct KeptRows {
  double rows = 0, floats = 0;  // Met by one worker in a step.
  // Met by any worker in a step; their gradients are summed.
  double all_rows = 0, all_floats = 0;
  double pushed_floats = 0;  // all_floats as floats of the measured rule.
  double slots = 0;          // Kept rows of all key sets.
  // Tables share one set of keys if they have as many features and keep as many rows.
  std::set<std::pair<uint32_t, double>> key_sets;

  // Adds the kept rows of `table` to the sums above. Returns how many of the `distinct` rows of one
  // worker's step are kept. `of_feature` is the expected number of distinct values of one feature
  // in the worker's examples.
  double Add(const JobShape::Table& table, const PlanQuestion& question, double of_feature,
             double distinct);
  // Bytes in each direction for one worker: one bit for each slot tells which rows it has, then the
  // rows that any worker has are summed.
  double SumBytes(double workers) const;
  // Seconds of one core for one worker, with the work for the socket. `other_floats` are those of
  // rows that are not kept: because of the kept rows, they and their gradients are copied once more
  // each.
  double CoreSeconds(const MachineConstants& constants, double workers, double other_floats) const;
};

}  // namespace hdps
