// What each mode allows a reader to see.
#include "tests/sim/tally.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>

#include "common/base/hash.h"

namespace hdps::sim {
namespace {

void StoreTally(TableSlice* table, Key key, Clock tally) {
  std::vector<float> row;
  for (uint32_t j = 0; j < table->dim(); ++j) {
    row.push_back(static_cast<float>((j + 1) * static_cast<uint64_t>(tally)));
  }
  table->Store(std::span<const Key>(&key, 1), table->dim(), row);
}

}  // namespace

std::vector<TableSpec> TallyTables() {
  std::vector<TableSpec> tables(2);
  for (uint32_t t = 0; t < 2; ++t) {
    tables[t].name = t == 0 ? "shared" : "own";
    tables[t].dim = kDims[t];
    tables[t].optimizer.kind = OptimizerKind::kSgd;
    tables[t].optimizer.learning_rate = 1;
    tables[t].init.kind = InitKind::kZeros;
  }
  return tables;
}

std::vector<Key> SharedKeys() {
  std::vector<Key> keys;
  for (uint32_t k = 0; k < kSharedKeys; ++k) keys.push_back(MixBits(1000 + k));
  return keys;
}
Key OwnKey(uint32_t worker) { return MixBits(2000 + worker); }
Key FreshKey(uint32_t worker, Clock clock) {
  return MixBits((uint64_t{worker} + 1) << 32 | static_cast<uint64_t>(clock));
}

Tally::Tally(const TallyOptions& options)
    : options_(options), started_(options.num_workers), acknowledged_(options.num_workers) {}

Tally::Range Tally::Allowed(uint32_t reader, uint32_t of, Clock clock,
                            Clock acknowledged_before) const {
  if (options_.mode == Mode::kSync) return {clock, clock};
  // Those that it sent before it asked are there, though nobody may have said so yet.
  if (reader == of) return {acknowledged_before, clock};
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
  for (uint32_t w = 0; w < options_.num_workers; ++w) {
    const Range range = Allowed(worker, w, clock, acknowledged_before[w]);
    shared.low += range.low;
    shared.high += range.high;
    CheckRow(reader + "the row of worker " + std::to_string(w),
             own_rows.subspan(w * kDims[1], kDims[1]), range);
  }
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

RowsDigest ExpectedDigest(uint64_t seed, uint32_t num_workers, Clock steps) {
  const std::vector<TableSpec> specs = TallyTables();
  TableSlice shared(specs[0], TableId{0}, seed), own(specs[1], TableId{1}, seed);
  for (const Key key : SharedKeys()) StoreTally(&shared, key, steps * Clock{num_workers});
  for (uint32_t w = 0; w < num_workers; ++w) {
    StoreTally(&own, OwnKey(w), steps);
    for (Clock c = 0; c < steps; ++c) StoreTally(&own, FreshKey(w, c), 1);
  }
  RowsDigest digest = *shared.Digest();
  digest.Add(*own.Digest());
  return digest;
}

}  // namespace hdps::sim
