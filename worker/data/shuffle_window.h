// Mixes a stream of lines within a window, by seed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "common/platform/random.h"
#include "worker/data/line_reader.h"

namespace hdps {

// Which of those in a window comes out next. The same for whatever is in it: what comes out depends
// on the seed and on how many are inside at each draw.
class WindowDraws {
 public:
  void Restart(uint64_t seed) {
    random_ = Random(seed);
    next_ = 0;
    for (uint64_t& draw : draws_) draw = random_.Next();
  }
  // In [0, size); 0 < size < 2^32.
  size_t Next(size_t size) {
    const size_t drawn = Below(draws_[next_], size);
    draws_[next_] = random_.Next();
    next_ = (next_ + 1) % kPrefetch;
    return drawn;
  }
  static constexpr size_t kPrefetch = 16;  // Draws known before they are used, to prefetch.
  // What the draw behind the next `ahead` ones will give if the size stays. Requires: ahead <
  // kPrefetch.
  size_t Peek(size_t ahead, size_t size) const {
    return Below(draws_[(next_ + ahead) % kPrefetch], size);
  }

 private:
  // 32 of a draw's bits are enough.
  static size_t Below(uint64_t draw, size_t size) { return ((draw >> 32) * size) >> 32; }

  Random random_{0};
  std::array<uint64_t, kPrefetch> draws_ = {};
  size_t next_ = 0;
};

// Lines go in until it is full; then one of them, each with the same chance, comes out for each
// that goes in. What comes out depends on the lines and the seed alone.
//
// Invariant: every line that went in comes out once. A line lies in a block of its own, as many
// cache lines as it needs; a block whose line came out is the next one to take a line of that many,
// while its bytes are still near. When the lines' lengths have changed so much that free blocks are
// more than half of what lines fill, all lines move into new ones. So it holds at most one and a
// half times the bytes of the blocks in use and two chunks more, and as much again while they move.
class ShuffleWindow {
 public:
  // Full with this many rows, or with this many bytes of them if that is less.
  ShuffleWindow(uint64_t rows, size_t bytes_max)
      : rows_max_(std::min<uint64_t>(rows, UINT32_MAX - 1)), bytes_max_(bytes_max) {}

  void Restart(uint64_t seed);
  bool full() const { return lines_.size() >= rows_max_ || live_bytes_ >= bytes_max_; }
  bool empty() const { return lines_.empty(); }
  void Add(const Line& line);
  // Requires: not empty. The line is valid until the next Add.
  Line RemoveAny();

  size_t held_bytes() const { return held_bytes_; }

 private:
  struct HeldLine {
    char* text;  // A block.
    uint64_t number;
    uint32_t size;
    uint32_t file;
  };
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  struct Chunk {
    std::unique_ptr<char[], Free> bytes;
    size_t size = 0, used = 0;
  };

  // A block for a line of `size` bytes.
  char* NewBlock(size_t size);
  void AddChunk(size_t bytes_min);
  void MoveAll();

  const uint64_t rows_max_;
  const size_t bytes_max_;
  WindowDraws draws_;
  std::vector<HeldLine> lines_;
  std::vector<Chunk> chunks_;             // Blocks are cut from the last one.
  std::vector<std::vector<char*>> free_;  // Blocks without a line, by their cache lines.
  size_t held_bytes_ = 0;                 // Of all chunks.
  size_t live_bytes_ = 0;                 // Of blocks with a line.
};

}  // namespace hdps
