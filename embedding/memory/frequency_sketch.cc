// Counts in four counters a key, all in one line.
#include "embedding/memory/frequency_sketch.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/base/hash.h"

namespace hdps {
namespace {

int BitsFor(uint32_t until) {
  CHECK_LE(until, FrequencySketch::kLongestCount);
  return until <= 15 ? 4 : until <= 255 ? 8 : 16;
}

// Returns the counts per line between halvings. With 4 bits each uses four of 128 counters, so at
// most half are used. More bits are for larger counts, of which a counter's share of the other keys
// may be a sixteenth.
size_t LineCounts(uint32_t until) {
  constexpr size_t kLineBits = 512, kQuarters = 4;
  const auto bits = static_cast<size_t>(BitsFor(until));
  return bits == 4 ? 16 : kLineBits / bits / kQuarters * until / 16;
}

}  // namespace

FrequencySketch::FrequencySketch(uint64_t bytes, uint64_t seed, uint32_t until)
    : seed_(MixBits(seed)),
      lines_(std::max<uint64_t>(1, (bytes + 63) / 64)),
      bits_(BitsFor(until)),
      line_counts_(LineCounts(until)),
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
    counters.shifts[i] = static_cast<int>(places >> 1 & (64 / bits_ - 1)) * bits_;
  }
  return counters;
}

uint32_t FrequencySketch::Least(const Counters& counters) const {
  uint64_t least = count_max();
  for (int i = 0; i < 4; ++i) {
    least = std::min(least, words_[counters.words[i]] >> counters.shifts[i] & count_max());
  }
  return static_cast<uint32_t>(least);
}

uint32_t FrequencySketch::Seen(Key key) const { return Least(CountersOf(key)); }

uint32_t FrequencySketch::Count(Key key) {
  const Counters counters = CountersOf(key);
  uint32_t least = Least(counters);
  if (least < count_max()) {
    for (int i = 0; i < 4; ++i) {
      uint64_t& word = words_[counters.words[i]];
      if ((word >> counters.shifts[i] & count_max()) == least) {
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
  // All bits but the highest of each counter.
  const uint64_t low_bits = ~uint64_t{0} / count_max() * (count_max() >> 1);
  for (uint64_t& word : words_) word = word >> 1 & low_bits;
  words_.back() = 0;
}

}  // namespace hdps
