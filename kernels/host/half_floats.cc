// One loop each, for three widths and two formats.
#include "kernels/host/half_floats.h"

#include <cstring>

#include "kernels/host/finite.h"

namespace hdps {
namespace {

template <DType kFormat>
void Narrow(VectorWidth width, std::span<const float> from, uint16_t* to) {
  WithVectors(
      width, [&]() __attribute__((always_inline)) {
        NarrowEach<kFormat>(from.data(), from.size(), to);
      });
}

template <DType kFormat>
void Widen(VectorWidth width, const uint16_t* from, std::span<float> to) {
  WithVectors(
      width, [&]() __attribute__((always_inline)) {
        WidenEach<kFormat>(from, to.size(), to.data());
      });
}

HDPS_INLINE bool AllFinite(uint32_t exponent, const uint16_t* values, size_t count) {
  uint32_t any = 0;
  for (size_t i = 0; i < count; ++i) {
    any |= static_cast<uint32_t>((values[i] & exponent) == exponent);
  }
  return any == 0;
}

}  // namespace

void NarrowFloats(VectorWidth width, DType format, std::span<const float> from, std::byte* to) {
  auto* const halves = reinterpret_cast<uint16_t*>(to);
  switch (format) {
    case DType::kFp32:
      if (!from.empty()) std::memcpy(to, from.data(), from.size_bytes());
      return;
    case DType::kFp16:
      return Narrow<DType::kFp16>(width, from, halves);
    case DType::kBf16:
      return Narrow<DType::kBf16>(width, from, halves);
  }
}

void WidenFloats(VectorWidth width, DType format, const std::byte* from, std::span<float> to) {
  const auto* const halves = reinterpret_cast<const uint16_t*>(from);
  switch (format) {
    case DType::kFp32:
      if (!to.empty()) std::memcpy(to.data(), from, to.size_bytes());
      return;
    case DType::kFp16:
      return Widen<DType::kFp16>(width, halves, to);
    case DType::kBf16:
      return Widen<DType::kBf16>(width, halves, to);
  }
}

size_t FirstNotFinite(DType format, const std::byte* values, size_t count) {
  if (format == DType::kFp32) {
    return FirstNotFinite({reinterpret_cast<const float*>(values), count});
  }
  constexpr size_t kBlock = 8192;
  const VectorWidth width = WidestVectors();
  const uint32_t exponent = format == DType::kFp16 ? 0x7c00u : 0x7f80u;
  const auto* const halves = reinterpret_cast<const uint16_t*>(values);
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(count, begin + kBlock);
    const bool finite = WithVectors(
        width, [&]() __attribute__((always_inline)) {
          return AllFinite(exponent, halves + begin, end - begin);
        });
    if (finite) continue;
    size_t bad = begin;
    while ((halves[bad] & exponent) != exponent) ++bad;
    return bad;
  }
  return count;
}

}  // namespace hdps
