// An optimizer as code without its arithmetic sees it, and the optimizer of a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/job/optimizers/optimizer_settings.h"

namespace hdps {

enum class OptimizerKind : uint8_t;  // optimizers.h, the list.

// The arithmetic of an own optimizer: kernels/host/optimizer_loops.h. It is only passed on here.
struct OptimizerLoops;

// The description of an optimizer.
struct OptimizerRecord {
  OptimizerKind kind;
  const char* name;  // As in the job file.
  const char* formula;
  const char* paper;
  std::span<const OptimizerSetting> settings;
  size_t state_arrays;  // Floats of state for every weight.
  size_t state_more;    // Additional floats for every row.
  bool whole_tensors;   // Only for dense weights.
  // Null for the built-in ones, whose loops are in the library.
  const OptimizerLoops* loops = nullptr;

  constexpr size_t StateFloats(size_t dim) const { return state_arrays * dim + state_more; }
  // Is true if it is a program's own optimizer instead of one in the list.
  constexpr bool is_own() const { return loops != nullptr; }
};

// Returns the optimizer of a table that names none.
const OptimizerRecord& DefaultOptimizer();
// Returns plain gradient descent.
const OptimizerRecord& PlainDescent();

// The optimizer of a table or of the dense weights, with its numbers.
struct OptimizerSpec : OptimizerSettings {
  const OptimizerRecord* record = &DefaultOptimizer();  // Lives as long as the program.
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

constexpr const OptimizerRecord& RecordOf(const OptimizerSpec& spec) { return *spec.record; }
constexpr const char* OptimizerName(const OptimizerSpec& spec) { return spec.record->name; }

// Returns the optimizer with the defaults of its own settings.
inline OptimizerSpec DefaultsOf(const OptimizerRecord& record) {
  OptimizerSpec spec;
  spec.record = &record;
  for (const OptimizerSetting& setting : record.settings) {
    spec.*setting.value = setting.default_value;
  }
  return spec;
}

}  // namespace hdps
