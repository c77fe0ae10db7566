// Rows in slabs that never move, found through an index; updates combined key by key.
#include "embedding/table.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "common/hash.h"
#include "embedding/optimizer.h"
#include "embedding/row_index.h"

namespace hdps {
namespace {

constexpr size_t kSlabBytes = 256 << 10;
constexpr size_t kLineBytes = 64;
// Keys that are looked up together: enough misses in flight to fill the memory's queues.
constexpr size_t kBlockKeys = 32;
constexpr size_t kPrefetchLinesMax = 8;  // A longer row is caught by the hardware's own prefetch.
constexpr uint64_t kIndexSalt = 0x7c6e5f0d3b2a1908u;

struct FreeSlab {
  void operator()(float* slab) const { ::operator delete[](slab, std::align_val_t{kLineBytes}); }
};
using Slab = std::unique_ptr<float[], FreeSlab>;

Slab NewSlab(size_t floats) {
  return Slab(
      static_cast<float*>(::operator new[](floats * sizeof(float), std::align_val_t{kLineBytes})));
}

// The sum of several workers' gradients, key by key, in the order of the workers.
//
// Invariant: sums_[i * dim ...] belongs to keys_[i]; keys stand in the order of first appearance.
class GradientSums {
 public:
  void Combine(std::span<const TableSlice::Gradients> parts, size_t dim);
  const std::vector<Key>& keys() const { return keys_; }
  const float* sum(size_t i, size_t dim) const { return &sums_[i * dim]; }

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
  Impl(const TableSpec& table_spec, TableId table_id, uint64_t job_seed)
      : spec(table_spec),
        id(table_id),
        seed(job_seed),
        dim(table_spec.dim),
        state_floats(StateFloats(table_spec.optimizer, table_spec.dim)),
        row_floats(dim + state_floats),
        slab_rows(std::max<size_t>(1, kSlabBytes / (row_floats * sizeof(float)))),
        index(kIndexSalt) {}

  std::span<float> Weights(float* row) const { return {row, dim}; }
  std::span<float> State(float* row) const { return {row + dim, state_floats}; }

  float* NewRow() {
    if (next_in_slab == slab_rows || slabs.empty()) {
      slabs.push_back(NewSlab(slab_rows * row_floats));
      next_in_slab = 0;
    }
    return &slabs.back()[next_in_slab++ * row_floats];
  }
  void InitNewRow(Key key, float* row) const {
    InitRow(spec.init, seed, id, key, Weights(row));
    InitState(spec.optimizer, dim, State(row));
  }
  void PrefetchRow(const float* row) const {
    const size_t lines =
        std::min((row_floats * sizeof(float) + kLineBytes - 1) / kLineBytes, kPrefetchLinesMax);
    for (size_t i = 0; i < lines; ++i) {
      __builtin_prefetch(reinterpret_cast<const char*>(row) + i * kLineBytes);
    }
  }

  // Calls use(i, row of keys[i]) for every key in order, making rows that are missing. Looks up a
  // block of keys while the rows of the block are on their way from memory.
  template <typename Use>
  void ForEachRow(std::span<const Key> keys, const Use& use) {
    size_t homes[kBlockKeys];
    float* rows[kBlockKeys];
    for (size_t begin = 0; begin < keys.size(); begin += kBlockKeys) {
      const size_t n = std::min(kBlockKeys, keys.size() - begin);
      index.Reserve(n);
      for (size_t i = 0; i < n; ++i) {
        homes[i] = index.Home(keys[begin + i]);
        index.Prefetch(homes[i]);
      }
      for (size_t i = 0; i < n; ++i) {
        float** place = index.Insert(keys[begin + i], homes[i]);
        if (*place == nullptr) {
          *place = NewRow();
          InitNewRow(keys[begin + i], *place);
        } else {
          PrefetchRow(*place);
        }
        rows[i] = *place;
      }
      for (size_t i = 0; i < n; ++i) use(begin + i, rows[i]);
    }
  }
  // As above; the row is null where there is none.
  template <typename Use>
  void ForEachFound(std::span<const Key> keys, const Use& use) const {
    size_t homes[kBlockKeys];
    const float* rows[kBlockKeys];
    for (size_t begin = 0; begin < keys.size(); begin += kBlockKeys) {
      const size_t n = std::min(kBlockKeys, keys.size() - begin);
      for (size_t i = 0; i < n; ++i) {
        homes[i] = index.Home(keys[begin + i]);
        index.Prefetch(homes[i]);
      }
      for (size_t i = 0; i < n; ++i) {
        rows[i] = index.Find(keys[begin + i], homes[i]);
        if (rows[i] != nullptr) PrefetchRow(rows[i]);
      }
      for (size_t i = 0; i < n; ++i) use(begin + i, rows[i]);
    }
  }

  void ApplyOnePart(const Gradients& part, float scale, int64_t step) {
    std::vector<float> gradient(dim);
    ForEachRow(part.keys, [&](size_t k, float* row) {
      const float* values = &part.values[k * dim];
      for (size_t i = 0; i < dim; ++i) gradient[i] = (values[i] * part.scale) * scale;
      UpdateRow(spec.optimizer, step, gradient, Weights(row), State(row));
    });
  }
  void ApplyParts(std::span<const Gradients> parts, float scale, int64_t step) {
    sums.Combine(parts, dim);
    std::vector<float> gradient(dim);
    ForEachRow(sums.keys(), [&](size_t k, float* row) {
      const float* sum = sums.sum(k, dim);
      for (size_t i = 0; i < dim; ++i) gradient[i] = sum[i] * scale;
      UpdateRow(spec.optimizer, step, gradient, Weights(row), State(row));
    });
  }
  void ApplyLamb(std::span<const Gradients> parts, float scale);

  const TableSpec spec;
  const TableId id;
  const uint64_t seed;
  const uint32_t dim, state_floats;
  const size_t row_floats;  // [weights | state]
  const size_t slab_rows;   // Rows in a slab.

  RowIndex<float> index;
  std::vector<Slab> slabs;
  size_t next_in_slab = 0;
  GradientSums sums;  // Keeps its memory between steps.
};

void TableSlice::Impl::ApplyLamb(std::span<const Gradients> parts, float scale) {
  sums.Combine(parts, dim);
  struct Chunk {
    Key key;
    size_t position;
    float* row;
  };
  std::vector<Chunk> chunks(sums.keys().size());
  ForEachRow(sums.keys(), [&](size_t k, float* row) { chunks[k] = {sums.keys()[k], k, row}; });
  std::sort(chunks.begin(), chunks.end(),
            [](const Chunk& a, const Chunk& b) { return a.key < b.key; });
  std::vector<float> gradients(chunks.size() * dim);
  std::vector<ChunkUpdate> updates;
  for (size_t c = 0; c < chunks.size(); ++c) {
    const float* sum = sums.sum(chunks[c].position, dim);
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

TableSlice::TableSlice(const TableSpec& spec, TableId id, uint64_t seed)
    : impl_(std::make_unique<Impl>(spec, id, seed)) {}
TableSlice::~TableSlice() = default;
TableSlice::TableSlice(TableSlice&&) noexcept = default;

const TableSpec& TableSlice::spec() const { return impl_->spec; }
uint32_t TableSlice::dim() const { return impl_->dim; }
uint32_t TableSlice::state_floats() const { return impl_->state_floats; }
size_t TableSlice::num_rows() const { return impl_->index.size(); }
size_t TableSlice::bytes() const {
  return impl_->slabs.size() * impl_->slab_rows * impl_->row_floats * sizeof(float) +
         impl_->index.bytes();
}

void TableSlice::Pull(std::span<const Key> keys, std::span<float> rows) {
  CHECK_EQ(rows.size(), keys.size() * dim());
  const size_t dim = impl_->dim;
  impl_->ForEachRow(keys, [&](size_t k, const float* row) {
    std::memcpy(&rows[k * dim], row, dim * sizeof(float));
  });
}

void TableSlice::Peek(std::span<const Key> keys, uint32_t row_floats, std::span<float> rows) const {
  CHECK(row_floats == dim() || row_floats == impl_->row_floats) << row_floats << " floats a row";
  CHECK_EQ(rows.size(), keys.size() * row_floats);
  impl_->ForEachFound(keys, [&](size_t k, const float* row) {
    const std::span<float> out = rows.subspan(k * row_floats, row_floats);
    if (row != nullptr) {
      std::memcpy(out.data(), row, out.size_bytes());
      return;
    }
    InitRow(impl_->spec.init, impl_->seed, impl_->id, keys[k], out.first(impl_->dim));
    if (row_floats > impl_->dim) {
      InitState(impl_->spec.optimizer, impl_->dim, out.subspan(impl_->dim));
    }
  });
}

void TableSlice::Store(std::span<const Key> keys, uint32_t row_floats,
                       std::span<const float> rows) {
  CHECK(row_floats == dim() || row_floats == impl_->row_floats) << row_floats << " floats a row";
  CHECK_EQ(rows.size(), keys.size() * row_floats);
  impl_->ForEachRow(keys, [&](size_t k, float* row) {
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
  if (impl_->spec.optimizer.kind == OptimizerKind::kLamb) return impl_->ApplyLamb(parts, scale);
  if (parts.size() == 1) return impl_->ApplyOnePart(parts[0], scale, step);
  impl_->ApplyParts(parts, scale, step);
}

RowsDigest TableSlice::Digest() const {
  RowsDigest digest;
  const uint64_t table_hash = TableHash(impl_->spec.name);
  impl_->index.ForEach([&](Key key, const float* row) {
    digest.AddRow(table_hash, key, {row, impl_->row_floats});
  });
  return digest;
}

std::vector<Key> TableSlice::SortedKeys() const {
  std::vector<Key> keys;
  keys.reserve(num_rows());
  impl_->index.ForEach([&](Key key, const float*) { keys.push_back(key); });
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace hdps
