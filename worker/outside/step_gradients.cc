// Adds gradients to the sums of the lists that were pulled, and joins lists that share keys.
#include "worker/outside/step_gradients.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/pooling.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "kernels/host/embedding_bag.h"
#include "kernels/host/finite.h"
#include "kernels/matrix.h"

namespace hdps {
namespace {

constexpr float kNothing = -0.0f;  // What leaves each float as it is when it is added.

void AddTo(std::span<float> sum, std::span<const float> values) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

std::span<float> RowAt(const RowSpans<float>& rows, size_t row, size_t floats) {
  return {rows.InOnePiece(row * floats, floats), floats};
}

// Calls use(part, first) for parts of the rows, side by side where there are many; `first` is the
// position of the part's first float.
template <typename Use>
void ForEachBlock(Executor* executor, const RowSpans<float>& rows, const Use& use) {
  constexpr size_t kBlock = size_t{1} << 15, kBlocksMin = 4;
  const size_t blocks = (rows.size() + kBlock - 1) / kBlock;
  const auto run = [&](size_t block) {
    const size_t first = block * kBlock;
    rows.ForEachPart(
        first, std::min(kBlock, rows.size() - first),
        [&](float* part, size_t from, size_t count) { use(std::span(part, count), first + from); });
  };
  if (executor != nullptr && blocks >= kBlocksMin) return executor->ParallelFor(blocks, run);
  for (size_t block = 0; block < blocks; ++block) run(block);
}

Status Mistake(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

}  // namespace

uint32_t StepGradients::dim(TableId table) const { return job_.tables[table.value].dim; }
const std::string& StepGradients::name(TableId table) const {
  return job_.tables[table.value].name;
}

bool StepGradients::zero() const {
  bool zero = true;
  for (const auto& list : lists_) {
    for (const KeySums& table : list->tables) {
      table.sums.ForEachPart(0, table.sums.size(), [&](const float* part, size_t, size_t count) {
        zero = zero && std::ranges::all_of(std::span(part, count), [](float v) { return v == 0; });
      });
    }
  }
  return zero;
}

Status StepGradients::CheckFinite(TableId table, std::span<const float> rows,
                                  const std::function<Key(size_t row)>& key_of) const {
  const size_t at = FirstNotFinite(rows);
  if (at == rows.size()) return {};
  return Mistake("a gradient of table '" + name(table) + "' is " + std::to_string(rows[at]) +
                 ", for key " + std::to_string(key_of(at / dim(table))) + " at column " +
                 std::to_string(at % dim(table)) +
                 "; only finite ones can be pushed: a smaller learning rate or clipping may help");
}

Result<StepGradients::OfPull> StepGradients::Find(const PulledRows& pulled) {
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
  return OfPull{list->get(), &*to};
}

Status StepGradients::CheckSize(TableId table, size_t keys, std::span<const float> rows) const {
  const size_t wanted = keys * dim(table);
  if (rows.size() == wanted) return {};
  return Mistake("gradients of table '" + name(table) + "' are " + std::to_string(rows.size()) +
                 " floats; " + std::to_string(keys) + " keys of " + std::to_string(dim(table)) +
                 " floats are " + std::to_string(wanted));
}

RowSpans<float> StepGradients::Place(PulledList* list, KeySums* sums) {
  RowSpans<float> place;
  if (in_place_) {
    if (!list->push) list->push.emplace(list->split, make_).Open();
    place = list->push->place(static_cast<size_t>(sums - list->tables.data()));
  }
  if (!place.empty()) return place;
  sums->own.resize(sums->keys().size() * dim(sums->table));
  return sums->own;
}

Status StepGradients::Push(const PulledRows& pulled, std::span<const float> gradients) {
  HDPS_ASSIGN_OR_RETURN(const OfPull to, Find(pulled));
  const std::vector<Key>& keys = to.sums->keys();
  HDPS_RETURN_IF_ERROR(CheckSize(pulled.table, keys.size(), gradients));
  const auto check = [&] {
    return CheckFinite(pulled.table, gradients, [&](size_t row) { return keys[row]; });
  };
  if (to.sums->any()) {
    HDPS_RETURN_IF_ERROR(check());
    ForEachBlock(executor_, to.sums->sums, [&](std::span<float> part, size_t first) {
      AddTo(part, gradients.subspan(first, part.size()));
    });
  } else {
    const RowSpans<float> place = Place(to.list, to.sums);
    std::atomic<bool> finite = true;
    ForEachBlock(executor_, place, [&](std::span<float> part, size_t first) {
      const std::span<const float> from = gradients.subspan(first, part.size());
      std::ranges::copy(from, part.begin());
      if (FirstNotFinite(from) < from.size()) finite = false;
    });
    if (!finite) HDPS_RETURN_IF_ERROR(check());
    to.sums->sums = place;
    copied_bytes_ += gradients.size_bytes();
  }
  to.sums->pushed.clear();
  return {};
}

bool StepGradients::AddEach(std::span<const uint32_t> positions, std::span<const float> rows,
                            size_t floats, bool fresh, const RowSpans<float>& sums) {
  constexpr size_t kSharedMin = size_t{1} << 15;  // Floats.
  while (numbers_.size() <= positions.size()) {
    numbers_.push_back(static_cast<uint32_t>(numbers_.size()));
  }
  const Bags bags{std::span(numbers_).first(positions.size() + 1), positions, {}};
  const ConstMatrix terms(rows.data(), positions.size(), floats, floats);
  const size_t num_rows = sums.size() / floats;
  const bool shared = executor_ != nullptr && rows.size() >= kSharedMin;
  const uint32_t slices = shared ? std::bit_ceil(static_cast<uint32_t>(executor_->threads())) : 1;
  std::atomic<bool> finite = true;
  const auto add = [&](size_t slice) {
    const auto for_own = [&](const auto& use) {
      for (size_t row = slice * kSliceRows; row < num_rows; row += size_t{slices} * kSliceRows) {
        const size_t count = std::min<size_t>(kSliceRows, num_rows - row);
        sums.ForEachPart(row * floats, count * floats,
                         [&](float* part, size_t, size_t size) { use(std::span(part, size)); });
      }
    };
    if (fresh) for_own([](std::span<float> part) { std::ranges::fill(part, kNothing); });
    PoolBagsBackward(bags, Pooling::kSum, {static_cast<uint32_t>(slice), slices}, terms, sums);
    for_own([&](std::span<float> part) {
      if (FirstNotFinite(part) < part.size()) finite = false;
    });
  };
  if (shared) {
    executor_->ParallelFor(slices, add);
  } else {
    add(0);
  }
  return finite;
}

Status StepGradients::PushEach(const PulledRows& pulled, std::span<const float> gradients) {
  HDPS_ASSIGN_OR_RETURN(const OfPull to, Find(pulled));
  HDPS_RETURN_IF_ERROR(CheckSize(pulled.table, pulled.positions.size(), gradients));
  const auto check = [&] {
    return CheckFinite(pulled.table, gradients,
                       [&](size_t row) { return to.sums->keys()[pulled.positions[row]]; });
  };
  const bool fresh = !to.sums->any();
  if (!fresh) HDPS_RETURN_IF_ERROR(check());
  const RowSpans<float> sums = fresh ? Place(to.list, to.sums) : to.sums->sums;
  const bool finite = AddEach(pulled.positions, gradients, dim(pulled.table), fresh, sums);
  // Fewer sums than gradients are looked at; a sum of finite ones may be beyond the largest float.
  if (fresh && !finite) HDPS_RETURN_IF_ERROR(check());
  to.sums->sums = sums;
  to.sums->pushed.clear();
  return {};
}

Status StepGradients::Push(TableId table, std::span<const Key> keys,
                           std::span<const float> gradients) {
  const uint32_t floats = dim(table);
  HDPS_RETURN_IF_ERROR(CheckSize(table, keys.size(), gradients));
  HDPS_RETURN_IF_ERROR(CheckFinite(table, gradients, [&](size_t row) { return keys[row]; }));
  struct Found {
    OfPull of;
    uint32_t row = 0;
  };
  std::vector<Found> found(keys.size());
  std::vector<uint32_t> index(keys.size());
  size_t missing = keys.size();
  for (const auto& list : lists_) {
    const auto sums = std::ranges::find(list->tables, table, &KeySums::table);
    if (sums == list->tables.end() || missing == 0) continue;
    const size_t known = sums->keys().size();
    index.resize(std::max(known, keys.size()));
    unique_.Reset(known + keys.size());
    unique_.Add(sums->keys(), index.data());  // They are distinct, so each is at its own position.
    unique_.Add(keys, index.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (found[i].of.sums != nullptr || index[i] >= known) continue;
      found[i] = {{list.get(), &*sums}, index[i]};
      --missing;
    }
  }
  if (missing > 0) {
    const auto first = std::ranges::find_if(found, [](const Found& f) { return !f.of.sums; });
    const auto at = static_cast<size_t>(first - found.begin());
    return Mistake("key " + std::to_string(keys[at]) + " of table '" + name(table) +
                   "' was not pulled in this step; pull it first");
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto& [of, row] = found[i];
    KeySums& sums = *of.sums;
    if (!sums.any()) {
      sums.sums = Place(of.list, &sums);
      ForEachBlock(nullptr, sums.sums,
                   [](std::span<float> part, size_t) { std::ranges::fill(part, kNothing); });
      sums.pushed.assign(sums.keys().size(), false);
    }
    AddTo(RowAt(sums.sums, row, floats), gradients.subspan(i * floats, floats));
    if (!sums.pushed.empty()) sums.pushed[row] = true;
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

std::vector<KeySums> StepGradients::Joined() {
  std::vector<KeySums> joined;
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    std::vector<const KeySums*> parts;
    for (const auto& list : lists_) {
      const auto sums = std::ranges::find(list->tables, TableId{t}, &KeySums::table);
      if (sums != list->tables.end() && sums->any()) parts.push_back(&*sums);
    }
    if (!parts.empty()) joined.push_back(Join({t}, parts));
  }
  return joined;
}

KeySums StepGradients::Join(TableId table, const std::vector<const KeySums*>& parts) {
  const TableSpec& spec = job_.tables[table.value];
  std::vector<std::vector<Key>> keys(parts.size());
  std::vector<std::vector<uint32_t>> index(parts.size());
  std::vector<KeyColumn> columns;
  for (size_t p = 0; p < parts.size(); ++p) {
    const KeySums& part = *parts[p];
    for (size_t k = 0; k < part.keys().size(); ++k) {
      if (part.whole() || part.pushed[k]) keys[p].push_back(part.keys()[k]);
    }
    index[p].resize(keys[p].size());
    columns.push_back({keys[p], index[p].data()});
  }
  const auto distinct = std::make_shared<DistinctKeys>();
  unique_.Find(columns, spec.shard_by, job_.cluster.shards, executor_, &distinct->keys,
               &distinct->shard_begin);
  KeySums joined;
  joined.table = table;
  joined.distinct = distinct;
  joined.own.assign(distinct->keys.size() * spec.dim, kNothing);
  joined.sums = joined.own;
  for (size_t p = 0; p < parts.size(); ++p) {
    const KeySums& part = *parts[p];
    size_t next = 0;
    for (size_t k = 0; k < part.keys().size(); ++k) {
      if (!part.whole() && !part.pushed[k]) continue;
      AddTo(RowAt(joined.sums, index[p][next++], spec.dim), RowAt(part.sums, k, spec.dim));
    }
  }
  copied_bytes_ += joined.own.size() * sizeof(float);
  return joined;
}

void StepGradients::Scale(std::span<KeySums> tables, float factor) const {
  for (const KeySums& table : tables) {
    ForEachBlock(executor_, table.sums, [factor](std::span<float> part, size_t) {
      for (float& value : part) value *= factor;
    });
  }
}

std::vector<KeysOfTable> ListsToSplit(const Job& job, std::span<const KeySums> tables) {
  std::vector<KeysOfTable> lists;
  for (const KeySums& table : tables) {
    const TableSpec& spec = job.tables[table.table.value];
    KeysOfTable& list = lists.emplace_back();
    list.table = table.table;
    list.shard_by = spec.shard_by;
    list.row_floats = spec.dim;
    list.keys = table.keys();
    list.shard_begin = table.distinct->shard_begin;
  }
  return lists;
}

}  // namespace hdps
