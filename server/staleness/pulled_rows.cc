// Reads the rows of a pull once more in 32 bits, and compares them with those at the push.
#include "server/staleness/pulled_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/optimizers/delay_compensation.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "embedding/memory/averages.h"
#include "kernels/host/half_floats.h"

namespace hdps {
namespace {

bool SameKeys(const KeyList& a, const KeyList& b) {
  return &a == &b || (a.plan.num_floats == b.plan.num_floats &&
                      std::ranges::equal(a.keys.As<Key>(), b.keys.As<Key>()));
}

// Returns the gradients of a push in 32 bits, without the push's own power of two.
Buffer WidenedGradients(const PushRequest& push, size_t num_floats, std::span<float>* floats) {
  std::span<std::byte> bytes;
  Buffer wide = Buffer::Allocate(num_floats * sizeof(float), &bytes);
  *floats = {reinterpret_cast<float*>(bytes.data()), num_floats};
  if (push.format == DType::kFp32) {
    std::ranges::copy(push.gradients.As<float>(), floats->begin());
  } else {
    WidenFloats(WidestVectors(), push.format, push.gradients.data(), *floats);
  }
  if (push.scale_exponent != 0) {
    const float factor = std::ldexp(1.0f, -push.scale_exponent);
    for (float& value : *floats) value *= factor;
  }
  return wide;
}

}  // namespace

void CompensateDelay(float lambda, float scale, std::span<const float> now,
                     std::span<const float> then, std::span<float> gradients) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const float raw = gradients[i];
    const float corrected = raw + lambda * (raw * scale) * raw * (now[i] - then[i]);
    if (std::isfinite(corrected)) gradients[i] = corrected;
  }
}

PulledRows::PulledRows(const Job& job)
    : job_(job),
      lambda_(job.train.mode == Mode::kSync ? 0 : static_cast<float>(job.train.delay_compensation)),
      steps_max_(size_t{job.train.lookahead} + 2) {
  for (const TableSpec& table : job.tables) {
    takes_.push_back(TakesCompensation(RecordOf(table.optimizer)));
  }
}

void PulledRows::Keep(PeerId worker, const PullRequest& pull, std::shared_ptr<const KeyList> list,
                      uint64_t mark, ShardSet& shards) {
  std::map<Clock, Step>& steps = workers_[worker];
  Step& step = steps[pull.clock];
  const Rows rows = {mark, shards.Read(list->plan, list->keys, {})};
  if (step.list == nullptr || !SameKeys(*step.list, *list)) step = {std::move(list), {}, {}};
  if (pull.mode != PullMode::kRefresh) step.sparse = rows;
  if (pull.mode != PullMode::kPrefetch) step.dense = rows;
  if (steps.size() > steps_max_) steps.erase(steps.begin());
}

void PulledRows::Compensate(PeerId worker, float sum_scale, ShardSet& shards, PlannedPush* push) {
  const auto of_worker = workers_.find(worker);
  if (of_worker == workers_.end()) return;
  auto kept = of_worker->second.extract(push->request.clock);
  if (kept.empty() || !SameKeys(*kept.mapped().list, *push->list)) return;
  const Step& step = kept.mapped();
  PushRequest& request = push->request;
  const RequestPlan& plan = push->list->plan;
  std::span<float> gradients;
  Buffer wide = WidenedGradients(request, plan.num_floats, &gradients);
  const Buffer now = shards.Read(plan, push->list->keys, {});
  // What the push's own factor is beside the power of two, which is no longer in the gradients.
  push->scale = std::ldexp(push->scale, request.scale_exponent);
  for (const ShardPiece& piece : plan.pieces) {
    const bool dense = job_.tables[piece.table.value].dense;
    const Rows& then = dense ? step.dense : step.sparse;
    const uint64_t mark = dense ? request.dense_mark : request.rows_mark;
    if (!takes_[piece.table.value] || then.mark == 0 || then.mark != mark) continue;
    const std::span<const float> rows_now = piece.FloatsIn(now.As<float>());
    const std::span<const float> rows_then = piece.FloatsIn(then.floats.As<float>());
    const std::span<float> of_piece = piece.FloatsIn(gradients);
    const auto compensate = [&](size_t row, size_t rows) {
      const size_t begin = row * piece.row_floats, count = rows * piece.row_floats;
      CompensateDelay(lambda_, push->scale * sum_scale, rows_now.subspan(begin, count),
                      rows_then.subspan(begin, count), of_piece.subspan(begin, count));
    };
    const TableSpec& table = job_.tables[piece.table.value];
    if (table.averaged.empty()) {
      compensate(0, piece.num_keys);
      continue;
    }
    const std::span<const Key> keys = piece.KeysIn(push->list->keys);
    for (size_t k = 0; k < keys.size(); ++k) {
      // A running average has its distance from the batch's value as its gradient.
      if (!IsAveraged(table, keys[k])) compensate(k, 1);
    }
  }
  request.gradients = std::move(wide);
  request.format = DType::kFp32;
  request.scale_exponent = 0;
}

size_t PulledRows::bytes() const {
  size_t bytes = 0;
  for (const auto& [worker, steps] : workers_) {
    for (const auto& [clock, step] : steps) {
      bytes += step.sparse.floats.size() + step.dense.floats.size();
    }
  }
  return bytes;
}

uint64_t PulledRowBytes(const Job& job, uint64_t step_row_bytes) {
  if (job.train.mode == Mode::kSync || job.train.delay_compensation == 0) return 0;
  // With lookahead a step has rows of two moments.
  const uint64_t moments = job.train.lookahead > 0 ? 2 : 1;
  return (uint64_t{job.train.lookahead} + 2) * moments * step_row_bytes;
}

}  // namespace hdps
