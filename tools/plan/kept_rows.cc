// Assumes that the most frequent values of each feature are kept.
#include "tools/plan/kept_rows.h"

#include <algorithm>

#include "common/planning/key_law.h"

namespace hdps {
namespace {

constexpr double kMeasuredStates = 2;

}  // namespace

double OfMeasuredRule(double weights, double states) {
  return (weights + states) / (1 + kMeasuredStates);
}

double KeptRows::Add(const JobShape::Table& table, const PlanQuestion& question, double of_feature,
                     double distinct) {
  if (table.kept_rows == 0) return 0;
  const double examples = double(question.batch) / question.workers;
  const double values = std::max(question.rows / std::max(question.shape.keys, 1u), 1.0);
  const double first = table.kept_rows / table.features, scale = distinct / of_feature;
  const auto met_by = [&](double workers) {
    return scale * ExpectedDistinctOfFirst(first, values, question.zipf, workers * examples);
  };
  const double own = std::min(met_by(1), distinct), all = met_by(question.workers);
  rows += own;
  floats += own * table.dim;
  all_rows += all;
  all_floats += all * table.dim;
  pushed_floats += all * OfMeasuredRule(table.dim, table.state_floats);
  if (key_sets.emplace(table.features, table.kept_rows).second) slots += table.kept_rows;
  return own;
}

double KeptRows::SumBytes(double workers) const {
  constexpr double kFloatBytes = sizeof(float), kBitsOfByte = 8;
  return 2 * (workers - 1) / workers * (kFloatBytes * all_floats + slots / kBitsOfByte);
}

double KeptRows::CoreSeconds(const MachineConstants& constants, double workers,
                             double other_floats) const {
  if (slots == 0) return 0;
  constexpr double kNano = 1e-9;
  const double read = rows * constants.server_pull_row_ns + floats * constants.server_pull_float_ns;
  const double updated =
      all_rows * constants.server_push_row_ns + pushed_floats * constants.server_push_float_ns;
  // The worker's own gradients are copied into place, and those of another are added.
  const double added = floats + (workers > 1 ? all_floats : 0);
  const double copied = 2 * other_floats;
  return kNano * (read + updated + (added + copied) * constants.model_merge_float_ns +
                  SumBytes(workers) * constants.wire_byte_ns);
}

}  // namespace hdps
