// Counts in four counters a key, all in one line.
#include "embedding/memory/frequency_sketch.h"

#include <algorithm>

#include "common/base/hash.h"

namespace hdps {

FrequencySketch::FrequencySketch(uint64_t bytes, uint64_t seed)
    : seed_(MixBits(seed)),
      lines_(std::max<uint64_t>(1, (bytes + 63) / 64)),
      words_(lines_ * kLineWords + 1) {}

uint64_t FrequencySketch::Hash(Key key) const { return MixBits(key ^ seed_); }

size_t FrequencySketch::LineOf(uint64_t hash) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<size_t>((static_cast<Wide>(hash) * lines_) >> 64);
}

FrequencySketch::Counters FrequencySketch::CountersOf(Key key) const {
  const uint64_t hash = Hash(key);
  const size_t line = LineOf(hash) * kLineWords;
  uint64_t places = MixBits(hash ^ ~seed_);
  Counters counters;
  for (size_t i = 0; i < 4; ++i, places >>= 5) {
    counters.words[i] = line + 2 * i + (places & 1);
    counters.shifts[i] = static_cast<int>(places >> 1 & 15) * 4;
  }
  return counters;
}

uint32_t FrequencySketch::Least(const Counters& counters) const {
  uint64_t least = kCountMax;
  for (int i = 0; i < 4; ++i) {
    least = std::min(least, words_[counters.words[i]] >> counters.shifts[i] & kCountMax);
  }
  return static_cast<uint32_t>(least);
}

uint32_t FrequencySketch::Seen(Key key) const { return Least(CountersOf(key)); }

uint32_t FrequencySketch::Count(Key key) {
  const Counters counters = CountersOf(key);
  uint32_t least = Least(counters);
  if (least < kCountMax) {
    for (int i = 0; i < 4; ++i) {
      uint64_t& word = words_[counters.words[i]];
      if ((word >> counters.shifts[i] & kCountMax) == least) {
        word += uint64_t{1} << counters.shifts[i];
      }
    }
    ++least;
  }
  if (++words_.back() >= window()) Halve();
  return least;
}

void FrequencySketch::MarkSaved() {
  piece_hashes_.resize(num_pieces());
  for (size_t piece = 0; piece < num_pieces(); ++piece) {
    piece_hashes_[piece] = HashBytes(std::as_bytes(Piece(piece)));
  }
}

bool FrequencySketch::ChangedSinceMark(size_t piece) const {
  return piece_hashes_[piece] != HashBytes(std::as_bytes(Piece(piece)));
}

void FrequencySketch::Halve() {
  constexpr uint64_t kLowBits = 0x7777777777777777;
  for (uint64_t& word : words_) word = word >> 1 & kLowBits;
  words_.back() = 0;
}

}  // namespace hdps
