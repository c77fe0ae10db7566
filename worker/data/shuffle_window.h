// Mixes a stream of lines within a window, by seed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/random.h"
#include "worker/data/line_reader.h"

namespace hdps {

// Lines go in until it is full; then one of them, each with the same chance, comes out for each
// that goes in. What comes out depends on the lines and the seed alone.
//
// Invariant: every line that went in comes out once. The bytes held are at most twice those of the
// lines inside, and a line's more: a line that came out leaves a hole, and when half is holes the
// rest is moved together.
class ShuffleWindow {
 public:
  // Full with this many rows, or with this many bytes of them if that is less.
  ShuffleWindow(uint64_t rows, size_t bytes_max) : rows_max_(rows), bytes_max_(bytes_max) {}

  void Restart(uint64_t seed);
  bool full() const { return lines_.size() >= rows_max_ || live_bytes_ >= bytes_max_; }
  bool empty() const { return lines_.empty(); }
  void Put(const Line& line);
  // Requires: not empty. The line is valid until the next Put.
  Line TakeAny();

  size_t held_bytes() const { return bytes_.capacity(); }

 private:
  struct Held {
    uint64_t number;
    size_t begin;
    uint32_t size;
    uint32_t file;
  };
  void MoveTogether(size_t room);

  const uint64_t rows_max_;
  const size_t bytes_max_;
  Random random_{0};
  std::vector<Held> lines_;
  std::vector<char> bytes_;
  size_t used_bytes_ = 0;  // Of bytes_, holes counted.
  size_t live_bytes_ = 0;
};

}  // namespace hdps
