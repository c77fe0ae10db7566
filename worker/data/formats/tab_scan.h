// Finds the tabs of a line, 64 bytes at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hdps {

// Bit i is set where bytes[i] is a tab. bytes[64].
inline uint64_t TabMask(const char* bytes) {
  uint64_t mask = 0;
#if defined(__SSE2__)  // Part of every x86-64, so nothing has to be chosen at run time.
  for (uint32_t i = 0; i < 64; i += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
    const int tabs = _mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8('\t')));
    mask |= uint64_t{static_cast<uint32_t>(tabs)} << i;
  }
#else
  for (uint32_t i = 0; i < 64; ++i) mask |= uint64_t{bytes[i] == '\t'} << i;
#endif
  return mask;
}

// The same for the last `count` bytes of `text`. Requires: 0 < count <= text.size(), count < 64.
inline uint64_t TabMaskOfLast(std::string_view text, size_t count) {
  // Nothing is read beyond the text: a block that ends with it, or a copy.
  if (text.size() >= 64) return TabMask(text.data() + text.size() - 64) >> (64 - count);
  char last[64] = {};
  std::memcpy(last, text.data() + text.size() - count, count);
  return TabMask(last);
}

// Writes the places of the first `ends.size()` tabs of `line` and returns how many tabs there are,
// counting at most one more than ends can hold.
//
// 64 bytes at a time, because each block costs about one branch that cannot be foreseen.
inline size_t ScanTabs(std::string_view line, std::span<uint32_t> ends) {
  size_t found = 0;
  for (size_t at = 0; at < line.size(); at += 64) {
    const size_t left = line.size() - at;
    uint64_t mask = left >= 64 ? TabMask(line.data() + at) : TabMaskOfLast(line, left);
    for (; mask != 0; mask &= mask - 1) {
      if (found == ends.size()) return found + 1;
      ends[found++] = static_cast<uint32_t>(at) + static_cast<uint32_t>(std::countr_zero(mask));
    }
  }
  return found;
}

}  // namespace hdps
