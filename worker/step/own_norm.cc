// Measures the norm of all gradients of a worker, then scales them down.
#include "worker/step/own_norm.h"

#include <functional>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "embedding/memory/averages.h"
#include "embedding/memory/gradient_scale.h"
#include "embedding/memory/update_terms.h"

namespace hdps {

void ClipOwnNorm(const Job& job, uint64_t examples, std::span<const Key> dense_keys,
                 const OwnGradients& gradients) {
  if (examples == 0) return;
  const auto for_each_row = [&](const std::function<void(std::span<float>)>& use) {
    for (size_t t = 0; t < job.tables.size(); ++t) {
      const TableSpec& spec = job.tables[t];
      const std::span<float> all = spec.dense ? gradients.dense : std::span(gradients.rows[t]);
      for (size_t at = 0; at < all.size(); at += spec.dim) {
        if (spec.dense && IsAveraged(spec, dense_keys[at / spec.dim])) continue;
        use(all.subspan(at, spec.dim));
      }
    }
  };
  const float part = PartScale(job.parallel, examples), sum = SumScale(job.parallel, 1, examples);
  std::vector<float> scaled;
  SquareSum squares;
  for_each_row([&](std::span<float> row) {
    scaled.assign(row.begin(), row.end());
    for (float& value : scaled) value = value * part * sum;
    squares.Add(SquaresOf(scaled));
  });
  const float shrink = ShrinkTo(job.train.clip_norm, squares);
  if (shrink == 1) return;
  for_each_row([shrink](std::span<float> row) {
    for (float& value : row) value *= shrink;
  });
}

}  // namespace hdps
