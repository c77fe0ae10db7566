// Decides whether the copies of a job's model have key lists of their own.
#include "common/job/step_lists.h"

#include <algorithm>

#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"

namespace hdps {

uint32_t PiecesOfStep(const Job& job) {
  const bool keeps_rows = std::ranges::any_of(
      job.tables, [](const TableSpec& table) { return table.vocab_cache_size > 0; });
  if (job.train.mode != Mode::kSync || job.train.micro_batches > 1 || keeps_rows) return 1;
  return std::min(job.parallel.interleave_num, kPiecesMax);
}

}  // namespace hdps
