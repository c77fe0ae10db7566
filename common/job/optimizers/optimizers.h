// The list of optimizers. To add one, write a file and a line here; a program may add its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/job/optimizers/adadelta.h"
#include "common/job/optimizers/adagrad.h"
#include "common/job/optimizers/adam.h"
#include "common/job/optimizers/adamw.h"
#include "common/job/optimizers/ftrl.h"
#include "common/job/optimizers/lamb.h"
#include "common/job/optimizers/lazy_adam.h"
#include "common/job/optimizers/momentum.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/rmsprop.h"
#include "common/job/optimizers/rowwise_adagrad.h"
#include "common/job/optimizers/sgd.h"

// In the order of documentation.
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

// kSgd, kMomentum, ..., and kOwn for a program's own optimizer.
enum class OptimizerKind : uint8_t {
#define HDPS_KIND(Rule) k##Rule,
  HDPS_OPTIMIZERS(HDPS_KIND)
#undef HDPS_KIND
      kOwn
};

// Calls call(Rule()) with the struct of a built-in optimizer. This is the only switch over all of
// them.
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

// Returns the record of a built-in optimizer.
constexpr const OptimizerRecord& RecordOf(OptimizerKind kind) {
  return kOptimizers[static_cast<size_t>(kind)];
}
constexpr const char* OptimizerName(OptimizerKind kind) { return RecordOf(kind).name; }
inline OptimizerSpec DefaultsOf(OptimizerKind kind) { return DefaultsOf(RecordOf(kind)); }

}  // namespace hdps
