// The list of optimizers: an optimizer is one file and one line here. A program may bring more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/job/optimizers/adadelta.h"
#include "common/job/optimizers/adagrad.h"
#include "common/job/optimizers/adam.h"
#include "common/job/optimizers/adamw.h"
#include "common/job/optimizers/ftrl.h"
#include "common/job/optimizers/lamb.h"
#include "common/job/optimizers/lazy_adam.h"
#include "common/job/optimizers/momentum.h"
#include "common/job/optimizers/rmsprop.h"
#include "common/job/optimizers/rowwise_adagrad.h"
#include "common/job/optimizers/sgd.h"

// In the order in which people are shown them.
// clang-format off
#define HDPS_OPTIMIZERS(Each) \
  Each(Sgd)                   \
  Each(Momentum)              \
  Each(Adagrad)               \
  Each(RowwiseAdagrad)        \
  Each(Adam)                  \
  Each(LazyAdam)              \
  Each(AdamW)                 \
  Each(Ftrl)                  \
  Each(Lamb)                  \
  Each(RmsProp)               \
  Each(Adadelta)
// clang-format on

namespace hdps {

// kSgd, kMomentum, ..., and kOwn: an optimizer that is not of this list but of the program's own.
enum class OptimizerKind : uint8_t {
#define HDPS_KIND(Rule) k##Rule,
  HDPS_OPTIMIZERS(HDPS_KIND)
#undef HDPS_KIND
      kOwn
};

struct OptimizerRecord;

// The optimizer of a table or of the dense weights.
struct OptimizerSpec : OptimizerSettings {
  OptimizerKind kind = OptimizerKind::kAdagrad;
  const OptimizerRecord* own = nullptr;  // kOwn: its record, which lives as long as the program.
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

// Calls call(Rule()) with the struct of a built-in optimizer; the only switch over all of them.
template <typename Call>
decltype(auto) WithOptimizer(OptimizerKind kind, const Call& call) {
  switch (kind) {
#define HDPS_CASE(Rule)        \
  case OptimizerKind::k##Rule: \
    return call(optimizers::Rule());
    HDPS_OPTIMIZERS(HDPS_CASE)
#undef HDPS_CASE
    case OptimizerKind::kOwn:
      break;
  }
  __builtin_unreachable();
}

struct OptimizerLoops;  // What computes an own optimizer: kernels/host/optimizer_loops.h. It is
                        // only handed on here.

// What an optimizer says of itself, for those who do not compute.
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
};

template <typename Rule>
constexpr OptimizerRecord RecordOfRule(OptimizerKind kind) {
  return {kind,
          Rule::kName,
          Rule::kFormula,
          Rule::kPaper,
          Rule::kSettings,
          Rule::kStateArrays,
          StateFloatsOf<Rule>(0),
          Rule::kWholeTensors};
}

inline constexpr OptimizerRecord kOptimizers[] = {
#define HDPS_RECORD(Rule) RecordOfRule<optimizers::Rule>(OptimizerKind::k##Rule),
    HDPS_OPTIMIZERS(HDPS_RECORD)
#undef HDPS_RECORD
};

// Of a built-in optimizer.
constexpr const OptimizerRecord& RecordOf(OptimizerKind kind) {
  return kOptimizers[static_cast<size_t>(kind)];
}
constexpr const OptimizerRecord& RecordOf(const OptimizerSpec& spec) {
  return spec.kind == OptimizerKind::kOwn ? *spec.own : RecordOf(spec.kind);
}

constexpr const char* OptimizerName(OptimizerKind kind) { return RecordOf(kind).name; }
constexpr const char* OptimizerName(const OptimizerSpec& spec) { return RecordOf(spec).name; }

// The optimizer with the defaults of its own settings.
constexpr OptimizerSpec DefaultsOf(const OptimizerRecord& record) {
  OptimizerSpec spec;
  spec.kind = record.kind;
  if (record.kind == OptimizerKind::kOwn) spec.own = &record;
  for (const OptimizerSetting& setting : record.settings) {
    spec.*setting.value = setting.default_value;
  }
  return spec;
}
constexpr OptimizerSpec DefaultsOf(OptimizerKind kind) { return DefaultsOf(RecordOf(kind)); }

}  // namespace hdps
