// One loop each, for three widths and two formats.
#include "kernels/half_floats.h"

#include <cstring>

#include "kernels/finite.h"

namespace hdps {
namespace {

template <FloatFormat kFormat>
void Narrow(VectorWidth width, std::span<const float> from, uint16_t* to) {
  WithVectors(
      width, [&]() __attribute__((always_inline)) {
        NarrowEach<kFormat>(from.data(), from.size(), to);
      });
}

template <FloatFormat kFormat>
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

void NarrowFloats(VectorWidth width, FloatFormat format, std::span<const float> from,
                  std::byte* to) {
  auto* const halves = reinterpret_cast<uint16_t*>(to);
  switch (format) {
    case FloatFormat::kFp32:
      if (!from.empty()) std::memcpy(to, from.data(), from.size_bytes());
      return;
    case FloatFormat::kFp16:
      return Narrow<FloatFormat::kFp16>(width, from, halves);
    case FloatFormat::kBf16:
      return Narrow<FloatFormat::kBf16>(width, from, halves);
  }
}

void WidenFloats(VectorWidth width, FloatFormat format, const std::byte* from,
                 std::span<float> to) {
  const auto* const halves = reinterpret_cast<const uint16_t*>(from);
  switch (format) {
    case FloatFormat::kFp32:
      if (!to.empty()) std::memcpy(to.data(), from, to.size_bytes());
      return;
    case FloatFormat::kFp16:
      return Widen<FloatFormat::kFp16>(width, halves, to);
    case FloatFormat::kBf16:
      return Widen<FloatFormat::kBf16>(width, halves, to);
  }
}

size_t FirstNotFinite(FloatFormat format, const std::byte* values, size_t count) {
  if (format == FloatFormat::kFp32) {
    return FirstNotFinite({reinterpret_cast<const float*>(values), count});
  }
  constexpr size_t kBlock = 8192;
  const VectorWidth width = WidestVectors();
  const uint32_t exponent = format == FloatFormat::kFp16 ? 0x7c00u : 0x7f80u;
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
