// Adds up the steps, and writes lines to the log.
#include "worker/role/training_log.h"

#include <glog/logging.h>

#include <cstdio>

#include "common/protocol/membership_messages.h"

namespace hdps {

void TrainingLog::BeginState() {
  examples_ = 0;
  loss_sum_ = 0;
  epoch_progress_ = 0;
}

Heartbeat TrainingLog::AddStep(const StepOutcome& step, Clock clock, double epoch_progress) {
  examples_ += step.examples;
  loss_sum_ += step.loss_sum;
  epoch_progress_ = epoch_progress;
  return ReportAt(clock);
}

Heartbeat TrainingLog::ReportAt(Clock clock) const {
  Heartbeat report;
  report.clock = clock;
  report.examples = examples_;
  report.loss_sum = loss_sum_;
  report.epoch_progress = epoch_progress_;
  return report;
}

void TrainingLog::PrintLoss(const StepOutcome& step, Clock clock, uint32_t epoch,
                            Clock in_epoch) const {
  if (print_every_ == 0 || !print_ || step.examples == 0) return;
  if (static_cast<uint64_t>(clock) % print_every_ != 0) return;
  char line[128];
  std::snprintf(line, sizeof(line), "epoch: %u step: %lld, loss is %.8g", epoch + 1,
                static_cast<long long>(in_epoch),
                step.loss_sum / static_cast<double>(step.examples));
  print_(line);
}

void TrainingLog::EndRound(uint32_t epoch, Clock clock, const StepTimes& times, const DenseOps& ops,
                           const DeviceCache* cache) {
  LOG(INFO) << "epoch " << epoch + 1 << " until step " << clock << ": " << Describe(times);
  LogTraffic(ops);
  if (cache != nullptr) {
    LOG(INFO) << "rows kept here: " << Describe(cache->counters(), cache->rows().bytes());
  }
  times_.Add(times);
}

void TrainingLog::LogTraffic(const DenseOps& ops) {
  if (ops.on_host()) return;
  const DeviceTraffic all = ops.traffic();
  const DeviceGraphs graphs = ops.graphs();
  LOG(INFO) << "over the bus: " << all.up_bytes - logged_.up_bytes << " bytes up in "
            << all.up_copies - logged_.up_copies << " copies, "
            << all.down_bytes - logged_.down_bytes << " bytes down in "
            << all.down_copies - logged_.down_copies << " copies; since the start "
            << graphs.launched << " graphs launched, " << graphs.built << " of them built";
  logged_ = all;
}

CollectiveTally TallyOf(const CollectiveCounts& counts, uint64_t state_bytes) {
  CollectiveTally tally;
  const auto take = [&counts](CollectiveKind kind, uint64_t* calls, uint64_t* bytes) {
    *calls = counts.of(kind).calls;
    *bytes = counts.of(kind).bytes;
  };
  take(CollectiveKind::kAllReduce, &tally.allreduce_calls, &tally.allreduce_bytes);
  take(CollectiveKind::kReduceScatter, &tally.reduce_scatter_calls, &tally.reduce_scatter_bytes);
  take(CollectiveKind::kAllGather, &tally.allgather_calls, &tally.allgather_bytes);
  tally.state_bytes = state_bytes;
  return tally;
}

}  // namespace hdps
