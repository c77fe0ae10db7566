// Cuts batches by stride, then in slices, and adds gradients in the order of the parts. A single
// part is not copied.
#include "worker/model/step_parts.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hdps {
namespace {

constexpr uint32_t kNoList = ~0u;

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

// Returns the examples of rows first, first + stride, first + 2 stride, ...
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

// Copies those examples; they keep the row numbers that they have in `batch`.
Batch TakeExamples(const Batch& batch, const std::vector<uint32_t>& examples) {
  Batch cut;
  cut.num_numeric = batch.num_numeric;
  cut.first_row = batch.first_row;
  cut.positive_texts = batch.positive_texts;
  cut.epoch = batch.epoch;
  cut.num_examples = static_cast<uint32_t>(examples.size());
  cut.num_labels = batch.num_labels;
  for (const size_t i : examples) {
    const auto labels = batch.labels.begin() + static_cast<ptrdiff_t>(i * batch.num_labels);
    cut.labels.insert(cut.labels.end(), labels, labels + batch.num_labels);
    if (!batch.weights.empty()) cut.weights.push_back(batch.weights[i]);
    if (!batch.groups.empty()) cut.groups.push_back(batch.groups[i]);
    if (!batch.unknown_ids.empty()) cut.unknown_ids.push_back(batch.unknown_ids[i]);
    if (!batch.rows.empty()) cut.rows.push_back(batch.rows[i]);
    const auto numeric = batch.numeric.begin() + static_cast<ptrdiff_t>(i * batch.num_numeric);
    cut.numeric.insert(cut.numeric.end(), numeric, numeric + batch.num_numeric);
  }
  for (const SparseColumn& column : batch.sparse) {
    cut.sparse.push_back(CutColumn(column, examples));
  }
  return cut;
}

}  // namespace

uint32_t FirstRowOf(const Batch& batch, uint32_t part, uint32_t num_parts) {
  const auto begin = static_cast<uint32_t>(batch.first_row % num_parts);
  return (part + num_parts - begin) % num_parts;
}

Batch CutBatch(const Batch& batch, uint32_t part, uint32_t num_parts) {
  const uint32_t first = FirstRowOf(batch, part, num_parts);
  Batch cut = TakeExamples(batch, ExamplesOf(batch, first, num_parts));
  cut.own_row = batch.own_row + first * batch.row_stride;
  cut.row_stride = batch.row_stride * num_parts;
  for (uint32_t& row : cut.rows) row /= num_parts;
  return cut;
}

Batch SliceBatch(const Batch& batch, uint32_t slice, uint32_t num_slices) {
  const uint32_t rows = batch.rows.empty() ? batch.num_examples : batch.rows.back() + 1;
  const auto bound = [&](uint32_t s) {
    return static_cast<uint32_t>(uint64_t{s} * rows / num_slices);
  };
  const uint32_t begin = bound(slice), end = bound(slice + 1);
  std::vector<uint32_t> examples;
  for (uint32_t i = 0; i < batch.num_examples; ++i) {
    const uint32_t row = batch.rows.empty() ? i : batch.rows[i];
    if (row >= begin && row < end) examples.push_back(i);
  }
  Batch cut = TakeExamples(batch, examples);
  cut.own_row = batch.own_row + begin * batch.row_stride;
  cut.row_stride = batch.row_stride;
  for (uint32_t& row : cut.rows) row -= begin;
  return cut;
}

Batch KeepNumbers(Batch batch, std::span<const uint32_t> columns) {
  const std::vector<float> all = std::exchange(batch.numeric, {});
  batch.numeric.reserve(batch.num_examples * columns.size());
  for (size_t i = 0; i < batch.num_examples; ++i) {
    for (const uint32_t column : columns) {
      batch.numeric.push_back(all[i * batch.num_numeric + column]);
    }
  }
  batch.num_numeric = static_cast<uint32_t>(columns.size());
  return batch;
}

Batch JoinBatches(std::span<const Batch> batches) {
  CHECK(!batches.empty());
  Batch joined = batches.front();
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const Batch& batch : batches.subspan(1)) {
    joined.num_examples += batch.num_examples;
    append(joined.labels, batch.labels);
    append(joined.weights, batch.weights);
    append(joined.groups, batch.groups);
    append(joined.unknown_ids, batch.unknown_ids);
    append(joined.rows, batch.rows);
    append(joined.numeric, batch.numeric);
    for (size_t f = 0; f < joined.sparse.size(); ++f) {
      SparseColumn& column = joined.sparse[f];
      const auto before = static_cast<uint32_t>(column.keys.size());
      append(column.keys, batch.sparse[f].keys);
      append(column.weights, batch.sparse[f].weights);
      for (size_t i = 1; i < batch.sparse[f].offsets.size(); ++i) {
        column.offsets.push_back(before + batch.sparse[f].offsets[i]);
      }
    }
  }
  return joined;
}

void StepParts::Assign(Batch batch, const PartCount& count, KeyFinder& finder) {
  CHECK_GT(count.micro_batches, 0u);
  CHECK_GT(count.slices, 0u);
  sliced_ = count.slices > 1;
  table_sets_ = finder.table_keys();
  num_examples_ = 0;
  const uint64_t num_parts = uint64_t{count.micro_batches} * count.slices;
  parts_.resize(std::min<uint64_t>(num_parts, batch.num_examples));
  size_t filled = 0;
  // `of_workers`: the batches of all workers, or of this one alone.
  const auto fill = [&](std::vector<Batch> of_workers, uint32_t group, uint32_t piece) {
    const bool all = count.workers > 0;
    std::optional<Batch> of_all;
    if (all) of_all = JoinBatches(of_workers);
    Batch& own = of_workers[all ? count.worker : 0];
    if ((all ? of_all->num_examples : own.num_examples) == 0) return;
    num_examples_ += own.num_examples;
    Part& part = parts_[filled++];
    part.batch = std::move(own);
    part.of_all = std::move(of_all);
    part.group = group;
    part.piece = piece;
  };
  for (uint32_t m = 0; m < count.micro_batches && !parts_.empty(); ++m) {
    std::vector<Batch> of_workers;
    for (uint32_t w = 0; w < count.workers; ++w) {
      Batch own = CutBatch(batch, w, count.workers);
      of_workers.push_back(count.micro_batches == 1 ? std::move(own)
                                                    : CutBatch(own, m, count.micro_batches));
    }
    if (count.workers == 0) {
      of_workers.push_back(count.micro_batches == 1 ? std::move(batch)
                                                    : CutBatch(batch, m, count.micro_batches));
    }
    for (uint32_t s = 0; count.slices > 1 && s < count.slices; ++s) {
      std::vector<Batch> slices;
      for (const Batch& part : of_workers) slices.push_back(SliceBatch(part, s, count.slices));
      fill(std::move(slices), m, s * count.pieces / count.slices);
    }
    if (count.slices == 1) fill(std::move(of_workers), m, 0);
  }
  parts_.resize(filled);  // Rows may have given no examples at all.
  for (Part& part : parts_) finder.Find(part.sources(), &part.sets);
  MergeKeys();
  if (count.pieces > 1) ListKeys(count.pieces);
}

void StepParts::ListKeys(uint32_t pieces) {
  const size_t num_sets = parts_.empty() ? 0 : parts_[0].sets.size();
  lists_.resize(pieces + 1);
  for (auto& of_sets : lists_) of_sets.resize(num_sets);
  for (size_t s = 0; s < num_sets; ++s) {
    const size_t keys = parts_.size() == 1 ? parts_[0].sets[s].unique.size()  //
                                           : merged_[s].unique().size();
    list_of_key_.assign(keys, kNoList);
    for (size_t p = 0; p < parts_.size(); ++p) {
      const uint32_t own = 1 + parts_[p].piece;
      const auto note = [&](uint32_t at) {
        uint32_t& list = list_of_key_[at];
        list = list == kNoList || list == own ? own : 0;
      };
      if (parts_.size() == 1) {
        for (uint32_t at = 0; at < keys; ++at) note(at);
      } else {
        std::ranges::for_each(positions_[p][s].at, note);
      }
    }
    for (auto& of_sets : lists_) of_sets[s].clear();
    for (uint32_t at = 0; at < keys; ++at) lists_[list_of_key_[at]][s].push_back(at);
  }
}

std::span<const uint32_t> StepParts::PositionsOfList(size_t list, TableId table) const {
  if (parts_.empty() || table_sets_[table.value] < 0) return {};
  return lists_[list][static_cast<size_t>(table_sets_[table.value])];
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

std::span<const uint32_t> StepParts::PositionsOfPart(size_t part, TableId table) const {
  if (parts_.size() == 1) return {};
  return positions_[part][static_cast<size_t>(table_sets_[table.value])].at;
}

void StepParts::AddRowGradients(size_t part, TableId table, uint32_t dim,
                                std::span<const float> of_part, GroupSum* group,
                                std::span<float> sum) const {
  if (parts_.size() == 1) {
    std::copy(of_part.begin(), of_part.end(), sum.begin());
    return;
  }
  const auto set = static_cast<size_t>(table_sets_[table.value]);
  const auto put = [dim](const float* from, bool first, float* to) {
    if (first) {
      std::memcpy(to, from, dim * sizeof(float));
    } else {
      for (uint32_t d = 0; d < dim; ++d) to[d] += from[d];
    }
  };
  const Positions& positions = positions_[part][set];
  CHECK_EQ(of_part.size(), positions.at.size() * dim);
  const float* from = of_part.data();
  if (!nested()) {
    for (const uint32_t at : positions.at) {
      put(from, at >= positions.begin, sum.data() + size_t{at} * dim);
      from += dim;
    }
    return;
  }
  group->values.resize(sum.size());
  if (part == 0) group->begun.assign(sum.size() / dim, 0);
  for (const uint32_t at : positions.at) {
    put(from, group->begun[at] == 0, group->values.data() + size_t{at} * dim);
    group->begun[at] = 1;
    from += dim;
  }
  if (!EndsGroup(part)) return;
  size_t first = part;
  while (!BeginsGroup(first)) --first;
  for (size_t p = first; p <= part; ++p) {
    for (const uint32_t at : positions_[p][set].at) {
      if (std::exchange(group->begun[at], 0) == 0) continue;
      put(group->values.data() + size_t{at} * dim, at >= positions_[first][set].begin,
          sum.data() + size_t{at} * dim);
    }
  }
}

void AddGradients(std::span<const float> part, std::span<float> sum) {
  CHECK_EQ(part.size(), sum.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

}  // namespace hdps
