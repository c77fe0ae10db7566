// The optimizers that a job may name: those of the list, and what a program adds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/job/optimizers/optimizer_record.h"

namespace hdps {

// A value, so that two programs, or two jobs, may have different ones.
//
// Invariant: it holds the built-in optimizers; no two records have the same word, and a setting has
// one range and one value of OptimizerSettings in all.
class OptimizerRegistry {
 public:
  OptimizerRegistry();

  // Adds what OwnOptimizer<Rule>() of embedding/own_optimizer.h gave, which lives as long as the
  // program. kInvalidArgument when the word is taken, or a setting means something else in another
  // optimizer.
  Status Add(const OptimizerRecord* record);
  const OptimizerRecord* Find(std::string_view name) const;  // Null: there is none.
  const std::vector<const OptimizerRecord*>& records() const { return records_; }
  std::vector<std::string> names() const;

 private:
  std::vector<const OptimizerRecord*> records_;
};

}  // namespace hdps
