// Defines what each mode allows a reader to see.
#include "tests/sim/tally.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>

#include "common/base/hash.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps::sim {
namespace {

// Applies one worker's push to one row, as a step of a single process.
void Count(TableSlice* table, Key key, Clock clock) {
  std::vector<float> gradient;
  for (uint32_t j = 0; j < table->dim(); ++j) gradient.push_back(-static_cast<float>(j + 1));
  const TableSlice::Gradients part{std::span<const Key>(&key, 1), gradient};
  table->Apply(std::span(&part, 1), 1, clock + 1);
}

}  // namespace

std::vector<TableSpec> TallyTables(bool rows_leave) {
  std::vector<TableSpec> tables(2);
  for (uint32_t t = 0; t < 2; ++t) {
    tables[t].name = t == 0 ? "shared" : "own";
    tables[t].dim = kDims[t];
    tables[t].optimizer.record = &RecordOf(OptimizerKind::kSgd);
    tables[t].optimizer.learning_rate = 1;
    tables[t].init.kind = InitKind::kZeros;
  }
  if (rows_leave) tables[1].policy.evict_after_steps = kLeaveAfterSteps;
  return tables;
}

std::vector<Key> SharedKeys() {
  std::vector<Key> keys;
  for (uint32_t k = 0; k < kSharedKeys; ++k) keys.push_back(MixBits(1000 + k));
  return keys;
}
Key OwnKey(uint32_t worker) { return MixBits(2000 + worker); }
Key FreshKey(uint32_t worker, Clock clock, bool rows_leave) {
  if (rows_leave) clock %= kFreshAgainSteps;
  return MixBits((uint64_t{worker} + 1) << 32 | static_cast<uint64_t>(clock));
}

Clock StepHistory::StepsOf(uint32_t worker, Clock clock, bool rows_leave) const {
  Clock steps = 0, away = 0;
  const auto has_left = [&] { return rows_leave && away > static_cast<Clock>(kLeaveAfterSteps); };
  for (auto at = workers_from_.begin(); at != workers_from_.end() && at->first < clock; ++at) {
    const auto next = std::next(at);
    const Clock until = next == workers_from_.end() ? clock : std::min(clock, next->first);
    if (worker >= at->second) {
      away += until - at->first;
      continue;
    }
    if (has_left()) steps = 0;
    away = 0;
    steps += until - at->first;
  }
  return has_left() ? 0 : steps;
}

uint32_t StepHistory::workers_max() const {
  uint32_t most = 0;
  for (const auto& [clock, workers] : workers_from_) most = std::max(most, workers);
  return most;
}

Tally::Tally(const TallyOptions& options)
    : options_(options),
      history_(options.num_workers),
      started_(kTalliedWorkersMax),
      acknowledged_(kTalliedWorkersMax) {
  CHECK_LE(options.num_workers, kTalliedWorkersMax);
}

Tally::Range Tally::Allowed(uint32_t reader, uint32_t of, Clock clock,
                            Clock acknowledged_before) const {
  if (options_.mode == Mode::kSync) return {clock, clock};
  // Its own pushes before the request are contained, though they may not be acknowledged yet.
  // Some may hold a push already that is made again after the reader's place was taken up.
  if (reader == of) return {acknowledged_before, std::max(clock, started_[of])};
  Range range{options_.owner_may_be_replaced ? 0 : acknowledged_before, started_[of]};
  if (options_.mode == Mode::kSsp) {
    range.low = std::max(range.low, clock - options_.staleness_bound);
  }
  return range;
}

void Tally::CheckRead(uint32_t worker, Clock clock, const std::vector<Clock>& acknowledged_before,
                      std::span<const float> shared_rows, std::span<const float> own_rows) {
  const std::string reader =
      "worker " + std::to_string(worker) + " at clock " + std::to_string(clock) + " reads ";
  Range shared;
  const size_t workers_now = own_rows.size() / kDims[1] - 1;
  for (uint32_t w = 0; w < history_.workers_max(); ++w) {
    const Range clocks = Allowed(worker, w, clock, acknowledged_before[w]);
    shared.low += history_.StepsOf(w, clocks.low);
    shared.high += history_.StepsOf(w, clocks.high);
    if (w >= workers_now) continue;  // The worker has left.
    CheckRow(reader + "the row of worker " + std::to_string(w),
             own_rows.subspan(w * kDims[1], kDims[1]),
             {history_.StepsOf(w, clocks.low, options_.rows_leave),
              history_.StepsOf(w, clocks.high, options_.rows_leave)});
  }
  const bool again = options_.mode != Mode::kSync && started_[worker] > clock;
  CheckRow(reader + "its fresh row", own_rows.last(kDims[1]), {0, again ? 1 : 0});
  for (uint32_t k = 0; k < kSharedKeys; ++k) {
    CheckRow(reader + "shared row " + std::to_string(k), shared_rows.subspan(k, 1), shared);
  }
}

void Tally::CheckRow(const std::string& what, std::span<const float> row, Range allowed) {
  const float tally = row[0];
  bool whole = tally == std::floor(tally);
  for (size_t j = 0; j < row.size(); ++j)
    whole = whole && row[j] == tally * static_cast<float>(j + 1);
  if (whole && tally >= static_cast<float>(allowed.low) &&
      tally <= static_cast<float>(allowed.high)) {
    return;
  }
  violations_.push_back(what + " as " + std::to_string(tally) + (whole ? "" : " (torn)") +
                        ", allowed " + std::to_string(allowed.low) + ".." +
                        std::to_string(allowed.high));
}

RowsDigest ExpectedDigest(uint64_t seed, const StepHistory& history, Clock steps, bool rows_leave) {
  const std::vector<TableSpec> specs = TallyTables(rows_leave);
  TableSlice shared(specs[0], TableId{0}, seed), own(specs[1], TableId{1}, seed);
  for (Clock clock = 0; clock < steps; ++clock) {
    for (uint32_t w = 0; w < history.WorkersAt(clock); ++w) {
      for (const Key key : SharedKeys()) Count(&shared, key, clock);
      Count(&own, OwnKey(w), clock);
      Count(&own, FreshKey(w, clock, rows_leave), clock);
    }
    shared.EndStep(clock + 1);
    own.EndStep(clock + 1);
  }
  RowsDigest digest = *shared.Digest();
  digest.Add(*own.Digest());
  return digest;
}

}  // namespace hdps::sim
