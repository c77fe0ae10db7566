// Makes slices; reads, stores, digests and visits their rows.
#include "embedding/table.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/table_slices.h"
#include "common/protocol/manifest_parts.h"
#include "embedding/memory/row_init.h"
#include "embedding/table_slice.h"

namespace hdps {
namespace {

constexpr uint64_t kIndexSalt = 0x7c6e5f0d3b2a1908u;

// Returns the rows for `tables`, without their parts.
std::shared_ptr<SharedRows> RowsFor(std::span<const TableSpec* const> tables, TableId first,
                                    const RowPlacement& home) {
  size_t row_bytes = 0;
  for (const TableSpec* table : tables) row_bytes += RowBytes(*table);
  return std::make_shared<SharedRows>(row_bytes, kIndexSalt, first, home, !tables[0]->dense);
}

// Returns where the part of `table` lies in rows that `tables` share: behind each other the weights
// of all, those of the longest first, and then the rests in the opposite order. So the weights,
// which reads need, lie together, and a row that begins at a cache line has most of them there.
PartPlace PlaceOf(const TableSpec& table, std::span<const TableSpec* const> tables) {
  const auto weight_bytes = [](const TableSpec& spec) {
    return WeightBytes(spec.weights, spec.slice_dim());
  };
  const size_t own = weight_bytes(table);
  PartPlace place = {0, own};
  bool before = true;
  for (const TableSpec* other : tables) {
    if (other == &table) {
      before = false;
      continue;
    }
    const size_t weights = weight_bytes(*other);
    place.rest += weights;
    if (weights > own || (weights == own && before)) {
      place.weights += weights;
    } else {
      place.rest += RowBytes(*other) - weights;
    }
  }
  return place;
}

}  // namespace

TableSlice::Impl::Impl(const TableSpec& table_spec, TableId table_id, uint64_t job_seed,
                       const RowPlacement& home, VectorWidth vectors,
                       std::shared_ptr<SharedRows> shared, const PartPlace& place)
    : spec(table_spec),
      id(table_id),
      seed(job_seed),
      dim(table_spec.slice_dim()),
      first_column(FirstColumn(table_spec, home.shard, home.num_shards)),
      rule_floats(StateFloats(table_spec.optimizer, dim)),
      row_floats(dim + RowStateFloats(table_spec)),
      width(vectors),
      make([this](std::span<const Key> keys, size_t rest_at, std::byte* const* at) {
        InitialRows(keys, rest_at, at);
      }),
      policy(table_spec, table_id, job_seed, home.shard, home.num_shards),
      rows(std::move(shared)),
      number(rows->parts.size()) {
  rows->parts.push_back({spec.weights, dim, RoundingSeed(seed, id), place.weights, place.rest,
                         RowBytes(table_spec), make});
  rows->keys.emplace_back();
}

// The first table has what rounding down leaves.
size_t TableSlice::Impl::ShareOf(size_t bytes) const {
  const size_t row_bytes = rows->store.memory().row_bytes();
  const auto share = [&](const RowPart& own) { return bytes / row_bytes * own.bytes; };
  if (number > 0) return share(part());
  for (size_t p = 1; p < rows->parts.size(); ++p) bytes -= share(rows->parts[p]);
  return bytes;
}

void TableSlice::Impl::InitialRows(std::span<const Key> keys, size_t rest_at,
                                   std::byte* const* at) const {
  InitRows(width, spec.init, seed, id, keys, first_column, dim, at);
  for (size_t k = 0; k < keys.size(); ++k) {
    RoundToNearest(spec.weights, {reinterpret_cast<float*>(at[k]), dim});
    if (rest_at == 0) continue;
    auto* const rest = reinterpret_cast<float*>(at[k] + rest_at);
    InitState(spec.optimizer, dim, {rest, rule_floats});
    std::fill(rest + rule_floats, rest + row_floats - dim, 0.0f);
  }
}

TableSlice::TableSlice(const TableSpec& spec, TableId id, uint64_t seed, VectorWidth width)
    : TableSlice(spec, id, seed, RowPlacement(), width) {}
TableSlice::TableSlice(const TableSpec& spec, TableId id, uint64_t seed, const RowPlacement& home,
                       VectorWidth width) {
  const TableSpec* const alone = &spec;
  impl_ = std::make_unique<Impl>(spec, id, seed, home, width, RowsFor({&alone, 1}, id, home),
                                 PlaceOf(spec, {&alone, 1}));
}
TableSlice::TableSlice(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TableSlice::~TableSlice() = default;
TableSlice::TableSlice(TableSlice&&) noexcept = default;

std::vector<TableSlice> TableSlice::OfTables(std::span<const TableSpec> tables,
                                             std::span<const uint32_t> first_of_group,
                                             uint64_t seed, const RowPlacement& home,
                                             VectorWidth width) {
  CHECK_EQ(tables.size(), first_of_group.size());
  std::vector<TableSlice> slices;
  slices.reserve(tables.size());
  for (uint32_t t = 0; t < tables.size(); ++t) {
    const uint32_t first = first_of_group[t];
    CHECK(first <= t && first_of_group[first] == first) << "table " << t << " after " << first;
    std::vector<const TableSpec*> group;
    for (uint32_t other = first; other < tables.size(); ++other) {
      if (first_of_group[other] == first) group.push_back(&tables[other]);
    }
    std::shared_ptr<SharedRows> rows =
        first < t ? slices[first].impl_->rows : RowsFor(group, TableId{t}, home);
    slices.push_back(TableSlice(std::make_unique<TableSlice::Impl>(
        tables[t], TableId{t}, seed, home, width, std::move(rows), PlaceOf(tables[t], group))));
  }
  return slices;
}

const TableSpec& TableSlice::spec() const { return impl_->spec; }
uint32_t TableSlice::dim() const { return impl_->dim; }
uint32_t TableSlice::state_floats() const {
  return static_cast<uint32_t>(impl_->row_floats) - impl_->dim;
}
size_t TableSlice::num_rows() const { return impl_->rows->store.num_rows(); }
size_t TableSlice::row_bytes() const { return impl_->part().bytes; }
size_t TableSlice::bytes() const {
  const SharedRows& rows = *impl_->rows;
  return impl_->ShareOf(rows.store.bytes() + rows.changes.bytes() + rows.moves.bytes()) +
         impl_->policy.bytes();
}
size_t TableSlice::disk_bytes() const {
  const SharedRows& rows = *impl_->rows;  // A row on disk has its version behind it.
  const size_t row_bytes = rows.store.memory().row_bytes() + sizeof(uint32_t);
  return impl_->ShareOf(rows.store.rows_on_disk() * row_bytes);
}
bool TableSlice::SharesRowsWith(const TableSlice& other) const {
  return impl_->rows == other.impl_->rows;
}
const RowStore& TableSlice::memory() const { return impl_->rows->store.memory(); }
const Status& TableSlice::failure() const { return impl_->rows->store.failure(); }
const FrequencySketch* TableSlice::sketch() const { return impl_->policy.sketch(); }
FrequencySketch* TableSlice::sketch() { return impl_->policy.sketch(); }

RowCounts TableSlice::counters() const {
  return {.admitted = impl_->rows->admitted,
          .refused = impl_->refused,
          .evicted = impl_->rows->evicted,
          .fetched = impl_->rows->store.rows_fetched(),
          .on_disk = impl_->rows->store.rows_on_disk()};
}

void TableSlice::Read(std::span<const Key> keys, uint32_t row_floats, std::span<float> rows) {
  const JoinedRead read{this, row_floats, rows};
  ReadJoined(keys, {&read, 1});
}

void TableSlice::ReadJoined(std::span<const Key> keys, std::span<const JoinedRead> reads) {
  const Impl& first = *reads[0].table->impl_;
  for (const auto& [table, row_floats, rows] : reads) {
    const Impl& impl = *table->impl_;
    CHECK(impl.rows == first.rows) << impl.spec.name;
    CHECK(row_floats == impl.dim || row_floats == impl.row_floats) << row_floats << " floats a row";
    CHECK_EQ(rows.size(), keys.size() * row_floats);
  }
  std::vector<PartRead> parts;
  first.rows->store.InParts(
      keys, false, [&](size_t begin, std::span<const Key> some, const RowStore& memory) {
        parts.clear();
        for (const auto& [table, row_floats, rows] : reads) {
          parts.push_back({table->impl_->part(), row_floats, rows.data() + begin * row_floats});
        }
        ReadRows(first.width, memory, some, parts);
      });
}

void TableSlice::ReadChanged(std::span<const Key> keys, int64_t since_step,
                             std::vector<uint32_t>* positions, std::vector<float>* weights) {
  CHECK_LE(keys.size(), size_t{kRowVersionMax});
  const uint32_t since = RowVersion(since_step);
  const auto look = [&](size_t k, const RowSlot* slot, const std::byte* row) {
    const size_t dim = impl_->dim;
    if (slot == nullptr) {
      if (impl_->rows->evicted_step <= since_step) return;  // Otherwise it may have had a row.
      positions->push_back(static_cast<uint32_t>(k));
      weights->resize(weights->size() + dim);
      auto* const at = reinterpret_cast<std::byte*>(weights->data() + weights->size() - dim);
      return impl_->InitialRows({&keys[k], 1}, 0, &at);
    }
    // Every row with the largest version counts as changed.
    if (slot->version <= since && slot->version < kRowVersionMax) return;
    positions->push_back(static_cast<uint32_t>(k));
    weights->resize(weights->size() + dim);
    impl_->Expand(row, std::span(*weights).last(dim));
  };
  impl_->rows->store.InParts(
      keys, false, [&](size_t begin, std::span<const Key> part, const RowStore& memory) {
        memory.ForEachFound(part, impl_->part().offset + sizeof(float),
                            [&](size_t i, const RowSlot* slot, const std::byte* row) {
                              look(begin + i, slot, row);
                            });
      });
}

void TableSlice::Store(std::span<const Key> keys, uint32_t row_floats, std::span<const float> rows,
                       int64_t step) {
  CHECK(row_floats == dim() || row_floats == impl_->row_floats) << row_floats << " floats a row";
  CHECK_EQ(rows.size(), keys.size() * row_floats);
  SharedRows& shared = *impl_->rows;
  shared.OnChange(step);
  if (shared.joined()) {
    KeySums& sums = shared.keys[impl_->number];
    sums.AddStored(keys);
    const size_t policy_floats = row_floats == dim() ? 0 : impl_->policy.floats();
    for (size_t k = 0; policy_floats > 0 && k < keys.size(); ++k) {
      sums.AddPolicy(keys[k], rows.subspan((k + 1) * row_floats - policy_floats, policy_floats));
    }
  }
  impl_->ForEachRow(keys, step, [&](size_t k, std::byte* row) {
    WriteRow(impl_->part(), rows.subspan(k * row_floats, row_floats), row);
    if (row_floats == impl_->dim) {
      InitState(impl_->spec.optimizer, impl_->dim, impl_->State(row));
    }
  });
}

void TableSlice::Erase(std::span<const Key> keys) {
  SharedRows& shared = *impl_->rows;
  if (shared.joined()) shared.keys[impl_->number].AddErased(keys);
  // The first table's call has removed the whole rows, and may have stored some of them again.
  if (impl_->number == 0) shared.store.Erase(keys);
}

bool TableSlice::KeysAgree() const {
  const std::vector<KeySums>& keys = impl_->rows->keys;
  return std::ranges::all_of(keys, [&](const KeySums& own) { return own == keys[0]; });
}

Result<RowsDigest> TableSlice::Digest() const {
  RowsDigest digest;
  const uint64_t table_hash = TableHash(impl_->spec.name);
  std::vector<float> floats(impl_->row_floats);
  HDPS_RETURN_IF_ERROR(impl_->rows->store.ForEach([&](Key key, std::span<const std::byte> row) {
    impl_->Expand(row.data(), floats);
    digest.AddRow(table_hash, key, floats);
    return Status();
  }));
  return digest;
}

void TableSlice::MarkSaved(int64_t clock) {
  impl_->rows->changes.Mark(clock);
  impl_->rows->store.MarkSaved();
  if (sketch() != nullptr) sketch()->MarkSaved();
}

int64_t TableSlice::marked_clock() const { return impl_->rows->changes.marked_clock(); }
Result<uint64_t> TableSlice::CountChanged(int64_t since) const {
  return impl_->rows->store.CountChanged(since);
}
std::vector<Key> TableSlice::ErasedKeys() const { return impl_->rows->changes.erased(); }

void TableSlice::MarkMove(int64_t clock) { impl_->rows->moves.Mark(clock); }
int64_t TableSlice::move_clock() const { return impl_->rows->moves.marked_clock(); }
std::vector<Key> TableSlice::ErasedSinceMove() const { return impl_->rows->moves.erased(); }

Result<std::optional<RowCopy>> TableSlice::CopyRows(int64_t since, CopyBudget* budget) const {
  constexpr size_t kRowsAhead = 16, kLineBytes = 64;
  const TieredRows& store = impl_->rows->store;
  const size_t row_floats = impl_->row_floats, row_bytes = store.memory().row_bytes();
  if (store.rows_on_disk() > 0) {
    HDPS_ASSIGN_OR_RETURN(const uint64_t num_rows, store.CountChanged(since));
    if (!budget->Take(RowCopy::BytesWithKeys(num_rows, row_floats))) {
      return std::optional<RowCopy>();
    }
    RowCopy copy(num_rows, row_floats);
    const std::span<float> floats = copy.rows();
    HDPS_RETURN_IF_ERROR(store.ForEachInOrder(
        [&](Key key, std::span<const std::byte> row) {
          impl_->Expand(row.data(), floats.subspan(copy.keys.size() * row_floats, row_floats));
          copy.keys.push_back(key);
          return Status();
        },
        since));
    return std::optional<RowCopy>(std::move(copy));
  }
  const std::vector<KeyedRow> rows = store.RowsInOrder(since);
  if (!budget->Take(RowCopy::BytesWithKeys(rows.size(), row_floats))) {
    return std::optional<RowCopy>();
  }
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
  return std::optional<RowCopy>(std::move(copy));
}

std::optional<TableSlice::RowsOfSave> TableSlice::BeginSave(int64_t clock, int64_t since) const {
  std::shared_ptr<RowsAtSave> save = impl_->rows->store.BeginSave(clock, since);
  if (save == nullptr) return std::nullopt;
  const uint64_t num_rows = save->num_rows();
  const RowPart part = impl_->part();
  const auto read = [save = std::move(save), part, row_floats = impl_->row_floats](
                        size_t block_rows, const Visit& visit) -> Status {
    constexpr size_t kReadFloats = 1 << 16;  // About so many are read at a time.
    const size_t blocks = std::max<size_t>(1, kReadFloats / (block_rows * row_floats));
    RowsAtSave::Reader reader(save);
    std::vector<Key> keys;
    std::vector<float> rows;
    for (bool more = true; more;) {
      keys.clear();
      rows.resize(blocks * block_rows * row_floats);
      HDPS_RETURN_IF_ERROR(reader.Read(blocks * block_rows, [&](Key key,
                                                                std::span<const std::byte> row) {
        ReadRow(part, row.data(), std::span(rows).subspan(keys.size() * row_floats, row_floats));
        keys.push_back(key);
      }));
      more = keys.size() == blocks * block_rows;
      for (size_t begin = 0; begin < keys.size(); begin += block_rows) {
        const size_t count = std::min(block_rows, keys.size() - begin);
        HDPS_RETURN_IF_ERROR(
            visit(std::span(keys).subspan(begin, count),
                  std::span<const float>(rows).subspan(begin * row_floats, count * row_floats)));
      }
    }
    return {};
  };
  return RowsOfSave{num_rows, read};
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
  HDPS_RETURN_IF_ERROR(impl_->rows->store.ForEachInOrder(collect, since));
  return keys.empty() ? Status() : visit(keys, rows);
}

}  // namespace hdps
