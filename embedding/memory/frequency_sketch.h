// Counts how often keys were seen, in memory that does not grow with their number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// A count-min sketch (Cormode and Muthukrishnan 2005) with conservative update
// (Estan and Varghese 2002): a key's four counters lie in one cache line, and only the smallest of
// them are incremented. After so many counts all counters are halved (Einziger and others 2017), so
// that keys that no longer come are forgotten. Counters have the fewest bits that hold the count in
// question: 4, 8 or 16.
//
// Invariant: a count is never less than the number of times its key was counted since the last
// halving, up to count_max(). The state depends only on the seed and on the sequence of counted
// keys.
class FrequencySketch {
 public:
  static constexpr uint32_t kLongestCount = 65535;  // The highest `until`.

  // Takes at least `bytes`, in whole lines. `until`: counts up to this are told apart.
  FrequencySketch(uint64_t bytes, uint64_t seed, uint32_t until = 15);

  // Counts the key; returns how often it has been seen, this time included.
  uint32_t Count(Key key);
  // Returns how often the key was counted.
  uint32_t Seen(Key key) const;
  void Prefetch(Key key) const { __builtin_prefetch(&words_[LineOf(Hash(key)) * kLineWords], 1); }

  size_t bytes() const { return (words_.size() + piece_hashes_.size()) * sizeof(uint64_t); }
  // Number of counted keys between two halvings.
  uint64_t window() const { return lines_ * line_counts_; }
  uint32_t count_max() const { return (1u << bits_) - 1; }

  // The sketch is saved in pieces. Hashes of the pieces at the last mark tell which have changed: a
  // mark costs a pass over all words, counting costs nothing more.
  static constexpr size_t kPieceWords = 256;
  size_t num_pieces() const { return (words_.size() + kPieceWords - 1) / kPieceWords; }
  std::span<const uint64_t> Piece(size_t piece) const {
    const size_t begin = piece * kPieceWords;
    return state().subspan(begin, std::min(kPieceWords, words_.size() - begin));
  }
  void MarkSaved();
  // Requires: MarkSaved was called.
  bool ChangedSinceMark(size_t piece) const;

  // The whole state, to be saved and restored; its length depends only on the constructor's
  // `bytes`.
  std::span<const uint64_t> state() const { return words_; }
  std::span<uint64_t> state() { return words_; }

 private:
  static constexpr size_t kLineWords = 8;  // 64 bytes.

  // A key's four of its line's counters, one in each quarter, so they differ.
  struct Counters {
    size_t words[4];  // Positions in words_.
    int shifts[4];
  };
  Counters CountersOf(Key key) const;
  uint32_t Least(const Counters& counters) const;
  uint64_t Hash(Key key) const;
  size_t LineOf(uint64_t hash) const;
  void Halve();

  const uint64_t seed_;
  const size_t lines_;
  const int bits_;               // Bits of a counter.
  const size_t line_counts_;     // Counts per line between halvings.
  std::vector<uint64_t> words_;  // The lines, then the number counted since the last halving.
  std::vector<uint64_t> piece_hashes_;  // Hash of each piece at the last mark.
};

}  // namespace hdps
