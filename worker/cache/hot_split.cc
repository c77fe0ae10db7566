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

// Counts how often the examples name keys of the group, and hot keys among them.
void CountHits(const StepParts& parts, TableId table, HotSplit* split) {
  std::vector<uint32_t> scratch;
  split->lookups = split->hits = 0;
  for (size_t p = 0; p < parts.parts().size(); ++p) {
    const std::span<const uint32_t> slots = parts.SlotsOfPart(p, table, split->slots, &scratch);
    for (const std::vector<uint32_t>& rows : parts.SetOf(p, table)->row_index) {
      split->lookups += rows.size();
      for (const uint32_t row : rows) split->hits += slots[row] != kNotInSlab;
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
  for (const HotGroup& group : groups_) {
    State& state = states_.emplace_back();
    state.keys = std::make_shared<const HotKeys>();
    if (!counting) continue;
    state.counts =
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
  return states_[g].keys;
}

void HotKeyRegistry::Count(size_t g, std::span<const Key> keys) {
  MutexLock lock(mutex_);
  State& state = states_[g];
  if (state.counts != nullptr && state.steps++ % state.stride == 0) state.counts->Add(keys);
}

void HotKeyRegistry::Publish(size_t g, std::shared_ptr<const HotKeys> keys) {
  MutexLock lock(mutex_);
  states_[g].keys = std::move(keys);
}

std::vector<FrequentKeys::Counted> HotKeyRegistry::TakeCounts(size_t g, uint64_t stride) {
  MutexLock lock(mutex_);
  State& state = states_[g];
  if (state.counts == nullptr) return {};
  state.stride = std::max<uint64_t>(stride, 1);
  std::vector<FrequentKeys::Counted> counted = state.counts->All();
  state.counts->Halve();
  return counted;
}

void SplitHot(const StepParts& parts, const HotKeyRegistry& registry,
              std::vector<HotSplit>* splits) {
  splits->resize(registry.groups().size());
  for (size_t g = 0; g < splits->size(); ++g) {
    HotSplit& split = (*splits)[g];
    const TableId table = registry.groups()[g].tables.front();
    const std::span<const Key> keys = parts.KeysOf(table);
    split.keys = registry.keys(g);
    split.slots.resize(keys.size());
    split.keys->Find(keys, split.slots.data());
    split.cold.clear();
    for (uint32_t i = 0; i < split.slots.size(); ++i) {
      if (split.slots[i] == kNotInSlab) split.cold.push_back(i);
    }
    CountHits(parts, table, &split);
  }
}

}  // namespace hdps
