// The values of sparse features that have keys of their own; all others of a feature share one key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

struct DataSpec;

// Name of the file beside a prepared job and in a checkpoint.
inline constexpr const char* kVocabularyName = "vocabulary.keys";

// Returns the key that the values without a key of their own share, in the vocabulary of `salt`.
inline Key OtherValuesKey(uint64_t salt) {
  constexpr Key kOthers = 0x6f7468657276616c;
  return CombineKeys(salt, kOthers);
}

// A set of keys of values, FeatureKey(salt, value), and the salts that it speaks of.
//
// Invariant: salts_ and keys_ ascend and have nothing twice. The keys whose upper `bits_` bits are
// b are those from starts_[b] up to starts_[b + 1]. Keys are hashes, so these are one or two.
class Vocabulary {
 public:
  // Takes both in any order. `min_count`: how often each of the values came at least.
  // Requires: fewer than 2^32 keys.
  Vocabulary(std::vector<uint64_t> salts, std::vector<Key> keys, uint64_t min_count);

  bool Has(Key key) const;
  bool Covers(uint64_t salt) const;
  size_t size() const { return keys_.size(); }
  uint64_t min_count() const { return min_count_; }
  // Returns the bytes of its file (docs/formats.md).
  std::string Print() const;
  // Returns the checksum at the end of these bytes, as data.vocabulary.checksum has it.
  std::string Checksum() const;

 private:
  std::vector<uint64_t> salts_;
  std::vector<Key> keys_;
  uint64_t min_count_;
  int bits_;
  std::vector<uint32_t> starts_;  // [2^bits_ + 1]
};

// Reads the bytes of a file. Errors: kCorruption says what is wrong with them.
Result<Vocabulary> ParseVocabulary(const std::string& bytes);

// Returns the name by which each sparse feature that is not derived salts its keys, in the order of
// the features.
std::vector<std::string> KeySpacesOf(const DataSpec& data);

// Fills in data->vocabulary.values from its file. Errors: kInvalidArgument if there is no such
// file, if it is damaged or another one by its checksum, or if it does not speak of a feature of
// the data.
Status LoadVocabulary(FileSystem& files, DataSpec* data);

}  // namespace hdps
