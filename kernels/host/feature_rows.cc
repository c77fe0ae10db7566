// Numbers the rows of a feature by a bit for each used row; a counting pass turns bags into rows'
// entries.
#include "kernels/host/feature_rows.h"

#include <algorithm>
#include <bit>

#include "common/job/spec/pooling.h"

namespace hdps {
namespace {

constexpr uint32_t kWordBits = 64;

// Finds the rows that the keys use, in the order of the table.
HDPS_INLINE void FindRows(std::span<const uint32_t> keys, FeatureRow* field) {
  field->rows.clear();
  if (keys.empty()) return;
  uint32_t low = keys[0], high = keys[0];
  for (const uint32_t row : keys) {
    low = std::min(low, row);
    high = std::max(high, row);
  }
  // A bit a row: the rows of a field may be anywhere in the table, and there are many fields.
  const uint32_t words = (high - low) / kWordBits + 1;
  field->used_first = low;
  field->used.assign(words, 0);
  for (const uint32_t row : keys) {
    field->used[(row - low) / kWordBits] |= uint64_t{1} << ((row - low) % kWordBits);
  }
  field->used_before.resize(words);
  uint32_t before = 0;
  for (uint32_t w = 0; w < words; ++w) {
    field->used_before[w] = before;
    before += static_cast<uint32_t>(std::popcount(field->used[w]));
  }
  field->rows.resize(before);
  uint32_t* next = field->rows.data();
  for (uint32_t w = 0; w < words; ++w) {
    for (uint64_t bits = field->used[w]; bits != 0; bits &= bits - 1) {
      *next++ = low + w * kWordBits + static_cast<uint32_t>(std::countr_zero(bits));
    }
  }
}

// Returns the local number of a row that is used.
HDPS_INLINE uint32_t LocalOf(const FeatureRow& field, uint32_t row) {
  const uint32_t at = row - field.used_first;
  const uint64_t below = (uint64_t{1} << (at % kWordBits)) - 1;
  return field.used_before[at / kWordBits] +
         static_cast<uint32_t>(std::popcount(field.used[at / kWordBits] & below));
}

// Returns whether each bag has one key of factor 1, as is usual.
HDPS_INLINE bool OneKeyEach(const Bags& bags) {
  const size_t num_bags = bags.num_bags();
  if (num_bags == 0 || !bags.weights.empty()) return false;
  uint32_t others = 0;
  for (uint32_t b = 0; b <= num_bags; ++b) others |= bags.offsets[b] ^ (bags.offsets[0] + b);
  return others == 0;
}

// Loads such a feature; its keys are its bags.
HDPS_INLINE void LoadOneKeyEach(const Bags& bags, FeatureRow* field) {
  const size_t num_bags = bags.num_bags();
  const std::span<const uint32_t> keys = bags.row_index.subspan(bags.offsets[0], num_bags);
  FindRows(keys, field);
  field->key_factor.clear();
  field->row_factor.clear();
  field->by_bag.resize(num_bags);
  std::vector<uint32_t>& begin = field->row_begin;
  begin.assign(field->unique() + 2, 0);  // begin[u + 1] is where the next entry of u goes.
  for (size_t b = 0; b < num_bags; ++b) {
    field->by_bag[b] = LocalOf(*field, keys[b]);
    ++begin[field->by_bag[b] + 2];
  }
  for (size_t u = 2; u < begin.size(); ++u) begin[u] += begin[u - 1];
  field->row_bag.resize(num_bags + kGatherAhead);
  std::fill_n(field->row_bag.end() - kGatherAhead, kGatherAhead, 0);
  for (size_t b = 0; b < num_bags; ++b) {
    field->row_bag[begin[field->by_bag[b] + 1]++] = static_cast<uint32_t>(b);
  }
  begin.pop_back();
}

void CopyKeys(const Bags& bags, Pooling pooling, FeatureRow* field) {
  const size_t num_bags = bags.num_bags();
  const uint32_t first = num_bags == 0 ? 0 : bags.offsets[0];
  const uint32_t keys = num_bags == 0 ? 0 : bags.offsets[num_bags] - first;
  field->key_row.assign(bags.row_index.begin() + first, bags.row_index.begin() + first + keys);
  field->key_factor.clear();
  if (!bags.weights.empty()) {
    field->key_factor.assign(bags.weights.begin() + first, bags.weights.begin() + first + keys);
  }
  field->key_begin.resize(num_bags + 1);
  uint32_t bag_keys_max = 0;
  field->key_begin[0] = 0;
  for (size_t b = 0; b < num_bags; ++b) {
    field->key_begin[b + 1] = bags.offsets[b + 1] - first;
    bag_keys_max = std::max(bag_keys_max, bags.offsets[b + 1] - bags.offsets[b]);
  }
  if (pooling == Pooling::kSum || bag_keys_max <= 1) return;
  if (field->key_factor.empty()) field->key_factor.assign(keys, 1.0f);
  for (size_t b = 0; b < num_bags; ++b) {
    const uint32_t begin = field->key_begin[b], end = field->key_begin[b + 1];
    for (uint32_t k = begin; k < end; ++k) {
      field->key_factor[k] *= 1.0f / static_cast<float>(end - begin);
    }
  }
}

void FindByBag(FeatureRow* field) {
  const size_t num_bags = field->key_begin.size() - 1;
  field->by_bag.clear();
  if (!field->key_factor.empty()) return;
  for (size_t b = 0; b < num_bags; ++b) {
    if (field->key_begin[b + 1] - field->key_begin[b] > 1) return;
  }
  field->by_bag.resize(num_bags);
  for (size_t b = 0; b < num_bags; ++b) {
    const uint32_t begin = field->key_begin[b];
    field->by_bag[b] = begin == field->key_begin[b + 1] ? static_cast<uint32_t>(field->unique())
                                                        : field->key_row[begin];
  }
}

void Transpose(FeatureRow* field) {
  const size_t keys = field->key_row.size(), num_bags = field->key_begin.size() - 1;
  std::vector<uint32_t>& begin = field->row_begin;
  begin.assign(field->unique() + 2, 0);  // begin[u + 1] is where the next entry of u goes.
  for (const uint32_t row : field->key_row) ++begin[row + 2];
  for (size_t u = 2; u < begin.size(); ++u) begin[u] += begin[u - 1];
  field->row_bag.assign(keys + kGatherAhead, 0);
  field->row_factor.resize(field->key_factor.size());
  for (size_t b = 0; b < num_bags; ++b) {
    for (uint32_t k = field->key_begin[b]; k < field->key_begin[b + 1]; ++k) {
      const uint32_t entry = begin[field->key_row[k] + 1]++;
      field->row_bag[entry] = static_cast<uint32_t>(b);
      if (!field->key_factor.empty()) field->row_factor[entry] = field->key_factor[k];
    }
  }
  begin.pop_back();
}

}  // namespace

void FeatureRows::Load(std::span<const Bags> features, Pooling pooling, uint32_t num_rows,
                       Executor& executor) {
  num_fields_ = features.size();
  if (fields_.size() < num_fields_) fields_.resize(num_fields_);
  executor.ParallelFor(num_fields_, [&](size_t f) {
    FeatureRow* const field = &fields_[f];
    bool loaded = false;
    WithVectors(
        width_, [&]() __attribute__((always_inline)) {
          loaded = OneKeyEach(features[f]);
          if (loaded) LoadOneKeyEach(features[f], field);
        });
    if (loaded) return;
    CopyKeys(features[f], pooling, field);
    FindRows(field->key_row, field);
    for (uint32_t& row : field->key_row) row = LocalOf(*field, row);
    FindByBag(field);
    Transpose(field);
    field->key_row.insert(field->key_row.end(), kGatherAhead, 0);
  });
  FindInPlace(num_rows);
}

void FeatureRows::FindInPlace(uint32_t num_rows) {
  taken_.assign(num_rows, false);
  size_t in_place_rows = 0, rows_of_fields = 0;
  disjoint_ = true;
  for (size_t f = 0; f < num_fields_; ++f) {
    FeatureRow& field = fields_[f];
    const std::vector<uint32_t>& rows = field.rows;
    field.in_place = rows.empty() || rows.back() - rows.front() + 1 == rows.size();
    for (const uint32_t row : rows) {
      field.in_place = field.in_place && !taken_[row];
      disjoint_ = disjoint_ && !taken_[row];
      taken_[row] = true;
    }
    if (field.in_place) in_place_rows += rows.size();
    rows_of_fields += rows.size();
  }
  covers_table_ = in_place_rows == num_rows;
  divides_table_ = disjoint_ && rows_of_fields == num_rows;
}

}  // namespace hdps
