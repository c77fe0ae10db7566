// An optimizer as those know it who do not compute with it, and the one that a table is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/job/optimizers/optimizer_settings.h"

namespace hdps {

enum class OptimizerKind : uint8_t;  // optimizers.h, the list.

struct OptimizerLoops;  // What computes an own optimizer: kernels/host/optimizer_loops.h. It is
                        // only handed on here.

// What an optimizer says of itself.
struct OptimizerRecord {
  OptimizerKind kind;
  const char* name;  // As in the job file.
  const char* formula;
  const char* paper;
  std::span<const OptimizerSetting> settings;
  size_t state_arrays;                    // Floats of state for every weight.
  size_t state_more;                      // And for every row.
  bool whole_tensors;                     // Only for dense weights.
  const OptimizerLoops* loops = nullptr;  // Null for the built-in ones: the library has theirs.

  constexpr size_t StateFloats(size_t dim) const { return state_arrays * dim + state_more; }
  // It is not one of the list but a program's own.
  constexpr bool is_own() const { return loops != nullptr; }
};

// Of a table that is given none.
const OptimizerRecord& DefaultOptimizer();
// Gradient descent as it is.
const OptimizerRecord& PlainDescent();

// The optimizer of a table or of the dense weights, with its numbers.
struct OptimizerSpec : OptimizerSettings {
  const OptimizerRecord* record = &DefaultOptimizer();  // It lives as long as the program.
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

constexpr const OptimizerRecord& RecordOf(const OptimizerSpec& spec) { return *spec.record; }
constexpr const char* OptimizerName(const OptimizerSpec& spec) { return spec.record->name; }

// The optimizer with the defaults of its own settings.
inline OptimizerSpec DefaultsOf(const OptimizerRecord& record) {
  OptimizerSpec spec;
  spec.record = &record;
  for (const OptimizerSetting& setting : record.settings) {
    spec.*setting.value = setting.default_value;
  }
  return spec;
}

}  // namespace hdps
