// Updates rows: combines gradients by key, admits keys, applies rules, evicts rows.
#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/schedule.h"
#include "embedding/memory/averages.h"
#include "embedding/memory/whole_tensors.h"
#include "embedding/table_slice.h"

namespace hdps {

void TableSlice::Impl::FinishSums(float scale, const GradientTerms& terms) {
  const std::vector<Key>& keys = sums.keys();
  if (terms.penalizes()) {
    penalized.resize(keys.size() * dim);
    rows->store.InParts(keys, false,
                        [&](size_t begin, std::span<const Key> some, RowStore& memory) {
                          const PartRead read{part(), dim, penalized.data() + begin * dim};
                          ReadRows(width, memory, some, {&read, 1});
                        });
  }
  FinishGradients(spec, terms, scale, keys, penalized, {sums.values(), keys.size() * dim});
}

TableSlice::Impl::Combined TableSlice::Impl::Combine(std::span<const Gradients> parts,
                                                     const GradientTerms& terms, float scale,
                                                     bool whole_tensors,
                                                     const GradientSums** numbered) {
  for (const Gradients& part : parts) CHECK_EQ(part.values.size(), part.keys.size() * dim);
  const bool finishes = whole_tensors || !terms.none();
  if (!finishes && parts.size() == 1) {
    return {parts[0].keys, parts[0].values.data(), {parts[0].scale, scale}};
  }
  AddUp(parts, *numbered);
  *numbered = &sums;
  if (!finishes) return {sums.keys(), sums.values(), {1, scale}};
  FinishSums(scale, terms);
  return {sums.keys(), sums.values(), {1, 1}};
}

void TableSlice::Impl::ApplyGradients(const OptimizerSpec& rule, const Combined& gradients,
                                      int64_t step, bool first_epoch) {
  const uint64_t rows_before = rows->store.num_rows();
  std::span<const Key> keys = gradients.keys;
  const float* values = gradients.values;
  if (!policy.admits_all()) {
    FindAdmitted(keys, values, step, first_epoch);
    keys = admitted_keys;
    values = admitted_values.data();
  }
  rows->store.InParts(keys, true, [&](size_t begin, std::span<const Key> some, RowStore& memory) {
    ForEachRule(spec, rule, some, [&](const OptimizerSpec& own, size_t from, size_t count) {
      const PartUpdate update{part(), own, values + (begin + from) * dim, gradients.scale, policy};
      UpdateRows(width, memory, rows->parts, some.subspan(from, count), step, {&update, 1});
    });
  });
  rows->admitted += rows->store.num_rows() - rows_before;
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
  rows->store.InParts(keys, false, [&](size_t begin, std::span<const Key> part, RowStore& memory) {
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
    const std::span<float> weights(reinterpret_cast<float*>(row + part().offset), dim);
    chunks[k] = {sums.keys()[k], {gradient, weights, State(row)}};
  });
  if (!rows->store.failure().ok()) return;  // Some chunks have no row.
  if (peers != nullptr) return UpdateChunks(spec, rule, step, std::move(chunks), *peers);
  UpdateTensors(spec, rule, step, std::move(chunks));
}

PolicyRows TableSlice::Impl::RowsOfPolicy() {
  const size_t policy_at = part().rest + rule_floats * sizeof(float);
  return {rows->store, policy, spec.weights, dim, policy_at};
}

void TableSlice::Impl::Evict(std::span<const Key> keys, int64_t step) {
  if (keys.empty()) return;
  rows->store.Erase(keys);
  rows->changes.OnErase(keys, rows->store.num_rows());
  rows->moves.OnErase(keys, rows->store.num_rows());
  rows->evicted += keys.size();
  rows->evicted_step = step;
}

void TableSlice::Apply(std::span<const Gradients> parts, float scale, int64_t step,
                       const UpdateTerms& update) {
  impl_->rows->store.Fail(GradientSums::CheckNumber(parts));
  if (!failure().ok()) return;
  impl_->rows->OnChange(step);
  const OptimizerSpec rule = OptimizerAt(impl_->spec, step, update.rate, update.steps_before);
  const bool whole_tensors = RecordOf(rule).whole_tensors;
  const GradientSums* numbered = nullptr;
  const Impl::Combined gradients =
      impl_->Combine(parts, GradientTerms(impl_->spec, update), scale, whole_tensors, &numbered);
  if (whole_tensors) return impl_->ApplyToTensors(rule, step, update.peers);
  impl_->ApplyGradients(rule, gradients, step, update.first_epoch);
}

void TableSlice::ApplyJoined(std::span<const JoinedUpdate> updates, float scale, int64_t step,
                             const UpdateTerms& update) {
  SharedRows& rows = *updates[0].table->impl_->rows;
  rows.store.Fail(GradientSums::CheckNumber(updates[0].parts));
  if (!rows.store.failure().ok()) return;
  rows.OnChange(step);
  std::vector<OptimizerSpec> rules;
  std::vector<Impl::Combined> gradients;
  rules.reserve(updates.size());  // Updates refer to them.
  const GradientSums* numbered = nullptr;
  for (const auto& [table, parts] : updates) {
    Impl& impl = *table->impl_;
    CHECK(impl.rows.get() == &rows && impl.policy.admits_all()) << impl.spec.name;
    rules.push_back(OptimizerAt(impl.spec, step, update.rate, update.steps_before));
    CHECK(!RecordOf(rules.back()).whole_tensors) << impl.spec.name;
    gradients.push_back(
        impl.Combine(parts, GradientTerms(impl.spec, update), scale, false, &numbered));
    CHECK_EQ(gradients.back().keys.size(), gradients[0].keys.size());
  }
  const uint64_t rows_before = rows.store.num_rows();
  std::vector<PartUpdate> of_parts;
  rows.store.InParts(
      gradients[0].keys, true, [&](size_t begin, std::span<const Key> some, RowStore& memory) {
        of_parts.clear();
        for (size_t t = 0; t < updates.size(); ++t) {
          const Impl& impl = *updates[t].table->impl_;
          of_parts.push_back({impl.part(), rules[t], gradients[t].values + begin * impl.dim,
                              gradients[t].scale, impl.policy});
        }
        UpdateRows(updates[0].table->impl_->width, memory, rows.parts, some, step, of_parts);
      });
  rows.admitted += rows.store.num_rows() - rows_before;
}

SquareSum TableSlice::Squares(std::span<const Gradients> parts, float scale) {
  if (!GradientSums::CheckNumber(parts).ok()) return {};  // Apply reports the error.
  impl_->AddUp(parts, nullptr);
  impl_->FinishSums(scale, GradientTerms(impl_->spec, {}));
  const std::vector<Key>& keys = impl_->sums.keys();
  return SquaresOf(impl_->spec, keys, {impl_->sums.values(), keys.size() * impl_->dim});
}

void TableSlice::EndStep(int64_t step) {
  // Tables that share rows have the same policy, so the first one's look serves all.
  if (!impl_->policy.evicts() || impl_->number > 0) return;
  const RowPolicy& policy = impl_->policy;
  const PolicyRows rows = impl_->RowsOfPolicy();
  if (policy.LooksForOldAfter(step)) impl_->Evict(FindOldRows(rows, step), step);
  if (num_rows() > policy.max_rows()) {
    impl_->Evict(FindLowestRows(rows, num_rows() - policy.rows_left()), step);
  }
}

void TableSlice::EvictUntil(int64_t last, int64_t step) {
  if (impl_->number > 0) return;
  impl_->Evict(FindRowsUntil(impl_->RowsOfPolicy(), last), step);
}

}  // namespace hdps
