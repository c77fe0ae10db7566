// Converts rows one by one, for uses that are not batched.
#include "embedding/memory/weight_format.h"

#include <cstring>

namespace hdps {

void ReadWeights(WeightFormat format, const std::byte* row, std::span<float> weights) {
  switch (format) {
    case WeightFormat::kFp32:
      if (!weights.empty()) std::memcpy(weights.data(), row, weights.size_bytes());
      return;
    case WeightFormat::kFp16:
      return LoadWeights<WeightFormat::kFp16>(row, weights.size(), weights.data());
    case WeightFormat::kBf16:
      return LoadWeights<WeightFormat::kBf16>(row, weights.size(), weights.data());
  }
}

void WriteWeights(WeightFormat format, std::span<const float> weights, std::byte* row) {
  if (format == WeightFormat::kFp32) {
    if (!weights.empty()) std::memcpy(row, weights.data(), weights.size_bytes());
    return;
  }
  auto* halves = reinterpret_cast<uint16_t*>(row);
  for (const float weight : weights) {
    *halves++ = format == WeightFormat::kFp16 ? ToFp16(weight, kNearest) : ToBf16(weight, kNearest);
  }
}

void RoundToNearest(WeightFormat format, std::span<float> weights) {
  if (format == WeightFormat::kFp32) return;
  for (float& weight : weights) {
    if (format == WeightFormat::kFp16) weight = FromFp16(ToFp16(weight, kNearest));
    if (format == WeightFormat::kBf16) weight = FromBf16(ToBf16(weight, kNearest));
  }
}

}  // namespace hdps
