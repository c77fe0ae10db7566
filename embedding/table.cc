// Reads, updates and stores over the row store; updates combined key by key.
#include "embedding/table.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "common/hash.h"
#include "embedding/optimizer.h"
#include "embedding/row_batches.h"
#include "embedding/row_store.h"

namespace hdps {
namespace {

constexpr uint64_t kIndexSalt = 0x7c6e5f0d3b2a1908u;
// Keys that are sorted at a time, 8 bytes each, to visit the rows in order.
constexpr size_t kSortedKeysMax = size_t{1} << 20;

// The sum of several workers' gradients, key by key, in the order of the workers.
//
// Invariant: sums_[i * dim ...] belongs to keys_[i]; keys stand in the order of first appearance.
class GradientSums {
 public:
  void Combine(std::span<const TableSlice::Gradients> parts, size_t dim);
  const std::vector<Key>& keys() const { return keys_; }
  const float* values() const { return sums_.data(); }  // [keys, dim]

 private:
  std::vector<Key> keys_;
  std::vector<float> sums_;
  std::vector<uint32_t> slots_;  // 1 + position in keys_, 0 = empty.
};

void GradientSums::Combine(std::span<const TableSlice::Gradients> parts, size_t dim) {
  size_t keys_max = 0;
  for (const auto& part : parts) keys_max += part.keys.size();
  CHECK_LT(keys_max, size_t{1} << 31) << "keys of one step in one shard";
  slots_.assign(std::bit_ceil(2 * keys_max + 1), 0);
  keys_.clear();
  sums_.resize(keys_max * dim);
  const size_t mask = slots_.size() - 1;
  for (const auto& part : parts) {
    for (size_t k = 0; k < part.keys.size(); ++k) {
      const Key key = part.keys[k];
      const float* gradient = &part.values[k * dim];
      size_t at = MixBits(key ^ kIndexSalt) & mask;
      while (slots_[at] != 0 && keys_[slots_[at] - 1] != key) at = (at + 1) & mask;
      if (slots_[at] == 0) {
        // A sum starts as its first part, not as 0 plus it: -0 stays -0.
        float* sum = &sums_[keys_.size() * dim];
        for (size_t i = 0; i < dim; ++i) sum[i] = gradient[i] * part.scale;
        keys_.push_back(key);
        slots_[at] = static_cast<uint32_t>(keys_.size());
      } else {
        float* sum = &sums_[(slots_[at] - 1) * dim];
        for (size_t i = 0; i < dim; ++i) sum[i] += gradient[i] * part.scale;
      }
    }
  }
}

}  // namespace

void RowsDigest::Add(const RowsDigest& other) {
  sum[0] += other.sum[0];
  sum[1] += other.sum[1];
  rows += other.rows;
}

void RowsDigest::AddRow(uint64_t table_hash, Key key, std::span<const float> row) {
  const uint64_t seed = CombineKeys(table_hash, key);
  sum[0] += HashBytes(std::as_bytes(row), seed);
  sum[1] += HashBytes(std::as_bytes(row), ~seed);
  ++rows;
}

uint64_t TableHash(const std::string& table_name) { return HashString(table_name); }

struct TableSlice::Impl {
  Impl(const TableSpec& table_spec, TableId table_id, uint64_t job_seed, VectorWidth vectors)
      : spec(table_spec),
        id(table_id),
        seed(job_seed),
        dim(table_spec.dim),
        state_floats(StateFloats(table_spec.optimizer, table_spec.dim)),
        row_floats(dim + state_floats),
        width(vectors),
        make([this](Key key, std::span<float> row) { InitialRow(key, row); }),
        store(row_floats * sizeof(float), kIndexSalt) {}

  std::span<float> Weights(float* row) const { return {row, dim}; }
  std::span<float> State(float* row) const { return {row + dim, state_floats}; }

  // The weights of a row that is not there, and its state where `out` has room for it.
  void InitialRow(Key key, std::span<float> out) const {
    InitRow(spec.init, seed, id, key, out.first(dim));
    if (out.size() > dim) InitState(spec.optimizer, dim, out.subspan(dim));
  }

  // Calls use(i, row of keys[i]) for every key in order, making rows that are missing.
  template <typename Use>
  void ForEachRow(std::span<const Key> keys, int64_t step, const Use& use) {
    store.ForEachMade(
        keys, RowVersion(step),
        [&](Key key, std::byte* row) {
          InitialRow(key, {reinterpret_cast<float*>(row), row_floats});
        },
        [&](size_t i, std::byte* row) { use(i, reinterpret_cast<float*>(row)); });
  }

  void ApplyGradients(std::span<const Key> keys, const float* values, GradientScale scale,
                      int64_t step) {
    UpdateRows(width, spec.optimizer, dim, store, keys, values, scale, step, make);
  }
  void ApplyLamb(std::span<const Gradients> parts, float scale, int64_t step);

  const TableSpec spec;
  const TableId id;
  const uint64_t seed;
  const uint32_t dim, state_floats;
  const size_t row_floats;  // [weights | state]

  const VectorWidth width;
  const RowMaker make;

  RowStore store;
  GradientSums sums;  // Keeps its memory between steps.
};

void TableSlice::Impl::ApplyLamb(std::span<const Gradients> parts, float scale, int64_t step) {
  sums.Combine(parts, dim);
  struct Chunk {
    Key key;
    size_t position;
    float* row;
  };
  std::vector<Chunk> chunks(sums.keys().size());
  ForEachRow(sums.keys(), step, [&](size_t k, float* row) {
    chunks[k] = {sums.keys()[k], k, row};
  });
  std::sort(chunks.begin(), chunks.end(),
            [](const Chunk& a, const Chunk& b) { return a.key < b.key; });
  std::vector<float> gradients(chunks.size() * dim);
  std::vector<ChunkUpdate> updates;
  for (size_t c = 0; c < chunks.size(); ++c) {
    const float* sum = sums.values() + chunks[c].position * dim;
    float* gradient = &gradients[c * dim];
    for (size_t i = 0; i < dim; ++i) gradient[i] = sum[i] * scale;
    updates.push_back({{gradient, dim}, Weights(chunks[c].row), State(chunks[c].row)});
    const bool tensor_ends =
        c + 1 == chunks.size() || chunks[c + 1].key >> 32 != chunks[c].key >> 32;
    if (!tensor_ends) continue;
    UpdateLambTensor(spec.optimizer, updates);
    updates.clear();
  }
}

TableSlice::TableSlice(const TableSpec& spec, TableId id, uint64_t seed, VectorWidth width)
    : impl_(std::make_unique<Impl>(spec, id, seed, width)) {}
TableSlice::~TableSlice() = default;
TableSlice::TableSlice(TableSlice&&) noexcept = default;

const TableSpec& TableSlice::spec() const { return impl_->spec; }
uint32_t TableSlice::dim() const { return impl_->dim; }
uint32_t TableSlice::state_floats() const { return impl_->state_floats; }
size_t TableSlice::num_rows() const { return impl_->store.num_rows(); }
size_t TableSlice::bytes() const { return impl_->store.bytes(); }

const RowStore& TableSlice::memory() const { return impl_->store; }

void TableSlice::Read(std::span<const Key> keys, uint32_t row_floats, std::span<float> rows) {
  CHECK(row_floats == dim() || row_floats == impl_->row_floats) << row_floats << " floats a row";
  CHECK_EQ(rows.size(), keys.size() * row_floats);
  ReadRows(impl_->width, impl_->store, keys, row_floats, impl_->make, rows.data());
}

void TableSlice::ReadChanged(std::span<const Key> keys, int64_t since_step,
                             std::vector<uint32_t>* positions, std::vector<float>* weights) {
  CHECK_LE(keys.size(), size_t{kRowVersionMax});
  const uint32_t since = RowVersion(since_step);
  impl_->store.ForEachFound(
      keys, sizeof(float), [&](size_t k, const RowSlot* slot, const std::byte* row) {
        // Past the largest version all that was ever changed then counts as changed since.
        if (slot == nullptr || (slot->version <= since && slot->version < kRowVersionMax)) return;
        positions->push_back(static_cast<uint32_t>(k));
        const auto* floats = reinterpret_cast<const float*>(row);
        weights->insert(weights->end(), floats, floats + impl_->dim);
      });
}

void TableSlice::Store(std::span<const Key> keys, uint32_t row_floats,
                       std::span<const float> rows) {
  CHECK(row_floats == dim() || row_floats == impl_->row_floats) << row_floats << " floats a row";
  CHECK_EQ(rows.size(), keys.size() * row_floats);
  impl_->ForEachRow(keys, 0, [&](size_t k, float* row) {
    std::memcpy(row, &rows[k * row_floats], row_floats * sizeof(float));
    if (row_floats == impl_->dim) {
      InitState(impl_->spec.optimizer, impl_->dim, impl_->State(row));
    }
  });
}

void TableSlice::Apply(std::span<const Gradients> parts, float scale, int64_t step) {
  for (const Gradients& part : parts) {
    CHECK_EQ(part.values.size(), part.keys.size() * impl_->dim);
  }
  if (impl_->spec.optimizer.kind == OptimizerKind::kLamb) {
    return impl_->ApplyLamb(parts, scale, step);
  }
  if (parts.size() == 1) {
    const Gradients& part = parts[0];
    return impl_->ApplyGradients(part.keys, part.values.data(), {part.scale, scale}, step);
  }
  impl_->sums.Combine(parts, impl_->dim);
  impl_->ApplyGradients(impl_->sums.keys(), impl_->sums.values(), {1, scale}, step);
}

RowsDigest TableSlice::Digest() const {
  RowsDigest digest;
  const uint64_t table_hash = TableHash(impl_->spec.name);
  impl_->store.ForEach([&](const RowSlot& slot) {
    const auto* row = reinterpret_cast<const float*>(impl_->store.Row(slot.row()));
    digest.AddRow(table_hash, slot.key, {row, impl_->row_floats});
  });
  return digest;
}

Status TableSlice::VisitRows(size_t block_rows, const Visit& visit) const {
  const size_t row_floats = impl_->row_floats;
  std::vector<Key> keys;
  std::vector<float> rows(std::min(block_rows, num_rows()) * row_floats);
  // Whole blocks at a time, so that only the last one of all may be shorter.
  const size_t keys_max = std::max<size_t>(1, kSortedKeysMax / block_rows) * block_rows;
  for (size_t visited = 0; visited < num_rows(); visited += keys.size()) {
    impl_->store.SmallestKeys(keys.empty() ? 0 : keys.back() + 1, keys_max, &keys);
    for (size_t begin = 0; begin < keys.size(); begin += block_rows) {
      const auto block =
          std::span<const Key>(keys).subspan(begin, std::min(block_rows, keys.size() - begin));
      impl_->store.ForEachFound(
          block, row_floats * sizeof(float), [&](size_t k, const RowSlot*, const std::byte* row) {
            std::memcpy(&rows[k * row_floats], row, row_floats * sizeof(float));
          });
      HDPS_RETURN_IF_ERROR(visit(block, std::span(rows).first(block.size() * row_floats)));
    }
  }
  return {};
}

}  // namespace hdps
