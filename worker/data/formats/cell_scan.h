// Finds the ends of a line's cells, 64 bytes at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hdps {

// Returns a mask in which bit i is set if bytes[i] is `wanted`. bytes[64].
inline uint64_t MaskOf(const char* bytes, char wanted) {
  uint64_t mask = 0;
#if defined(__SSE2__)  // SSE2 is part of every x86-64, so no choice at run time is needed.
  for (uint32_t i = 0; i < 64; i += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
    const int found = _mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8(wanted)));
    mask |= uint64_t{static_cast<uint32_t>(found)} << i;
  }
#else
  for (uint32_t i = 0; i < 64; ++i) mask |= uint64_t{bytes[i] == wanted} << i;
#endif
  return mask;
}

// Writes the positions of the first `ends.size()` delimiters of `line`, and returns their number,
// counting at most one more than fit into `ends`. Sets `*quoted`, if not null, to whether a '"' was
// found on the way.
//
// Works on 64 bytes at a time, because each block costs about one unpredictable branch.
inline size_t ScanCells(std::string_view line, char delimiter, std::span<uint32_t> ends,
                        bool* quoted = nullptr) {
  size_t found = 0;
  uint64_t quotes = 0;
  const auto told = [&](size_t delimiters) {
    if (quoted != nullptr) *quoted = quotes != 0;
    return delimiters;
  };
  for (size_t at = 0; at < line.size(); at += 64) {
    const size_t left = line.size() - at;
    const char* block = line.data() + at;
    // Never reads beyond the line: its last block overlaps the one before, or is a copy.
    char copy[64] = {};
    const size_t before = left < 64 && at > 0 ? 64 - left : 0;
    if (left < 64 && at == 0) block = static_cast<char*>(std::memcpy(copy, block, left));
    uint64_t mask = MaskOf(block - before, delimiter) >> before;
    if (quoted != nullptr) quotes |= MaskOf(block - before, '"');
    for (; mask != 0; mask &= mask - 1) {
      if (found == ends.size()) return told(found + 1);
      ends[found++] = static_cast<uint32_t>(at) + static_cast<uint32_t>(std::countr_zero(mask));
    }
  }
  return told(found);
}

// Returns the end of the cell of `line` that begins at `at`: its delimiter, or the end of the line.
// Delimiters inside quotes are text; an open quote reaches to the end.
inline size_t EndOfCell(std::string_view line, size_t at, char delimiter,
                        std::optional<char> quote) {
  size_t begin = at;
  while (quote && begin < line.size() && line[begin] == ' ' && delimiter != ' ') ++begin;
  if (quote && begin < line.size() && line[begin] == *quote && delimiter != *quote) {
    for (at = begin + 1;; at += 2) {
      at = line.find(*quote, at);
      if (at == std::string_view::npos) return line.size();
      if (at + 1 >= line.size() || line[at + 1] != *quote) break;
    }
  }
  const size_t end = line.find(delimiter, at);
  return end == std::string_view::npos ? line.size() : end;
}

}  // namespace hdps
