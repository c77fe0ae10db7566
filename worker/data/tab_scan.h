// Finds the tabs of a line, sixteen bytes at a time.
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

// Bit i is set where bytes[i] is a tab. bytes[16].
inline uint32_t TabMask(const char* bytes) {
#if defined(__SSE2__)  // Part of every x86-64, so nothing has to be chosen at run time.
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8('\t'))));
#else
  uint32_t mask = 0;
  for (uint32_t i = 0; i < 16; ++i) mask |= uint32_t{bytes[i] == '\t'} << i;
  return mask;
#endif
}

// Writes the places of the first `ends.size()` tabs of `line` and returns how many tabs there are,
// counting at most one more than ends can hold.
inline size_t ScanTabs(std::string_view line, std::span<uint32_t> ends) {
  size_t found = 0;
  for (size_t at = 0; at < line.size(); at += 16) {
    const char* block = line.data() + at;
    char last[16] = {};
    if (line.size() - at < 16) {  // Nothing is read beyond the line.
      std::memcpy(last, block, line.size() - at);
      block = last;
    }
    for (uint32_t mask = TabMask(block); mask != 0; mask &= mask - 1) {
      if (found == ends.size()) return found + 1;
      ends[found++] = static_cast<uint32_t>(at) + static_cast<uint32_t>(std::countr_zero(mask));
    }
  }
  return found;
}

}  // namespace hdps
