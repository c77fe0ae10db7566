// Neighbours move together; single rows are asked for ahead.
#include "worker/exchange/row_moves.h"

#include <cstring>
#include <type_traits>

namespace hdps {
namespace {

// Calls copy(i, positions[i], count) for each run of positions that follow each other, prefetch(p)
// for each of those ahead. What is in order is a single run.
template <typename Copy, typename Prefetch>
void ForEachRun(std::span<const uint32_t> positions, const Copy& copy, const Prefetch& prefetch) {
  constexpr size_t kAhead = 16;
  const size_t n = positions.size();
  for (size_t i = 0; i < n;) {
    if (i + kAhead < n) prefetch(positions[i + kAhead]);
    size_t end = i + 1;
    while (end < n && positions[end] == positions[end - 1] + 1) ++end;
    copy(i, positions[i], end - i);
    i = end;
  }
}

// kFloats: 0, or the floats of a row known when this is compiled.
template <size_t kFloats>
void CopyRows(const float* from, size_t rows, size_t floats, float* to) {
  if (kFloats > 0 && rows == 1) {
    std::memcpy(to, from, kFloats * sizeof(float));
  } else {
    std::memcpy(to, from, rows * floats * sizeof(float));
  }
}

// to[i] = from[positions[i]].
template <size_t kFloats>
void GatherAll(std::span<const uint32_t> positions, size_t floats, const float* from, float* to) {
  ForEachRun(
      positions,
      [=](size_t i, size_t position, size_t rows) {
        CopyRows<kFloats>(from + position * floats, rows, floats, to + i * floats);
      },
      [=](size_t position) { __builtin_prefetch(from + position * floats, 0); });
}

// to[positions[i]] = from[i].
template <size_t kFloats>
void ScatterAll(std::span<const uint32_t> positions, size_t floats, const float* from, float* to) {
  ForEachRun(
      positions,
      [=](size_t i, size_t position, size_t rows) {
        CopyRows<kFloats>(from + i * floats, rows, floats, to + position * floats);
      },
      [=](size_t position) { __builtin_prefetch(to + position * floats, 1); });
}

// move(std::integral_constant) of the floats where they are usual ones, else of 0.
template <typename Move>
void WithFloats(size_t floats, const Move& move) {
  switch (floats) {
    case 1:
      return move(std::integral_constant<size_t, 1>());
    case 8:
      return move(std::integral_constant<size_t, 8>());
    case 16:
      return move(std::integral_constant<size_t, 16>());
    case 32:
      return move(std::integral_constant<size_t, 32>());
    default:
      return move(std::integral_constant<size_t, 0>());
  }
}

}  // namespace

void GatherRows(std::span<const uint32_t> positions, size_t floats, const float* from, float* to) {
  WithFloats(floats, [&](auto known) { GatherAll<known()>(positions, floats, from, to); });
}

void ScatterRows(std::span<const uint32_t> positions, size_t floats, const float* from, float* to) {
  WithFloats(floats, [&](auto known) { ScatterAll<known()>(positions, floats, from, to); });
}

}  // namespace hdps
