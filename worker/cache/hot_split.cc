// Groups tables, splits keys, and shares key counts between two threads.
#include "worker/cache/hot_split.h"

#include <algorithm>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "kernels/host/row_slab.h"

namespace hdps {
namespace {

// Keys that are counted for each cached row: enough to tell frequent keys from the rest.
constexpr uint64_t kCountedPerRow = 4;
constexpr uint64_t kCountedMin = 1 << 16;

// Number of keys from which a further thread pays.
constexpr size_t kFoundAtOnce = 8192;

// Calls run(first, count) for parts of n keys, in parallel if there are several.
template <typename Run>
void InParts(Executor* executor, size_t n, size_t part, const Run& run) {
  if (executor == nullptr || n <= part) return run(size_t{0}, n);
  executor->ParallelFor((n + part - 1) / part,
                        [&](size_t i) { run(i * part, std::min(part, n - i * part)); });
}

// Counts how often the examples name keys of the group, and hot keys among them.
void CountHits(const StepParts& parts, TableId table, Executor* executor, HotSplit* split) {
  std::vector<uint32_t> scratch;
  std::vector<uint64_t> hits;  // [features]
  split->lookups = split->hits = 0;
  for (size_t p = 0; p < parts.parts().size(); ++p) {
    const std::span<const uint32_t> slots = parts.SlotsOfPart(p, table, split->slots, &scratch);
    const std::vector<std::vector<uint32_t>>& features = parts.SetOf(p, table)->row_index;
    hits.assign(features.size(), 0);
    InParts(executor, features.size(), 1, [&](size_t first, size_t count) {
      for (size_t f = first; f < first + count; ++f) {
        uint64_t of_feature = 0;
        for (const uint32_t row : features[f]) of_feature += slots[row] != kNotInSlab;
        hits[f] = of_feature;
      }
    });
    for (size_t f = 0; f < features.size(); ++f) {
      split->lookups += features[f].size();
      split->hits += hits[f];
    }
  }
}

}  // namespace

std::vector<HotGroup> HotGroupsOf(const Job& job, const std::vector<int>& table_keys) {
  std::vector<HotGroup> groups;
  std::vector<int> set_of_group;
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    const uint64_t rows_max = job.tables[t].vocab_cache_size;
    if (rows_max == 0 || table_keys[t] < 0) continue;
    size_t g = 0;
    while (g < groups.size() &&
           (set_of_group[g] != table_keys[t] || groups[g].rows_max != rows_max)) {
      ++g;
    }
    if (g == groups.size()) {
      groups.push_back({{}, rows_max});
      set_of_group.push_back(table_keys[t]);
    }
    groups[g].tables.push_back({t});
  }
  return groups;
}

HotKeyRegistry::HotKeyRegistry(std::vector<HotGroup> groups, bool counting)
    : groups_(std::move(groups)) {
  MutexLock lock(mutex_);
  MutexLock counts_lock(counts_mutex_);
  for (const HotGroup& group : groups_) {
    keys_.push_back(std::make_shared<const HotKeys>());
    Counts& counts = counts_.emplace_back();
    if (!counting) continue;
    counts.keys =
        std::make_unique<FrequentKeys>(std::max(kCountedMin, kCountedPerRow * group.rows_max));
  }
}

int HotKeyRegistry::GroupOf(TableId table) const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::vector<TableId>& tables = groups_[g].tables;
    if (std::find(tables.begin(), tables.end(), table) != tables.end()) return static_cast<int>(g);
  }
  return -1;
}

std::shared_ptr<const HotKeys> HotKeyRegistry::keys(size_t g) const {
  MutexLock lock(mutex_);
  return keys_[g];
}

void HotKeyRegistry::Count(size_t g, std::span<const Key> keys) {
  MutexLock lock(counts_mutex_);
  Counts& counts = counts_[g];
  if (counts.keys != nullptr && counts.steps++ % counts.stride == 0) counts.keys->Add(keys);
}

void HotKeyRegistry::Publish(size_t g, std::shared_ptr<const HotKeys> keys) {
  MutexLock lock(mutex_);
  keys_[g] = std::move(keys);
}

std::vector<FrequentKeys::Counted> HotKeyRegistry::TakeCounts(size_t g, uint64_t stride) {
  MutexLock lock(counts_mutex_);
  Counts& counts = counts_[g];
  if (counts.keys == nullptr) return {};
  counts.stride = std::max<uint64_t>(stride, 1);
  std::vector<FrequentKeys::Counted> counted = counts.keys->All();
  counts.keys->Halve();
  return counted;
}

void SplitHot(const StepParts& parts, const HotKeyRegistry& registry, Executor* executor,
              std::vector<HotSplit>* splits) {
  splits->resize(registry.groups().size());
  for (size_t g = 0; g < splits->size(); ++g) {
    HotSplit& split = (*splits)[g];
    const TableId table = registry.groups()[g].tables.front();
    const std::span<const Key> keys = parts.KeysOf(table);
    split.keys = registry.keys(g);
    split.slots.resize(keys.size());
    InParts(executor, keys.size(), kFoundAtOnce, [&](size_t first, size_t count) {
      split.keys->Find(keys.subspan(first, count), split.slots.data() + first);
    });
    split.cold.clear();
    for (uint32_t i = 0; i < split.slots.size(); ++i) {
      if (split.slots[i] == kNotInSlab) split.cold.push_back(i);
    }
    CountHits(parts, table, executor, &split);
  }
}

}  // namespace hdps
