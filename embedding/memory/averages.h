// Running averages among the dense tensors: which keys hold them, and the rule that updates them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "common/base/ids.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

// Returns how the row of a key of the dense table is averaged; null if the row holds parameters.
inline const AveragedTensor* AveragedOf(const TableSpec& table, Key key) {
  const auto found = std::ranges::find(table.averaged, key >> 32, &AveragedTensor::tensor);
  return found == table.averaged.end() ? nullptr : &*found;
}

// Is true for a running average; the table's schedule, penalties and clipping do not apply to it.
inline bool IsAveraged(const TableSpec& table, Key key) {
  return AveragedOf(table, key) != nullptr;
}

// Returns the rule of a key's row; `rule` is that of parameters. A running average is kept by plain
// descent with the gradient (average - value) and the rate 1 - momentum.
inline OptimizerSpec RuleOf(const OptimizerSpec& rule, const AveragedTensor* averaged) {
  if (averaged == nullptr) return rule;
  OptimizerSpec keeps = DefaultsOf(PlainDescent());
  keeps.learning_rate = 1.0f - averaged->momentum;
  return keeps;
}

// Calls use(rule, begin, count) for each run of neighbors in `keys` with the same rule, in order.
template <typename Use>
void ForEachRule(const TableSpec& table, const OptimizerSpec& rule, std::span<const Key> keys,
                 const Use& use) {
  if (table.averaged.empty()) return use(rule, 0, keys.size());
  for (size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
    const AveragedTensor* const averaged = AveragedOf(table, keys[begin]);
    while (end < keys.size() && AveragedOf(table, keys[end]) == averaged) ++end;
    use(RuleOf(rule, averaged), begin, end - begin);
  }
}

}  // namespace hdps
