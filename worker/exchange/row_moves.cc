// Moves consecutive rows together, and prefetches single rows.
#include "worker/exchange/row_moves.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/host/half_floats.h"

namespace hdps {
namespace {

// Calls copy(i, positions[i], count) for each run of consecutive positions, and prefetch(p) for
// positions further on. Positions in order are a single run.
template <typename Copy, typename Prefetch>
HDPS_INLINE void ForEachRun(std::span<const uint32_t> positions, const Copy& copy,
                            const Prefetch& prefetch) {
  constexpr size_t kPrefetch = 16;
  const size_t n = positions.size();
  for (size_t i = 0; i < n;) {
    if (i + kPrefetch < n) prefetch(positions[i + kPrefetch]);
    size_t end = i + 1;
    while (end < n && positions[end] == positions[end - 1] + 1) ++end;
    copy(i, positions[i], end - i);
    i = end;
  }
}

// Converts `rows` rows on their way into a section, or out of it.
template <DType kFormat, size_t kFloats>
HDPS_INLINE void Pack(const float* from, size_t rows, size_t floats, float scale, std::byte* to) {
  const size_t count = rows * (kFloats > 0 ? kFloats : floats);
  if constexpr (kFormat != DType::kFp32) {
    auto* const halves = reinterpret_cast<uint16_t*>(to);
    if (kFloats > 0 && rows == 1) return NarrowEach<kFormat>(from, kFloats, halves, scale);
    return NarrowEach<kFormat>(from, count, halves, scale);
  }
  if (kFloats > 0 && rows == 1) {
    std::memcpy(to, from, kFloats * sizeof(float));
  } else {
    std::memcpy(to, from, count * sizeof(float));
  }
}
template <DType kFormat, size_t kFloats>
HDPS_INLINE void Unpack(const std::byte* from, size_t rows, size_t floats, float* to) {
  const size_t count = rows * (kFloats > 0 ? kFloats : floats);
  if constexpr (kFormat != DType::kFp32) {
    const auto* const halves = reinterpret_cast<const uint16_t*>(from);
    if (kFloats > 0 && rows == 1) return WidenEach<kFormat>(halves, kFloats, to);
    return WidenEach<kFormat>(halves, count, to);
  }
  if (kFloats > 0 && rows == 1) {
    std::memcpy(to, from, kFloats * sizeof(float));
  } else {
    std::memcpy(to, from, count * sizeof(float));
  }
}

// Sets to[i] = from[positions[i]] * scale.
template <DType kFormat, size_t kFloats>
HDPS_INLINE void GatherAll(std::span<const uint32_t> positions, size_t floats, float scale,
                           const float* from, std::byte* to) {
  const size_t row_bytes = floats * FloatBytes(kFormat);
  ForEachRun(
      positions,
      [=](size_t i, size_t position, size_t rows) __attribute__((always_inline)) {
        Pack<kFormat, kFloats>(from + position * floats, rows, floats, scale, to + i * row_bytes);
      },
      [=](size_t position)
          __attribute__((always_inline)) { __builtin_prefetch(from + position * floats, 0); });
}

// Sets to[positions[i]] = from[i].
template <DType kFormat, size_t kFloats>
HDPS_INLINE void ScatterAll(std::span<const uint32_t> positions, size_t floats,
                            const std::byte* from, float* to) {
  const size_t row_bytes = floats * FloatBytes(kFormat);
  ForEachRun(
      positions,
      [=](size_t i, size_t position, size_t rows) __attribute__((always_inline)) {
        Unpack<kFormat, kFloats>(from + i * row_bytes, rows, floats, to + position * floats);
      },
      [=](size_t position)
          __attribute__((always_inline)) { __builtin_prefetch(to + position * floats, 1); });
}

// Calls move(format, floats) with both as constants; floats is 0 for unusual row sizes.
template <DType kFormat, typename Move>
void WithFloats(size_t floats, const Move& move) {
  constexpr std::integral_constant<DType, kFormat> format;
  switch (floats) {
    case 1:
      return move(format, std::integral_constant<size_t, 1>());
    case 8:
      return move(format, std::integral_constant<size_t, 8>());
    case 16:
      return move(format, std::integral_constant<size_t, 16>());
    case 32:
      return move(format, std::integral_constant<size_t, 32>());
    default:
      return move(format, std::integral_constant<size_t, 0>());
  }
}
template <typename Move>
void WithRow(const RowFormat& row, const Move& move) {
  switch (row.format) {
    case DType::kFp32:
      return WithFloats<DType::kFp32>(row.floats, move);
    case DType::kFp16:
      return WithFloats<DType::kFp16>(row.floats, move);
    case DType::kBf16:
      return WithFloats<DType::kBf16>(row.floats, move);
  }
}

// move(first, count) for parts of n rows, side by side where they are many.
template <typename Move>
void InParts(const RowMovers& by, size_t n, size_t row_bytes, const Move& move) {
  constexpr size_t kPartBytes = size_t{256} << 10;
  const size_t part = std::max<size_t>(1, kPartBytes / std::max<size_t>(1, row_bytes));
  const size_t parts = (n + part - 1) / part;
  constexpr size_t kPartsMin = 4;  // Fewer are done before the others have begun.
  if (by.executor == nullptr || parts < kPartsMin) return move(size_t{0}, n);
  by.executor->ParallelFor(parts, [&](size_t i) { move(i * part, std::min(part, n - i * part)); });
}

}  // namespace

void GatherRows(const RowMovers& by, const RowFormat& row, std::span<const uint32_t> positions,
                const float* from, std::byte* to) {
  const size_t row_bytes = row.floats * FloatBytes(row.format);
  InParts(by, positions.size(), row_bytes, [&](size_t first, size_t count) {
    WithRow(row, [&](auto format, auto floats) {
      WithVectors(
          by.width, [&]() __attribute__((always_inline)) {
            GatherAll<format(), floats()>(positions.subspan(first, count), row.floats, row.scale,
                                          from, to + first * row_bytes);
          });
    });
  });
}

void ScatterRows(const RowMovers& by, const RowFormat& row, std::span<const uint32_t> positions,
                 const std::byte* from, float* to) {
  const size_t row_bytes = row.floats * FloatBytes(row.format);
  InParts(by, positions.size(), row_bytes, [&](size_t first, size_t count) {
    WithRow(row, [&](auto format, auto floats) {
      WithVectors(
          by.width, [&]() __attribute__((always_inline)) {
            ScatterAll<format(), floats()>(positions.subspan(first, count), row.floats,
                                           from + first * row_bytes, to);
          });
    });
  });
}

}  // namespace hdps
