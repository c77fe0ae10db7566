// The optimizers that a job may name: the built-in ones and those that a program adds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/job/optimizers/optimizer_record.h"

namespace hdps {

// A registry is a value, so programs and jobs may have different ones.
//
// Invariant: it contains the built-in optimizers. No two records have the same word, and a setting
// has one range and one member of OptimizerSettings in all of them.
class OptimizerRegistry {
 public:
  OptimizerRegistry();

  // Adds the result of OwnOptimizer<Rule>() of embedding/own_optimizer.h, which lives as long as
  // the program. Errors: kInvalidArgument if the word is taken, or a setting has another meaning in
  // another optimizer.
  Status Add(const OptimizerRecord* record);
  const OptimizerRecord* Find(std::string_view name) const;  // Returns null if there is none.
  const std::vector<const OptimizerRecord*>& records() const { return records_; }
  std::vector<std::string> names() const;

 private:
  std::vector<const OptimizerRecord*> records_;
};

}  // namespace hdps
