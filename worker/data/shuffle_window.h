// Shuffles a stream of lines within a window, by seed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "common/platform/huge_pages.h"
#include "common/platform/random.h"
#include "worker/data/line_reader.h"

namespace hdps {

// Draws the element of a window that comes out next. The draws depend on the seed and on the
// window's size at each draw, not on its contents.
class WindowDraws {
 public:
  void Restart(uint64_t seed) {
    random_ = Random(seed);
    next_ = 0;
    for (uint64_t& draw : draws_) draw = random_.Next();
  }
  // Returns a number in [0, size). Requires: 0 < size < 2^32.
  size_t Next(size_t size) {
    const size_t drawn = Below(draws_[next_], size);
    draws_[next_] = random_.Next();
    next_ = (next_ + 1) % kPrefetch;
    return drawn;
  }
  // Draws that are known before their use, for prefetching.
  static constexpr size_t kPrefetch = 16;
  // Returns the draw that follows the next `ahead` ones if the size stays the same. Requires: ahead
  // < kPrefetch.
  size_t Peek(size_t ahead, size_t size) const {
    return Below(draws_[(next_ + ahead) % kPrefetch], size);
  }

 private:
  // Uses 32 bits of a draw, which are enough.
  static size_t Below(uint64_t draw, size_t size) { return ((draw >> 32) * size) >> 32; }

  Random random_{0};
  std::array<uint64_t, kPrefetch> draws_ = {};
  size_t next_ = 0;
};

// Returns the cache lines that a text takes in a window.
inline size_t WindowLines(size_t bytes) {
  constexpr size_t kCacheLineBytes = 64;
  return std::max<size_t>(1, (bytes + kCacheLineBytes - 1) / kCacheLineBytes);
}

// Fills up with lines; then each line that goes in replaces a random one, which comes out. The
// order depends on the lines and the seed only.
//
// Invariant: every line that went in comes out once. A line lies in a block of its own, a whole
// number of cache lines; the block of a line that came out is the next to take a line of that size,
// while its bytes are still cached. When free blocks exceed half of the bytes in use, because line
// lengths have changed, all lines move to new blocks. So the window holds at most one and a half
// times the bytes of the blocks in use plus two chunks, and as much again while lines move.
class ShuffleWindow {
 public:
  // The window is full with this many rows, or with this many bytes of them if that is less.
  ShuffleWindow(uint64_t rows, size_t bytes_max)
      : rows_max_(std::min<uint64_t>(rows, UINT32_MAX - 1)), bytes_max_(bytes_max) {}

  void Restart(uint64_t seed);
  bool full() const { return lines_.size() >= rows_max_ || live_bytes_ >= bytes_max_; }
  bool empty() const { return lines_.empty(); }
  void Add(const Line& line);
  // Removes a random line, which is valid until the next Add. Requires: not empty.
  Line RemoveAny();

  size_t held_bytes() const { return held_bytes_; }

 private:
  struct HeldLine {
    char* text;  // A block.
    uint64_t number, row;
    uint32_t size;
    uint32_t file;
  };
  struct Chunk {
    PageBlock bytes;
    size_t size = 0, used = 0;
  };

  // Returns a block for a line of `size` bytes.
  char* NewBlock(size_t size);
  void AddChunk(size_t bytes_min);
  void MoveAll();

  const uint64_t rows_max_;
  const size_t bytes_max_;
  WindowDraws draws_;
  std::vector<HeldLine> lines_;
  std::vector<Chunk> chunks_;             // New blocks are cut from the last one.
  std::vector<std::vector<char*>> free_;  // Free blocks, by their number of cache lines.
  size_t held_bytes_ = 0;                 // Bytes of all chunks.
  size_t live_bytes_ = 0;                 // Bytes of blocks with a line.
};

}  // namespace hdps
