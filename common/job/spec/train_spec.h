// How a job trains: steps, epochs, evaluations, and when it ends by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/enum_words.h"
#include "common/job/spec/watch_spec.h"

namespace hdps {

enum class Mode : uint8_t { kSync, kAsync, kSsp };
constexpr auto WordsOf(Mode) {
  using enum Mode;
  return EnumWords(kSync, "sync", kAsync, "async", kSsp, "ssp");
}

struct TrainSpec {
  Mode mode = Mode::kSync;
  uint32_t staleness_bound = 0;  // kSsp, in clocks. ssp with bound 0 is sync.
  uint32_t batch_size = 1024;    // Examples of one step over all workers.
  uint32_t epochs = 1;
  uint64_t max_steps = 0;      // 0 = as many as the epochs have.
  uint32_t micro_batches = 1;  // Parts a worker cuts its batch into, summed before the push.
  uint32_t lookahead = 0;      // Steps whose rows are asked for before their turn.
  bool eval_each_epoch = true;
  uint64_t eval_every_steps = 0;     // 0 = only where eval_each_epoch says, and at the end.
  uint32_t evals_per_epoch = 0;      // 0: as the two above say.
  std::vector<std::string> metrics;  // Of evaluations; empty: those of the loss.
  WatchSpec early_stop = {};
  PlateauSpec plateau = {};
  double clip_value = 0;  // Each gradient stays within +-this; 0: any.
  double clip_norm = 0;   // The norm of all gradients of a step stays below this; 0: any.
  uint64_t cache_refresh_steps = 0;  // Between choices of the hot rows; 0: at growing distances.
};

}  // namespace hdps
