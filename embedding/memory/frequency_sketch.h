// Counts how often keys were seen, in memory that does not grow with them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// A count-min sketch of four-bit counters (Cormode and Muthukrishnan 2005) with conservative update
// (Estan and Varghese 2002): a key's four counters lie in one line of memory, and only the smallest
// of them grow. Once it has counted about half as many keys as it has counters for, all are
// halved (Einziger and others 2017), so that what comes no more is forgotten.
//
// Invariant: a count is never less than how often its key was counted since the last halving, up to
// kCountMax. What it holds depends on the seed and on the keys it was given, in order, and on
// nothing else.
class FrequencySketch {
 public:
  static constexpr uint32_t kCountMax = 15;

  // At least `bytes`, in whole lines.
  FrequencySketch(uint64_t bytes, uint64_t seed);

  // How often `key` has been seen, this time included.
  uint32_t Count(Key key);
  // How often it was counted.
  uint32_t Seen(Key key) const;
  void Prefetch(Key key) const { __builtin_prefetch(&words_[LineOf(Hash(key)) * kLineWords], 1); }

  size_t bytes() const { return (words_.size() + piece_hashes_.size()) * sizeof(uint64_t); }
  // Sights between two halvings.
  uint64_t window() const { return lines_ * kLineCounts; }

  // Saved a piece at a time. Which pieces changed is known since the last mark, by their hashes: a
  // mark costs a look at every word, counting costs nothing more.
  static constexpr size_t kPieceWords = 256;
  size_t num_pieces() const { return (words_.size() + kPieceWords - 1) / kPieceWords; }
  std::span<const uint64_t> Piece(size_t piece) const {
    const size_t begin = piece * kPieceWords;
    return state().subspan(begin, std::min(kPieceWords, words_.size() - begin));
  }
  void MarkSaved();
  // Requires: it was marked.
  bool ChangedSinceMark(size_t piece) const;

  // All it knows, to be saved and set again; its length depends on the constructor's `bytes` alone.
  std::span<const uint64_t> state() const { return words_; }
  std::span<uint64_t> state() { return words_; }

 private:
  static constexpr size_t kLineWords = 8;    // 64 bytes.
  static constexpr size_t kLineCounts = 16;  // Four counters of 128 each: half of them in use.

  // Four of its line's 128 counters, one in each quarter, so they differ.
  struct Counters {
    size_t words[4];  // Among words_.
    int shifts[4];
  };
  Counters CountersOf(Key key) const;
  uint32_t Least(const Counters& counters) const;
  uint64_t Hash(Key key) const;
  size_t LineOf(uint64_t hash) const;
  void Halve();

  const uint64_t seed_;
  const size_t lines_;
  std::vector<uint64_t> words_;         // The lines, then what was counted since the last halving.
  std::vector<uint64_t> piece_hashes_;  // At the last mark.
};

}  // namespace hdps
