// Cuts by stride and adds in the order of the parts; with a single part nothing is copied.
#include "worker/model/step_parts.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hdps {
namespace {

SparseColumn CutColumn(const SparseColumn& column, const std::vector<uint32_t>& examples) {
  SparseColumn cut;
  cut.offsets.push_back(0);
  for (const uint32_t i : examples) {
    const uint32_t begin = column.offsets[i], end = column.offsets[i + 1];
    cut.keys.insert(cut.keys.end(), column.keys.begin() + begin, column.keys.begin() + end);
    if (!column.weights.empty()) {
      cut.weights.insert(cut.weights.end(), column.weights.begin() + begin,
                         column.weights.begin() + end);
    }
    cut.offsets.push_back(static_cast<uint32_t>(cut.keys.size()));
  }
  return cut;
}

// The examples of rows first, first + stride, first + 2 stride, ...
std::vector<uint32_t> ExamplesOf(const Batch& batch, uint32_t first, uint32_t stride) {
  std::vector<uint32_t> examples;
  if (batch.rows.empty()) {
    for (uint32_t i = first; i < batch.num_examples; i += stride) examples.push_back(i);
    return examples;
  }
  for (uint32_t i = 0; i < batch.num_examples; ++i) {
    if (batch.rows[i] % stride == first) examples.push_back(i);
  }
  return examples;
}

}  // namespace

uint32_t FirstRowOf(const Batch& batch, uint32_t part, uint32_t num_parts) {
  const auto begin = static_cast<uint32_t>(batch.first_row % num_parts);
  return (part + num_parts - begin) % num_parts;
}

Batch CutBatch(const Batch& batch, uint32_t part, uint32_t num_parts) {
  const uint32_t first = FirstRowOf(batch, part, num_parts);
  Batch cut;
  cut.num_numeric = batch.num_numeric;
  cut.first_row = batch.first_row;
  cut.positive_texts = batch.positive_texts;
  cut.epoch = batch.epoch;
  cut.own_row = batch.own_row + first * batch.row_stride;
  cut.row_stride = batch.row_stride * num_parts;
  const std::vector<uint32_t> examples = ExamplesOf(batch, first, num_parts);
  cut.num_examples = static_cast<uint32_t>(examples.size());
  cut.num_labels = batch.num_labels;
  for (const size_t i : examples) {
    const auto labels = batch.labels.begin() + static_cast<ptrdiff_t>(i * batch.num_labels);
    cut.labels.insert(cut.labels.end(), labels, labels + batch.num_labels);
    if (!batch.weights.empty()) cut.weights.push_back(batch.weights[i]);
    if (!batch.groups.empty()) cut.groups.push_back(batch.groups[i]);
    if (!batch.rows.empty()) cut.rows.push_back(batch.rows[i] / num_parts);
    const auto numeric = batch.numeric.begin() + static_cast<ptrdiff_t>(i * batch.num_numeric);
    cut.numeric.insert(cut.numeric.end(), numeric, numeric + batch.num_numeric);
  }
  for (const SparseColumn& column : batch.sparse) {
    cut.sparse.push_back(CutColumn(column, examples));
  }
  return cut;
}

void StepParts::Assign(Batch batch, uint32_t num_parts, KeyFinder& finder) {
  CHECK_GT(num_parts, 0u);
  num_examples_ = batch.num_examples;
  table_sets_ = finder.table_keys();
  parts_.resize(std::min(num_parts, batch.num_examples));
  if (num_parts == 1 && !parts_.empty()) {
    parts_[0].batch = std::move(batch);
  } else {
    size_t filled = 0;
    for (uint32_t p = 0; p < num_parts; ++p) {
      Batch part = CutBatch(batch, p, num_parts);
      if (part.num_examples > 0) parts_[filled++].batch = std::move(part);
    }
    parts_.resize(filled);  // Rows may have given no example at all.
  }
  for (Part& part : parts_) finder.Find(part.batch, &part.sets);
  MergeKeys();
}

void StepParts::MergeKeys() {
  positions_.clear();
  if (parts_.size() < 2) return;
  const size_t num_sets = parts_[0].sets.size();
  merged_.resize(num_sets);
  merged_field_shard_.assign(num_sets, {});
  positions_.assign(parts_.size(), std::vector<Positions>(num_sets));
  for (size_t s = 0; s < num_sets; ++s) {
    size_t keys_max = 0;
    for (const Part& part : parts_) keys_max += part.sets[s].unique.size();
    merged_[s].Reset(keys_max);
    for (size_t p = 0; p < parts_.size(); ++p) {
      const std::vector<Key>& keys = parts_[p].sets[s].unique;
      positions_[p][s].begin = static_cast<uint32_t>(merged_[s].unique().size());
      positions_[p][s].at.resize(keys.size());
      merged_[s].Add(keys, positions_[p][s].at.data());
      const std::vector<uint32_t>& shards = parts_[p].sets[s].field_shard;
      if (!shards.empty()) merged_field_shard_[s].resize(merged_[s].unique().size());
      for (size_t i = 0; i < shards.size(); ++i) {
        merged_field_shard_[s][positions_[p][s].at[i]] = shards[i];
      }
    }
  }
}

const KeySet* StepParts::SetOf(size_t part, TableId table) const {
  const int set = table_sets_[table.value];
  return set < 0 ? nullptr : &parts_[part].sets[static_cast<size_t>(set)];
}

std::span<const Key> StepParts::KeysOf(TableId table) const {
  if (parts_.empty() || table_sets_[table.value] < 0) return {};
  const size_t set = static_cast<size_t>(table_sets_[table.value]);
  if (parts_.size() == 1) return parts_[0].sets[set].unique;
  return merged_[set].unique();
}

std::span<const uint32_t> StepParts::ShardBeginOf(TableId table, ShardBy shard_by) const {
  if (parts_.size() != 1) return {};
  const KeySet* const set = SetOf(0, table);
  if (set == nullptr || set->shard_by != shard_by) return {};
  return set->shard_begin;
}

std::span<const uint32_t> StepParts::FieldShardsOf(TableId table) const {
  if (parts_.empty() || table_sets_[table.value] < 0) return {};
  const auto set = static_cast<size_t>(table_sets_[table.value]);
  if (parts_.size() == 1) return parts_[0].sets[set].field_shard;
  return merged_field_shard_[set];
}

RowSpans<const float> StepParts::RowsOfPart(size_t part, TableId table, uint32_t dim,
                                            const RowSpans<const float>& rows,
                                            std::vector<float>* scratch) const {
  if (parts_.size() == 1) return rows;
  const Positions& positions = positions_[part][static_cast<size_t>(table_sets_[table.value])];
  scratch->resize(positions.at.size() * dim);
  float* to = scratch->data();
  rows.WithAddresses([&](const auto& address) {
    for (const uint32_t at : positions.at) {
      std::memcpy(to, address(size_t{at} * dim), dim * sizeof(float));
      to += dim;
    }
  });
  return *scratch;
}

std::span<const uint32_t> StepParts::SlotsOfPart(size_t part, TableId table,
                                                 std::span<const uint32_t> values,
                                                 std::vector<uint32_t>* scratch) const {
  if (parts_.size() == 1) return values;
  scratch->clear();
  for (const uint32_t at : positions_[part][static_cast<size_t>(table_sets_[table.value])].at) {
    scratch->push_back(values[at]);
  }
  return *scratch;
}

void StepParts::AddRowGradients(size_t part, TableId table, uint32_t dim,
                                std::span<const float> of_part, std::span<float> sum) const {
  if (parts_.size() == 1) {
    std::copy(of_part.begin(), of_part.end(), sum.begin());
    return;
  }
  const Positions& positions = positions_[part][static_cast<size_t>(table_sets_[table.value])];
  CHECK_EQ(of_part.size(), positions.at.size() * dim);
  const float* from = of_part.data();
  for (const uint32_t at : positions.at) {
    float* to = sum.data() + size_t{at} * dim;
    if (at >= positions.begin) {
      std::memcpy(to, from, dim * sizeof(float));
    } else {
      for (uint32_t d = 0; d < dim; ++d) to[d] += from[d];
    }
    from += dim;
  }
}

void AddGradients(std::span<const float> part, std::span<float> sum) {
  CHECK_EQ(part.size(), sum.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

}  // namespace hdps
