// Lists the optimizers for tests of rows, so that a new optimizer is tested automatically.
#pragma once

#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"

namespace hdps {

enum class OptimizerKind : uint8_t;

inline std::vector<OptimizerKind> RowOptimizers() {
  std::vector<OptimizerKind> kinds;
  for (const OptimizerRecord& record : kOptimizers) {
    if (!record.whole_tensors) kinds.push_back(record.kind);
  }
  return kinds;
}

}  // namespace hdps
