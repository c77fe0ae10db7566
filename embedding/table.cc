// Reads, updates and stores rows of the row store; combines updates by key.
#include "embedding/table.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "common/job/schedule.h"
#include "common/job/table_slices.h"
#include "common/protocol/manifest_parts.h"
#include "embedding/change_log.h"
#include "embedding/memory/averages.h"
#include "embedding/memory/gradient_sums.h"
#include "embedding/memory/optimizer.h"
#include "embedding/memory/row_batches.h"
#include "embedding/memory/row_init.h"
#include "embedding/memory/row_policy.h"
#include "embedding/memory/weight_format.h"
#include "embedding/memory/whole_tensors.h"
#include "embedding/row_eviction.h"
#include "embedding/tiered_rows.h"

namespace hdps {
namespace {

constexpr uint64_t kIndexSalt = 0x7c6e5f0d3b2a1908u;

}  // namespace

struct TableSlice::Impl {
  Impl(const TableSpec& table_spec, TableId table_id, uint64_t job_seed, const RowPlacement& home,
       VectorWidth vectors)
      : spec(table_spec),
        id(table_id),
        seed(job_seed),
        dim(table_spec.slice_dim()),
        first_column(FirstColumn(table_spec, home.shard, home.num_shards)),
        rule_floats(StateFloats(table_spec.optimizer, dim)),
        row_floats(dim + RowStateFloats(table_spec)),
        weight_bytes(WeightBytes(table_spec.weights, dim)),
        width(vectors),
        make([this](std::span<const Key> keys, size_t floats, std::byte* const* rows) {
          InitialRows(keys, floats, rows);
        }),
        policy(table_spec, table_id, job_seed, home.shard, home.num_shards),
        store(RowBytes(table_spec), kIndexSalt, table_id, home, !table_spec.dense) {}

  std::span<float> State(std::byte* row) const {
    return {reinterpret_cast<float*>(row + weight_bytes), rule_floats};
  }
  // Converts a row, or only its weights, to floats, as callers see them.
  void Expand(const std::byte* row, std::span<float> floats) const {
    ReadRow(spec.weights, dim, row, floats);
  }
  StoredRows RowsIn(RowStore& memory) const {
    return {spec.weights, dim, rounding_seed, memory, make};
  }

  // Fills the initial weights of rows, and their initial state if `floats` exceeds the weights.
  void InitialRows(std::span<const Key> keys, size_t floats, std::byte* const* rows) const {
    InitRows(width, spec.init, seed, id, keys, first_column, dim, rows);
    for (size_t k = 0; k < keys.size(); ++k) {
      auto* const row = reinterpret_cast<float*>(rows[k]);
      RoundToNearest(spec.weights, {row, dim});
      if (floats == dim) continue;
      InitState(spec.optimizer, dim, {row + dim, rule_floats});
      std::fill(row + dim + rule_floats, row + floats, 0.0f);
    }
  }
  void InitialRow(Key key, std::span<float> out) const {
    auto* const row = reinterpret_cast<std::byte*>(out.data());
    InitialRows({&key, 1}, out.size(), &row);
  }

  // Calls use(i, row of keys[i]) for every key in order, and makes missing rows. If rows spill to
  // disk, a row is valid only during its call.
  template <typename Use>
  void ForEachRow(std::span<const Key> keys, int64_t step, const Use& use) {
    store.InParts(keys, true, [&](size_t begin, std::span<const Key> part, RowStore& memory) {
      memory.ForEachMade(
          part, RowVersion(step),
          [&](std::span<const Key> new_keys, std::byte* const* rows) {
            MakeRows(RowsIn(memory), new_keys, rows);
          },
          [&](size_t i, std::byte* row) { use(begin + i, row); });
    });
  }

  void ApplyGradients(const OptimizerSpec& rule, std::span<const Key> keys, const float* values,
                      GradientScale scale, int64_t step, bool first_epoch);
  void ApplyToTensors(const OptimizerSpec& rule, int64_t step, TensorPeers* peers);
  // Computes the gradients that the rule is given, in `sums`: scaled, with penalties, clipped.
  void FinishSums(std::span<const Gradients> parts, float scale, const GradientTerms& terms);
  void NoteUpdates(std::span<const Key> keys, int64_t step, RowStore& memory);
  void FindAdmitted(std::span<const Key> keys, const float* values, int64_t step, bool first_epoch);
  void Evict(std::span<const Key> keys, int64_t step);

  const TableSpec spec;
  const TableId id;
  const uint64_t seed;
  const uint32_t dim, first_column;  // Of rows here; under kColumn a part of the table's.
  const uint32_t rule_floats;
  const size_t row_floats;  // [weights | state of the rule | state of the policy]
  const size_t weight_bytes;
  const uint64_t rounding_seed = RoundingSeed(seed, id);

  const VectorWidth width;
  const RowMaker make;

  RowPolicy policy;
  TieredRows store;
  ChangeLog changes;
  uint64_t admitted = 0, refused = 0, evicted = 0;
  int64_t evicted_step = -1;  // The last step that evicted rows.
  // Members to reuse their memory.
  GradientSums sums;
  std::vector<Key> admitted_keys;
  std::vector<float> admitted_values;
  std::vector<float> penalized;     // Weights of the rows of `sums`.
  std::vector<uint32_t> newcomers;  // Positions of keys without a row.
};

void TableSlice::Impl::FinishSums(std::span<const Gradients> parts, float scale,
                                  const GradientTerms& terms) {
  sums.Combine(parts, dim);
  const std::vector<Key>& keys = sums.keys();
  if (terms.penalizes()) {
    penalized.resize(keys.size() * dim);
    store.InParts(keys, false, [&](size_t begin, std::span<const Key> part, RowStore& memory) {
      ReadRows(width, RowsIn(memory), part, dim, penalized.data() + begin * dim);
    });
  }
  FinishGradients(spec, terms, scale, keys, penalized, {sums.values(), keys.size() * dim});
}

void TableSlice::Impl::ApplyGradients(const OptimizerSpec& rule, std::span<const Key> keys,
                                      const float* values, GradientScale scale, int64_t step,
                                      bool first_epoch) {
  const uint64_t rows_before = store.num_rows();
  if (!policy.admits_all()) {
    FindAdmitted(keys, values, step, first_epoch);
    keys = admitted_keys;
    values = admitted_values.data();
  }
  store.InParts(keys, true, [&](size_t begin, std::span<const Key> part, RowStore& memory) {
    ForEachRule(spec, rule, part, [&](const OptimizerSpec& own, size_t from, size_t count) {
      UpdateRows(width, own, RowsIn(memory), part.subspan(from, count),
                 values + (begin + from) * dim, scale, step);
    });
    if (policy.floats() > 0) NoteUpdates(part, step, memory);
  });
  admitted += store.num_rows() - rows_before;
}

void TableSlice::Impl::NoteUpdates(std::span<const Key> keys, int64_t step, RowStore& memory) {
  memory.ForEachFound(keys, memory.row_bytes(), [&](size_t, const RowSlot* slot, const std::byte*) {
    auto* state = reinterpret_cast<float*>(memory.Row(slot->row()) + weight_bytes);
    policy.OnUpdate(step, {state + rule_floats, policy.floats()});
  });
}

// Keys without a row are counted in key order, because their order in a push means nothing.
void TableSlice::Impl::FindAdmitted(std::span<const Key> keys, const float* values, int64_t step,
                                    bool first_epoch) {
  admitted_keys.clear();
  admitted_values.clear();
  newcomers.clear();
  const auto admit = [&](size_t k) {
    admitted_keys.push_back(keys[k]);
    admitted_values.insert(admitted_values.end(), values + k * dim, values + (k + 1) * dim);
  };
  store.InParts(keys, false, [&](size_t begin, std::span<const Key> part, RowStore& memory) {
    memory.ForEachFound(part, 1, [&](size_t i, const RowSlot* slot, const std::byte*) {
      if (slot != nullptr) return admit(begin + i);
      newcomers.push_back(static_cast<uint32_t>(begin + i));
    });
  });
  std::ranges::sort(newcomers, {}, [&](uint32_t k) { return keys[k]; });
  constexpr size_t kPrefetch = 16;
  for (size_t i = 0; i < newcomers.size(); ++i) {
    if (i + kPrefetch < newcomers.size()) policy.Prefetch(keys[newcomers[i + kPrefetch]]);
    if (policy.Admits(keys[newcomers[i]], step, first_epoch)) {
      admit(newcomers[i]);
    } else {
      ++refused;
    }
  }
}

void TableSlice::Impl::ApplyToTensors(const OptimizerSpec& rule, int64_t step, TensorPeers* peers) {
  std::vector<TensorChunk> chunks(sums.keys().size());
  ForEachRow(sums.keys(), step, [&](size_t k, std::byte* row) {
    const std::span<const float> gradient(sums.values() + k * dim, dim);
    const std::span<float> weights(reinterpret_cast<float*>(row), dim);
    chunks[k] = {sums.keys()[k], {gradient, weights, State(row)}};
  });
  if (!store.failure().ok()) return;  // Some chunks have no row.
  if (peers != nullptr) return UpdateChunks(spec, rule, step, std::move(chunks), *peers);
  UpdateTensors(spec, rule, step, std::move(chunks));
}

void TableSlice::Impl::Evict(std::span<const Key> keys, int64_t step) {
  if (keys.empty()) return;
  store.Erase(keys);
  changes.OnErase(keys, store.num_rows());
  evicted += keys.size();
  evicted_step = step;
}

TableSlice::TableSlice(const TableSpec& spec, TableId id, uint64_t seed, VectorWidth width)
    : TableSlice(spec, id, seed, RowPlacement(), width) {}
TableSlice::TableSlice(const TableSpec& spec, TableId id, uint64_t seed, const RowPlacement& home,
                       VectorWidth width)
    : impl_(std::make_unique<Impl>(spec, id, seed, home, width)) {}
TableSlice::~TableSlice() = default;
TableSlice::TableSlice(TableSlice&&) noexcept = default;

const TableSpec& TableSlice::spec() const { return impl_->spec; }
uint32_t TableSlice::dim() const { return impl_->dim; }
uint32_t TableSlice::state_floats() const {
  return static_cast<uint32_t>(impl_->row_floats) - impl_->dim;
}
size_t TableSlice::num_rows() const { return impl_->store.num_rows(); }
size_t TableSlice::bytes() const {
  return impl_->store.bytes() + impl_->policy.bytes() + impl_->changes.bytes();
}
const RowStore& TableSlice::memory() const { return impl_->store.memory(); }
const Status& TableSlice::failure() const { return impl_->store.failure(); }
const FrequencySketch* TableSlice::sketch() const { return impl_->policy.sketch(); }
FrequencySketch* TableSlice::sketch() { return impl_->policy.sketch(); }

RowCounts TableSlice::counters() const {
  return {.admitted = impl_->admitted,
          .refused = impl_->refused,
          .evicted = impl_->evicted,
          .fetched = impl_->store.rows_fetched(),
          .on_disk = impl_->store.rows_on_disk()};
}

void TableSlice::EndStep(int64_t step) {
  if (!impl_->policy.evicts()) return;
  const RowPolicy& policy = impl_->policy;
  const PolicyRows rows = {impl_->store, policy, impl_->spec.weights, impl_->dim,
                           impl_->weight_bytes + impl_->rule_floats * sizeof(float)};
  if (policy.LooksForOldAfter(step)) impl_->Evict(FindOldRows(rows, step), step);
  if (num_rows() > policy.max_rows()) {
    impl_->Evict(FindLowestRows(rows, num_rows() - policy.rows_left()), step);
  }
}

void TableSlice::Read(std::span<const Key> keys, uint32_t row_floats, std::span<float> rows) {
  CHECK(row_floats == dim() || row_floats == impl_->row_floats) << row_floats << " floats a row";
  CHECK_EQ(rows.size(), keys.size() * row_floats);
  impl_->store.InParts(keys, false, [&](size_t begin, std::span<const Key> part, RowStore& memory) {
    ReadRows(impl_->width, impl_->RowsIn(memory), part, row_floats,
             rows.subspan(begin * row_floats).data());
  });
}

void TableSlice::ReadChanged(std::span<const Key> keys, int64_t since_step,
                             std::vector<uint32_t>* positions, std::vector<float>* weights) {
  CHECK_LE(keys.size(), size_t{kRowVersionMax});
  const uint32_t since = RowVersion(since_step);
  const auto look = [&](size_t k, const RowSlot* slot, const std::byte* row) {
    const size_t dim = impl_->dim;
    if (slot == nullptr) {
      if (impl_->evicted_step <= since_step) return;  // Otherwise it may have had a row.
      positions->push_back(static_cast<uint32_t>(k));
      weights->resize(weights->size() + dim);
      return impl_->InitialRow(keys[k], std::span(*weights).last(dim));
    }
    // Every row with the largest version counts as changed.
    if (slot->version <= since && slot->version < kRowVersionMax) return;
    positions->push_back(static_cast<uint32_t>(k));
    weights->resize(weights->size() + dim);
    ReadWeights(impl_->spec.weights, row, std::span(*weights).last(dim));
  };
  impl_->store.InParts(
      keys, false, [&](size_t begin, std::span<const Key> part, const RowStore& memory) {
        memory.ForEachFound(part, sizeof(float),
                            [&](size_t i, const RowSlot* slot, const std::byte* row) {
                              look(begin + i, slot, row);
                            });
      });
}

void TableSlice::Store(std::span<const Key> keys, uint32_t row_floats, std::span<const float> rows,
                       int64_t step) {
  CHECK(row_floats == dim() || row_floats == impl_->row_floats) << row_floats << " floats a row";
  CHECK_EQ(rows.size(), keys.size() * row_floats);
  impl_->changes.OnChange(step);
  impl_->ForEachRow(keys, step, [&](size_t k, std::byte* row) {
    WriteRow(impl_->spec.weights, impl_->dim, rows.subspan(k * row_floats, row_floats), row);
    if (row_floats == impl_->dim) {
      InitState(impl_->spec.optimizer, impl_->dim, impl_->State(row));
    }
  });
}

void TableSlice::Apply(std::span<const Gradients> parts, float scale, int64_t step,
                       const UpdateTerms& update) {
  impl_->store.Fail(GradientSums::CheckNumber(parts));
  if (!failure().ok()) return;
  impl_->changes.OnChange(step);
  for (const Gradients& part : parts) {
    CHECK_EQ(part.values.size(), part.keys.size() * impl_->dim);
  }
  GradientSums& sums = impl_->sums;
  const OptimizerSpec rule = OptimizerAt(impl_->spec, step, update.rate);
  const GradientTerms terms(impl_->spec, update);
  const bool whole_tensors = RecordOf(rule).whole_tensors;
  if (whole_tensors || !terms.none()) {
    impl_->FinishSums(parts, scale, terms);
    if (whole_tensors) return impl_->ApplyToTensors(rule, step, update.peers);
    return impl_->ApplyGradients(rule, sums.keys(), sums.values(), {1, 1}, step,
                                 update.first_epoch);
  }
  if (parts.size() == 1) {
    const Gradients& part = parts[0];
    return impl_->ApplyGradients(rule, part.keys, part.values.data(), {part.scale, scale}, step,
                                 update.first_epoch);
  }
  sums.Combine(parts, impl_->dim);
  impl_->ApplyGradients(rule, sums.keys(), sums.values(), {1, scale}, step, update.first_epoch);
}

SquareSum TableSlice::Squares(std::span<const Gradients> parts, float scale) {
  if (!GradientSums::CheckNumber(parts).ok()) return {};  // Apply reports the error.
  impl_->FinishSums(parts, scale, GradientTerms(impl_->spec, {}));
  const std::vector<Key>& keys = impl_->sums.keys();
  return SquaresOf(impl_->spec, keys, {impl_->sums.values(), keys.size() * impl_->dim});
}

Result<RowsDigest> TableSlice::Digest() const {
  RowsDigest digest;
  const uint64_t table_hash = TableHash(impl_->spec.name);
  std::vector<float> floats(impl_->row_floats);
  HDPS_RETURN_IF_ERROR(impl_->store.ForEach([&](Key key, std::span<const std::byte> row) {
    impl_->Expand(row.data(), floats);
    digest.AddRow(table_hash, key, floats);
    return Status();
  }));
  return digest;
}

void TableSlice::MarkSaved(int64_t clock) {
  impl_->changes.Mark(clock);
  impl_->store.MarkSaved();
  if (sketch() != nullptr) sketch()->MarkSaved();
}

int64_t TableSlice::marked_clock() const { return impl_->changes.marked_clock(); }
Result<uint64_t> TableSlice::CountChanged(int64_t since) const {
  return impl_->store.CountChanged(since);
}
std::vector<Key> TableSlice::ErasedKeys() const { return impl_->changes.erased(); }
void TableSlice::Erase(std::span<const Key> keys) { impl_->store.Erase(keys); }

std::optional<RowCopy> TableSlice::CopyRows(int64_t since, CopyBudget* budget) const {
  constexpr size_t kRowsAhead = 16, kLineBytes = 64;
  if (impl_->store.rows_on_disk() > 0) return std::nullopt;
  const size_t row_floats = impl_->row_floats, row_bytes = impl_->store.memory().row_bytes();
  const std::vector<KeyedRow> rows = impl_->store.RowsInOrder(since);
  if (!budget->Take(RowCopy::BytesWithKeys(rows.size(), row_floats))) return std::nullopt;
  RowCopy copy(rows.size(), row_floats);
  const std::span<float> floats = copy.rows();
  for (size_t r = 0; r < rows.size(); ++r) {
    if (r + kRowsAhead < rows.size()) {
      const std::byte* const ahead = rows[r + kRowsAhead].row;
      for (size_t at = 0; at < row_bytes; at += kLineBytes) __builtin_prefetch(ahead + at);
    }
    copy.keys.push_back(rows[r].key);
    impl_->Expand(rows[r].row, floats.subspan(r * row_floats, row_floats));
  }
  return copy;
}

Status TableSlice::VisitRows(size_t block_rows, const Visit& visit, int64_t since) const {
  const size_t row_floats = impl_->row_floats;
  std::vector<Key> keys;
  std::vector<float> rows;
  rows.reserve(std::min(block_rows, num_rows()) * row_floats);
  const TieredRows::Visit collect = [&](Key key, std::span<const std::byte> row) {
    keys.push_back(key);
    rows.resize(rows.size() + row_floats);
    impl_->Expand(row.data(), std::span(rows).last(row_floats));
    if (keys.size() < block_rows) return Status();
    const Status status = visit(keys, rows);
    keys.clear();
    rows.clear();
    return status;
  };
  HDPS_RETURN_IF_ERROR(impl_->store.ForEachInOrder(collect, since));
  return keys.empty() ? Status() : visit(keys, rows);
}

}  // namespace hdps
