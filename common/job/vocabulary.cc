// Keeps the keys in order, with a directory by their upper bits.
#include "common/job/vocabulary.h"
#include "common/base/hex_digits.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/memory_full.h"

namespace hdps {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr std::string_view kMagic = "$HDPSVOC";
constexpr uint32_t kVersion = 1;
constexpr size_t kKeysMax = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kFileBytesMax = uint64_t{64} << 30;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t num_salts;
  uint64_t min_count;
  uint64_t num_keys;
};
static_assert(sizeof(Header) == 32);

void SortUnique(std::vector<uint64_t>* values) {
  std::ranges::sort(*values);
  values->erase(std::unique(values->begin(), values->end()), values->end());
}

bool Ascends(const std::vector<uint64_t>& values) {
  return std::ranges::adjacent_find(values, std::greater_equal<>()) == values.end();
}

template <typename Value>
void Append(std::span<const Value> values, std::string* bytes) {
  const auto raw = std::as_bytes(values);
  bytes->append(reinterpret_cast<const char*>(raw.data()), raw.size());
}

uint64_t HashOf(std::string_view bytes) { return HashBytes(std::as_bytes(std::span(bytes))); }

std::vector<uint64_t> Numbers(std::string_view bytes) {
  std::vector<uint64_t> numbers(bytes.size() / sizeof(uint64_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

}  // namespace

Vocabulary::Vocabulary(std::vector<uint64_t> salts, std::vector<Key> keys, uint64_t min_count)
    : salts_(std::move(salts)), keys_(std::move(keys)), min_count_(min_count) {
  SortUnique(&salts_);
  SortUnique(&keys_);
  CHECK_LE(keys_.size(), kKeysMax);
  bits_ = std::clamp<int>(std::bit_width(keys_.size()), 1, 32);
  starts_.assign((size_t{1} << bits_) + 1, 0);
  for (const Key key : keys_) ++starts_[(key >> (64 - bits_)) + 1];
  for (size_t b = 1; b < starts_.size(); ++b) starts_[b] += starts_[b - 1];
}

bool Vocabulary::Has(Key key) const {
  const size_t bucket = key >> (64 - bits_);
  return std::binary_search(keys_.begin() + starts_[bucket], keys_.begin() + starts_[bucket + 1],
                            key);
}

bool Vocabulary::Covers(uint64_t salt) const { return std::ranges::binary_search(salts_, salt); }

std::string Vocabulary::Print() const {
  Header header{{}, kVersion, static_cast<uint32_t>(salts_.size()), min_count_, keys_.size()};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  std::string bytes;
  Append(std::span<const Header>(&header, 1), &bytes);
  Append(std::span<const uint64_t>(salts_), &bytes);
  Append(std::span<const Key>(keys_), &bytes);
  const uint64_t checksum = HashOf(bytes);
  Append(std::span<const uint64_t>(&checksum, 1), &bytes);
  return bytes;
}

std::string Vocabulary::Checksum() const {
  const std::string bytes = Print();
  return HexDigits(Numbers(bytes.substr(bytes.size() - sizeof(uint64_t)))[0]);
}

Result<Vocabulary> ParseVocabulary(const std::string& bytes) {
  constexpr size_t kNumber = sizeof(uint64_t);
  const Status damaged(Code::kCorruption,
                       "it is no whole vocabulary: expected a file that hdps "
                       "prepare --min_count=N has written");
  Header header;
  if (bytes.size() < sizeof(header) + kNumber || !bytes.starts_with(kMagic)) return damaged;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.version != kVersion) {
    return Status(Code::kCorruption, "it has version " + std::to_string(header.version) +
                                         " of vocabularies: expected " + std::to_string(kVersion));
  }
  const std::string_view whole = bytes;
  const std::string_view body = whole.substr(0, whole.size() - kNumber);
  const std::string_view numbers = body.substr(sizeof(header));
  if (header.num_keys > kKeysMax ||
      numbers.size() != (header.num_salts + header.num_keys) * kNumber ||
      Numbers(whole.substr(body.size()))[0] != HashOf(body)) {
    return damaged;
  }
  std::vector<uint64_t> salts = Numbers(numbers.substr(0, header.num_salts * kNumber));
  std::vector<Key> keys = Numbers(numbers.substr(header.num_salts * kNumber));
  if (!Ascends(salts) || !Ascends(keys)) return damaged;
  return Vocabulary(std::move(salts), std::move(keys), header.min_count);
}

std::vector<std::string> KeySpacesOf(const DataSpec& data) {
  std::vector<std::string> spaces;
  if (HasNamedColumns(data.format)) {
    for (const ColumnSpec& column : data.columns) {
      const bool sparse =
          column.type == ColumnType::kCategorical || column.type == ColumnType::kMulti;
      if (sparse) spaces.push_back(column.key_space());
    }
    return spaces;
  }
  DataSpec base = data;
  base.features.clear();
  return FeaturesOf(base).sparse;
}

Status LoadVocabulary(FileSystem& files, DataSpec* data) {
  const MemoryFor values("the values that have keys of their own (data.vocabulary)");
  VocabularySpec& spec = data->vocabulary;
  const auto refuse = [&spec](const std::string& why) {
    return Status(Code::kInvalidArgument, spec.file + ": " + why);
  };
  if (!files.Exists(spec.file)) return refuse("there is no such file");
  HDPS_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(files, spec.file, kFileBytesMax));
  Result<Vocabulary> read = ParseVocabulary(bytes);
  if (!read.ok()) return refuse(read.status().message());
  if (const std::string found = read->Checksum(); found != spec.checksum) {
    return refuse("its checksum is " + found + ", and data.vocabulary.checksum is " +
                  spec.checksum + ": expected the file that was written together with the job");
  }
  for (const std::string& space : KeySpacesOf(*data)) {
    if (read->Covers(HashString(space))) continue;
    return refuse("its values are not those of the feature '" + space +
                  "': expected a file that hdps prepare --min_count=N wrote for these features");
  }
  spec.values = std::make_shared<const Vocabulary>(*std::move(read));
  return {};
}

}  // namespace hdps
