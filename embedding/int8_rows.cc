// Rounds rows to multiples of their scale.
#include "embedding/int8_rows.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace hdps {
namespace {

constexpr uint64_t kIndexSalt = 0x696e7438726f7773u;
constexpr float kLargest = 127;
constexpr int kBf16Shift = 16;  // A bf16 number is the upper half of a float.

uint16_t UpToBf16(float positive) {
  return static_cast<uint16_t>((std::bit_cast<uint32_t>(positive) + 0xffffu) >> kBf16Shift);
}
float FromBits(uint16_t bf16) { return std::bit_cast<float>(uint32_t{bf16} << kBf16Shift); }

}  // namespace

Int8Rows::Int8Rows(const FlatRows& rows) : dim_(rows.dim()), index_(kIndexSalt) {
  index_.Prepare(rows.num_rows());
  bytes_.reserve(rows.num_rows() * RowBytes(dim_));
}

void Int8Rows::Add(Key key, std::span<const float> weights) {
  float largest = 0;
  for (const float weight : weights) largest = std::max(largest, std::abs(weight));
  const uint16_t scale_bits = UpToBf16(largest / kLargest);
  const float scale = FromBits(scale_bits);
  const auto number = static_cast<uint32_t>(index_.size());
  index_.Prepare(1);
  index_.Fill(index_.Find(key, index_.Home(key)), {.key = key, .row_and_one = number + 1});
  bytes_.resize(bytes_.size() + RowBytes(dim_));
  std::byte* const row = &bytes_[number * RowBytes(dim_)];
  std::memcpy(row, &scale_bits, sizeof(scale_bits));
  for (size_t i = 0; i < weights.size(); ++i) {
    const float q = scale > 0 ? std::nearbyint(weights[i] / scale) : 0;
    row[sizeof(scale_bits) + i] =
        static_cast<std::byte>(static_cast<int8_t>(std::clamp(q, -kLargest, kLargest)));
  }
}

std::unique_ptr<Int8Rows> Int8Rows::Of(const FlatRows& rows) {
  std::unique_ptr<Int8Rows> made(new Int8Rows(rows));
  const auto add = [&](std::span<const Key> keys, std::span<const float> weights) {
    for (size_t k = 0; k < keys.size(); ++k) {
      made->Add(keys[k], weights.subspan(k * rows.dim(), rows.dim()));
    }
    return Status();
  };
  CHECK(rows.VisitRows(add).ok()) << "only `add` fails";
  return made;
}

std::optional<uint32_t> Int8Rows::RowNumber(Key key) const {
  const RowSlot* const slot = index_.Find(key, index_.Home(key));
  return slot->used() ? std::optional(slot->row()) : std::nullopt;
}

bool Int8Rows::Read(Key key, std::span<float> row) const {
  const RowSlot* const slot = index_.Find(key, index_.Home(key));
  if (!slot->used()) return false;
  const std::byte* const from = &bytes_[slot->row() * RowBytes(dim_)];
  uint16_t scale_bits = 0;
  std::memcpy(&scale_bits, from, sizeof(scale_bits));
  const float scale = FromBits(scale_bits);
  for (uint32_t i = 0; i < dim_; ++i) {
    row[i] = scale * static_cast<float>(static_cast<int8_t>(from[sizeof(scale_bits) + i]));
  }
  return true;
}

}  // namespace hdps
