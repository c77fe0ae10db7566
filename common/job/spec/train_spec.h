// The settings of training: steps, epochs, evaluations, and early ends.
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

enum class LastBatch : uint8_t { kShort, kFilled };  // Of an epoch.
constexpr auto WordsOf(LastBatch) {
  using enum LastBatch;
  return EnumWords(kShort, "short", kFilled, "filled");
}

inline constexpr double kDynamicScale = 0;

// Figures of examples that were scored before they were learned (train.progressive).
inline constexpr uint32_t kProgressiveWindowMax = 1'000'000;
struct ProgressiveSpec {
  uint32_t window = 0;  // Number of the newest examples, over all workers; 0: no figures.
};

struct TrainSpec {
  Mode mode = Mode::kSync;
  uint32_t staleness_bound = 0;  // kSsp, in clocks; 0 means sync.
  // kAsync, kSsp: what is done about pushes whose rows are old.
  uint32_t max_staleness = 0;     // In clocks; gradients of older rows are left out. 0: none are.
  double delay_compensation = 0;  // Lambda of Zheng et al. 2017; 0: gradients stay as they are.
  bool staleness_rate = false;    // The learning rate is divided by the updates that rows lack.
  uint32_t batch_size = 1024;     // Examples of a step, over all workers.
  LastBatch last_batch = LastBatch::kShort;
  uint32_t epochs = 1;
  uint64_t max_steps = 0;  // 0 for all steps of the epochs.
  // Parts of a worker's batch whose gradients are added before the push.
  uint32_t micro_batches = 1;
  uint32_t lookahead = 0;  // Steps by which rows are requested ahead.
  bool eval_each_epoch = true;
  uint64_t eval_every_steps = 0;     // 0: only as eval_each_epoch says, and at the end.
  uint32_t evals_per_epoch = 0;      // 0: as the two above say.
  std::vector<std::string> metrics;  // Metrics of evaluations; empty for those of the loss.
  ProgressiveSpec progressive = {};
  WatchSpec early_stop = {};
  PlateauSpec plateau = {};
  uint64_t log_every_steps = 0;  // Steps between two lines with the loss; 0 for none.
  double clip_value = 0;         // Clips each gradient to +-this; 0 for none.
  double clip_norm = 0;          // Clips the norm of all gradients of a step; 0 for none.
  // Factor of gradients while they travel as fp16, a power of two; kDynamicScale: chosen for each
  // message.
  double loss_scale = 1;
  // Interval at which hot rows are chosen; 0 for growing intervals.
  uint64_t cache_refresh_steps = 0;
};

}  // namespace hdps
