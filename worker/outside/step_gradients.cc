// Adds gradients to the sums of the lists that were pulled, and joins lists that share keys.
#include "worker/outside/step_gradients.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "kernels/host/half_scale.h"

namespace hdps {
namespace {

void AddTo(std::span<float> sum, std::span<const float> values) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

Status Mistake(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

}  // namespace

uint32_t StepGradients::dim(TableId table) const { return job_.tables[table.value].dim; }
const std::string& StepGradients::name(TableId table) const {
  return job_.tables[table.value].name;
}

bool StepGradients::empty() const {
  return std::ranges::none_of(
      lists_, [](const auto& list) { return std::ranges::any_of(list->tables, &KeySums::any); });
}

Status StepGradients::CheckFinite(TableId table, std::span<const Key> keys,
                                  std::span<const float> rows) const {
  if (std::isfinite(LargestMagnitude(rows))) return {};
  const auto bad = std::ranges::find_if_not(rows, [](float value) { return std::isfinite(value); });
  const auto at = static_cast<size_t>(bad - rows.begin());
  return Mistake("a gradient of table '" + name(table) + "' is " + std::to_string(*bad) +
                 ", for key " + std::to_string(keys[at / dim(table)]) + " at column " +
                 std::to_string(at % dim(table)) +
                 "; only finite ones can be pushed: a smaller learning rate or clipping may help");
}

Result<KeySums*> StepGradients::SumsOf(const PulledRows& pulled) {
  const auto list =
      std::ranges::find_if(lists_, [&](const auto& known) { return known->number == pulled.pull; });
  if (pulled.pull == 0) {
    return Mistake("rows of a pull for looking alone have no gradient; pull them for the step");
  }
  if (list == lists_.end()) {
    return Mistake("these rows of table '" + name(pulled.table) + "' were pulled in step " +
                   std::to_string(pulled.clock) +
                   ", which is over; a step pushes what it has pulled itself");
  }
  const auto to = std::ranges::find((*list)->tables, pulled.table, &KeySums::table);
  if (to == (*list)->tables.end()) return Mistake("that pull had no keys of this table");
  return &*to;
}

Status StepGradients::CheckSize(TableId table, size_t keys, std::span<const float> rows) const {
  const size_t wanted = keys * dim(table);
  if (rows.size() == wanted) return {};
  return Mistake("gradients of table '" + name(table) + "' are " + std::to_string(rows.size()) +
                 " floats; " + std::to_string(keys) + " keys of " + std::to_string(dim(table)) +
                 " floats are " + std::to_string(wanted));
}

Status StepGradients::Push(const PulledRows& pulled, std::span<const float> gradients) {
  HDPS_ASSIGN_OR_RETURN(KeySums* const to, SumsOf(pulled));
  HDPS_RETURN_IF_ERROR(CheckSize(pulled.table, to->keys.size(), gradients));
  HDPS_RETURN_IF_ERROR(CheckFinite(pulled.table, to->keys, gradients));
  to->pushed.clear();
  if (to->any()) {
    AddTo(to->sums, gradients);
  } else {
    to->sums.assign(gradients.begin(), gradients.end());
  }
  return {};
}

Status StepGradients::PushEach(const PulledRows& pulled, std::span<const float> gradients) {
  HDPS_ASSIGN_OR_RETURN(KeySums* const to, SumsOf(pulled));
  HDPS_RETURN_IF_ERROR(CheckSize(pulled.table, pulled.positions.size(), gradients));
  if (!std::isfinite(LargestMagnitude(gradients))) {
    std::vector<Key> asked;
    for (const uint32_t position : pulled.positions) asked.push_back(to->keys[position]);
    return CheckFinite(pulled.table, asked, gradients);
  }
  const size_t floats = dim(pulled.table);
  to->pushed.clear();
  // What leaves each float as it is.
  if (!to->any()) to->sums.assign(to->keys.size() * floats, -0.0f);
  const float* from = gradients.data();
  for (const uint32_t position : pulled.positions) {
    float* const sum = &to->sums[position * floats];
    for (size_t f = 0; f < floats; ++f) sum[f] += from[f];
    from += floats;
  }
  return {};
}

Status StepGradients::Push(TableId table, std::span<const Key> keys,
                           std::span<const float> gradients) {
  const uint32_t floats = dim(table);
  HDPS_RETURN_IF_ERROR(CheckSize(table, keys.size(), gradients));
  HDPS_RETURN_IF_ERROR(CheckFinite(table, keys, gradients));
  struct Place {
    KeySums* sums = nullptr;
    uint32_t row = 0;
  };
  std::vector<Place> places(keys.size());
  std::vector<uint32_t> index(keys.size());
  size_t missing = keys.size();
  for (const auto& list : lists_) {
    const auto sums = std::ranges::find(list->tables, table, &KeySums::table);
    if (sums == list->tables.end() || missing == 0) continue;
    const size_t known = sums->keys.size();
    index.resize(std::max(known, keys.size()));
    unique_.Reset(known + keys.size());
    unique_.Add(sums->keys, index.data());  // They are distinct, so each is at its own position.
    unique_.Add(keys, index.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (places[i].sums != nullptr || index[i] >= known) continue;
      places[i] = {&*sums, index[i]};
      --missing;
    }
  }
  if (missing > 0) {
    const auto at = std::ranges::find(places, nullptr, &Place::sums) - places.begin();
    return Mistake("key " + std::to_string(keys[static_cast<size_t>(at)]) + " of table '" +
                   name(table) + "' was not pulled in this step; pull it first");
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    auto& [sums, row] = places[i];
    if (!sums->any()) {
      sums->sums.assign(sums->keys.size() * floats, -0.0f);  // What leaves each float as it is.
      sums->pushed.assign(sums->keys.size(), false);
    }
    AddTo(std::span(sums->sums).subspan(size_t{row} * floats, floats),
          gradients.subspan(i * floats, floats));
    if (!sums->pushed.empty()) sums->pushed[row] = true;
  }
  return {};
}

PulledList* StepGradients::AsPulled() {
  PulledList* only = nullptr;
  for (const auto& list : lists_) {
    if (std::ranges::none_of(list->tables, &KeySums::any)) continue;
    if (only != nullptr || !std::ranges::all_of(list->tables, &KeySums::whole)) return nullptr;
    only = list.get();
  }
  return only;
}

std::vector<KeySums> StepGradients::Joined(Executor* executor) {
  std::vector<KeySums> joined;
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    std::vector<const KeySums*> parts;
    for (const auto& list : lists_) {
      const auto sums = std::ranges::find(list->tables, TableId{t}, &KeySums::table);
      if (sums != list->tables.end() && sums->any()) parts.push_back(&*sums);
    }
    if (!parts.empty()) joined.push_back(Join({t}, parts, executor));
  }
  return joined;
}

KeySums StepGradients::Join(TableId table, const std::vector<const KeySums*>& parts,
                            Executor* executor) {
  const TableSpec& spec = job_.tables[table.value];
  std::vector<std::vector<Key>> keys(parts.size());
  std::vector<std::vector<uint32_t>> index(parts.size());
  std::vector<KeyColumn> columns;
  for (size_t p = 0; p < parts.size(); ++p) {
    const KeySums& part = *parts[p];
    for (size_t k = 0; k < part.keys.size(); ++k) {
      if (part.whole() || part.pushed[k]) keys[p].push_back(part.keys[k]);
    }
    index[p].resize(keys[p].size());
    columns.push_back({keys[p], index[p].data()});
  }
  KeySums joined;
  joined.table = table;
  unique_.Find(columns, spec.shard_by, job_.cluster.shards, executor, &joined.keys,
               &joined.shard_begin);
  joined.sums.assign(joined.keys.size() * spec.dim, -0.0f);
  for (size_t p = 0; p < parts.size(); ++p) {
    const KeySums& part = *parts[p];
    size_t next = 0;
    for (size_t k = 0; k < part.keys.size(); ++k) {
      if (!part.whole() && !part.pushed[k]) continue;
      AddTo(std::span(joined.sums).subspan(size_t{index[p][next++]} * spec.dim, spec.dim),
            std::span(part.sums).subspan(k * spec.dim, spec.dim));
    }
  }
  return joined;
}

std::vector<KeysOfTable> ListsToSplit(const Job& job, std::span<const KeySums> tables) {
  std::vector<KeysOfTable> lists;
  for (const KeySums& table : tables) {
    const TableSpec& spec = job.tables[table.table.value];
    KeysOfTable& list = lists.emplace_back();
    list.table = table.table;
    list.shard_by = spec.shard_by;
    list.row_floats = spec.dim;
    list.keys = table.keys;
    list.shard_begin = table.shard_begin;
  }
  return lists;
}

}  // namespace hdps
