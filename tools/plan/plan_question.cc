// Reads from a job what the cost model asks.
#include "tools/plan/plan_question.h"

#include <algorithm>
#include <map>
#include <string>

#include "common/base/dtype.h"
#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/planning/table_choices.h"

namespace hdps {

Result<PlanQuestion> QuestionOf(const Job& job, uint32_t servers, uint32_t workers, double rows) {
  PlanQuestion question;
  HDPS_ASSIGN_OR_RETURN(question.shape, ShapeOf(job));
  question.rows = rows;
  question.batch = job.train.batch_size;
  question.micro_batches = job.train.micro_batches;
  question.sync = job.train.mode == Mode::kSync;
  question.first_epoch = job.train.epochs == 1;
  question.lookahead = job.train.lookahead;
  question.wire_float_bytes = static_cast<double>(FloatBytes(job.parallel.wire));
  question.allreduce = job.parallel.dense_exchange == DenseExchange::kAllreduce;
  question.servers = servers;
  question.workers = workers;
  question.checkpoint_every_steps = job.checkpoint.every_steps;
  if (const uint64_t delta = job.checkpoint.delta_every_steps; delta > 0) {
    uint64_t& every = question.checkpoint_every_steps;
    every = every == 0 ? delta : std::min(every, delta);
  }
  for (const uint64_t every : {job.checkpoint.every_seconds, job.checkpoint.delta_every_seconds}) {
    double& seconds = question.checkpoint_every_seconds;
    const auto more = static_cast<double>(every);
    if (every > 0) seconds = seconds == 0 ? more : std::min(seconds, more);
  }
  question.dead_after_seconds = job.cluster.dead_after_ms * 1e-3;
  if (question.batch < question.workers) {
    return Status(Code::kInvalidArgument,
                  "train.batch_size is " + std::to_string(question.batch) + " over " +
                      std::to_string(question.workers) +
                      " workers: each needs an example a step; --set=train.batch_size=" +
                      std::to_string(uint64_t{4096} * question.workers) + " gives each 4096");
  }
  return question;
}

double CountedRows(const Job& job) {
  double counted = 0;
  for (const auto& [feature, law] : LawsOf(job)) counted += law.values;
  return counted;
}

}  // namespace hdps
