// Chooses hot rows, agrees on them with the other workers, and moves them to and from the servers.
#include "worker/cache/device_cache.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/row_messages.h"
#include "worker/exchange/row_transfer.h"

namespace hdps {
namespace {

constexpr size_t kTransferBytes = 32 << 20;  // Bytes of rows in one exchange with the servers.

// Steps between two choices of the hot rows if the job does not set them: few at first, when little
// is known, and more later.
constexpr uint64_t kFirstDistance = 4, kSecondDistance = 12, kGrowth = 4, kDistanceMax = 4096;
// Steps whose keys are counted between two choices; of more steps, every n-th is counted.
constexpr uint64_t kCountedSteps = 64;

}  // namespace

std::string Describe(const CacheCounters& counters, uint64_t bytes) {
  const auto percent = [](uint64_t part, uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  char line[256];
  std::snprintf(
      line, sizeof(line),
      "%.2f %% of %llu keys were at hand (%.2f %% of the distinct keys of a step); "
      "%llu choices, %llu rows brought in, %llu given back; %.1f MiB",
      percent(counters.hits, counters.lookups), static_cast<unsigned long long>(counters.lookups),
      percent(counters.hot_rows, counters.rows), static_cast<unsigned long long>(counters.choices),
      static_cast<unsigned long long>(counters.swaps),
      static_cast<unsigned long long>(counters.given_back), static_cast<double>(bytes) / (1 << 20));
  return line;
}

DeviceCache::DeviceCache(const Job& job, std::vector<HotGroup> groups, DenseOps& ops,
                         NodeChannel& channel)
    : job_(job), channel_(channel), rows_(job, std::move(groups), ops) {}

Status DeviceCache::Join(ViewId view, uint32_t rank, Collective* group) {
  group_ = group;
  if (registry_ != nullptr && view_ == view && rank_ == rank) return Status();
  view_ = view;
  rank_ = rank;
  Forget();
  return group_ == nullptr ? Status() : CheckSettings();
}

void DeviceCache::Forget() {
  const size_t num_groups = rows_.groups().size();
  registry_ = std::make_shared<HotKeyRegistry>(rows_.groups(), /*counting=*/rank_ == 0);
  keys_.clear();
  for (size_t g = 0; g < num_groups; ++g) keys_.push_back(registry_->keys(g));
  rows_.Clear();
  steps_ = 0;
  const uint64_t every = job_.train.cache_refresh_steps;
  next_refresh_ = every > 0 ? every : kFirstDistance;
  distance_ = every > 0 ? every : kSecondDistance;
}

Status DeviceCache::CheckSettings() {
  std::vector<uint64_t> mine = {job_.train.cache_refresh_steps};
  for (const HotGroup& group : rows_.groups()) {
    mine.push_back(group.rows_max);
    for (const TableId table : group.tables) mine.push_back(table.value);
  }
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::vector<uint64_t>> all,
                        GatherLists<uint64_t>(*group_, mine));
  if (std::all_of(all.begin(), all.end(), [&](const auto& theirs) { return theirs == mine; })) {
    return Status();
  }
  return Status(Code::kInvalidArgument,
                "the workers were told to keep different rows; start all of them with the same "
                "vocab_cache_size and train.cache_refresh_steps");
}

CacheTally DeviceCache::tally() const {
  return {counters_.lookups, counters_.hits, counters_.swaps, rows_.bytes()};
}

bool DeviceCache::Stale(std::span<const HotSplit> hot) const {
  if (hot.size() != keys_.size()) return true;
  for (size_t g = 0; g < hot.size(); ++g) {
    if (hot[g].keys != keys_[g]) return true;
  }
  return false;
}

Result<StepVote> DeviceCache::Apply(HotStep step) {
  BeginStep(&step);
  return rows_.Apply(step);
}

Result<StepVote> DeviceCache::Sum(HotStep step) {
  BeginStep(&step);
  return rows_.Sum(step);
}

void DeviceCache::BeginStep(HotStep* step) {
  CHECK(!Stale(step->hot));
  for (const HotSplit& split : step->hot) {
    counters_.lookups += split.lookups;
    counters_.hits += split.hits;
    counters_.rows += split.slots.size();
    counters_.hot_rows += split.slots.size() - split.cold.size();
  }
  ++steps_;
  step->group = group_;
}

// ---- Choosing anew.

Status DeviceCache::Refresh(Clock clock) {
  HDPS_RETURN_IF_ERROR(rows_.Settle());
  Changes changes(keys_.size());
  if (rank_ == 0) changes = Choose();
  if (group_ != nullptr) HDPS_RETURN_IF_ERROR(Agree(&changes));
  for (size_t g = 0; g < changes.size(); ++g) {
    std::vector<uint32_t> leaving;
    for (const SlotChange& change : changes[g]) {
      if (change.slot < keys_[g]->size()) leaving.push_back(change.slot);
    }
    HDPS_RETURN_IF_ERROR(GiveBack(clock, g, leaving));
    HDPS_RETURN_IF_ERROR(BringIn(clock, g, changes[g]));
  }
  // No worker may read a row that another has yet to write back.
  if (group_ != nullptr) HDPS_RETURN_IF_ERROR(group_->Barrier());
  for (size_t g = 0; g < changes.size(); ++g) {
    if (changes[g].empty()) continue;
    keys_[g] = std::make_shared<const HotKeys>(Changed(*keys_[g], changes[g]));
    for (const SlotChange& change : changes[g]) rows_.dirty(g)[change.slot] = 0;
    registry_->Publish(g, keys_[g]);
    counters_.swaps += changes[g].size();
  }
  ++counters_.choices;
  next_refresh_ = steps_ + distance_;
  if (job_.train.cache_refresh_steps == 0) distance_ = std::min(distance_ * kGrowth, kDistanceMax);
  return Status();
}

DeviceCache::Changes DeviceCache::Choose() {
  Changes changes;
  const uint64_t stride = distance_ / kCountedSteps;
  for (size_t g = 0; g < keys_.size(); ++g) {
    changes.push_back(
        ChooseChanges(*keys_[g], registry_->TakeCounts(g, stride), rows_.groups()[g].rows_max));
  }
  return changes;
}

Status DeviceCache::Agree(Changes* changes) {
  std::vector<uint64_t> counts;
  for (const std::vector<SlotChange>& of_group : *changes) counts.push_back(of_group.size());
  HDPS_RETURN_IF_ERROR(BroadcastArray(*group_, 0, std::span(counts)));
  std::vector<uint32_t> slots;
  std::vector<Key> keys;
  for (size_t g = 0; g < changes->size(); ++g) {
    (*changes)[g].resize(counts[g]);  // Changes nothing for worker 0.
    for (const SlotChange& change : (*changes)[g]) {
      slots.push_back(change.slot);
      keys.push_back(change.key);
    }
  }
  HDPS_RETURN_IF_ERROR(BroadcastArray(*group_, 0, std::span(slots)));
  HDPS_RETURN_IF_ERROR(BroadcastArray(*group_, 0, std::span(keys)));
  size_t at = 0;
  for (std::vector<SlotChange>& of_group : *changes) {
    for (SlotChange& change : of_group) {
      change = {slots[at], keys[at]};
      ++at;
    }
  }
  return Status();
}

// ---- Rows to and from the servers.

namespace {

// Calls use(first, count) over parts of `count` rows, each large enough to be worth an exchange.
template <typename Use>
Status InParts(size_t count, size_t row_bytes, const Use& use) {
  const size_t part = std::max<size_t>(1, kTransferBytes / row_bytes);
  for (size_t first = 0; first < count; first += part) {
    HDPS_RETURN_IF_ERROR(use(first, std::min(part, count - first)));
  }
  return Status();
}

// Rows of one part of an exchange, for all tables of a group.
struct Parcel {
  Parcel(const Job& job, const HotRows& hot, const HotGroup& group, std::span<const Key> keys) {
    for (const TableId table : group.tables) {
      tables.push_back({table, job.tables[table.value].shard_by, hot.row_floats(table), keys});
    }
  }
  static size_t BytesOfRow(const HotRows& hot, const HotGroup& group) {
    size_t floats = 0;
    for (const TableId table : group.tables) floats += hot.row_floats(table);
    return floats * sizeof(float);
  }

  std::vector<KeysOfTable> tables;
  HotRows::GroupRows rows;
};

}  // namespace

Status DeviceCache::GiveBack(Clock clock, size_t g, std::span<const uint32_t> slots) {
  const uint32_t workers = group_ == nullptr ? 1 : group_->size();
  std::vector<uint32_t> mine;
  for (const uint32_t slot : slots) {
    if (slot % workers == rank_ && rows_.dirty(g)[slot] != 0) mine.push_back(slot);
  }
  const HotGroup& group = rows_.groups()[g];
  counters_.given_back += mine.size();
  return InParts(mine.size(), Parcel::BytesOfRow(rows_, group), [&](size_t first, size_t count) {
    const std::span<const uint32_t> part(mine.data() + first, count);
    std::vector<Key> keys;
    for (const uint32_t slot : part) keys.push_back(keys_[g]->keys()[slot]);
    Parcel parcel(job_, rows_, group, keys);
    parcel.rows = rows_.Get(g, part);
    return StoreRows(channel_, parcel.tables, clock,
                     std::vector<std::span<const float>>(parcel.rows.begin(), parcel.rows.end()));
  });
}

Status DeviceCache::BringIn(Clock clock, size_t g, std::span<const SlotChange> changes) {
  const HotGroup& group = rows_.groups()[g];
  return InParts(changes.size(), Parcel::BytesOfRow(rows_, group), [&](size_t first, size_t count) {
    std::vector<Key> keys;
    std::vector<uint32_t> slots;
    for (const SlotChange& change : changes.subspan(first, count)) {
      keys.push_back(change.key);
      slots.push_back(change.slot);
    }
    Parcel parcel(job_, rows_, group, keys);
    for (const KeysOfTable& table : parcel.tables) {
      parcel.rows.emplace_back(keys.size() * table.row_floats);
    }
    HDPS_RETURN_IF_ERROR(
        ReadRows(channel_, parcel.tables, clock, PullMode::kWithState,
                 std::vector<std::span<float>>(parcel.rows.begin(), parcel.rows.end())));
    rows_.Put(g, slots, parcel.rows);
    return Status();
  });
}

Status DeviceCache::Flush(Clock clock) {
  HDPS_RETURN_IF_ERROR(rows_.Settle());
  for (size_t g = 0; g < keys_.size(); ++g) {
    std::vector<uint32_t> all(keys_[g]->size());
    std::iota(all.begin(), all.end(), 0u);
    HDPS_RETURN_IF_ERROR(GiveBack(clock, g, all));
    std::fill(rows_.dirty(g).begin(), rows_.dirty(g).end(), 0);
  }
  return Status();
}

}  // namespace hdps
