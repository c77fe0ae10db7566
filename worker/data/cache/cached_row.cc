// Writes the parts of a row one behind the other, and reads them with their bounds checked.
#include "worker/data/cache/cached_row.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/formats/derived_features.h"

namespace hdps {
namespace {

// The first byte of a row.
enum RowFlag : uint8_t {
  kBad = 1,          // The rest is the length of the reason, and the reason.
  kOneKeyEach = 2,   // There are no counts of keys, and no weights.
  kWeighted = 4,     // Each key has a weight.
  kPositiveText = 8  // Row::positive_texts is not 0.
};

// A count takes at most this many bytes.
constexpr size_t kCountBytesMax = 10;

// Puts parts one behind the other. Requires: there is room for them.
class PartsOut {
 public:
  explicit PartsOut(std::byte* at) : at_(at) {}
  template <typename T>
  void Put(const T* values, size_t count) {
    if (count > 0) std::memcpy(at_, values, count * sizeof(T));
    at_ += count * sizeof(T);
  }
  // Seven bits a byte, the lowest first.
  void PutCount(uint64_t count) {
    for (; count >= 0x80; count >>= 7) *at_++ = static_cast<std::byte>(count | 0x80);
    *at_++ = static_cast<std::byte>(count);
  }
  const std::byte* at() const { return at_; }

 private:
  std::byte* at_;
};

bool HasOneKeyEach(const Row& row, size_t features) {
  if (!row.weights.empty() || row.keys.size() != features) return false;
  for (size_t f = 0; f < features; ++f) {
    if (row.key_ends[f] != f + 1) return false;
  }
  return true;
}

// Takes parts off the front of a row. After one that is not there, ok() is false.
class Parts {
 public:
  explicit Parts(std::span<const std::byte> bytes) : left_(bytes) {}

  bool ok() const { return ok_; }
  std::span<const std::byte> left() const { return left_; }
  // Returns the bytes of `count` values; null: there are not so many.
  template <typename T>
  const std::byte* Take(size_t count) {
    if (count > left_.size() / sizeof(T)) {
      ok_ = false;
      left_ = {};
      return nullptr;
    }
    const std::byte* const at = left_.data();
    left_ = left_.subspan(count * sizeof(T));
    return at;
  }
  template <typename T>
  void Copy(size_t count, T* to) {
    const std::byte* const from = Take<T>(count);
    if (from != nullptr && count > 0) std::memcpy(to, from, count * sizeof(T));
  }
  uint64_t Count() {
    uint64_t count = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t byte = 0;
      Copy(1, &byte);
      count |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return count;
    }
    ok_ = false;
    return 0;
  }

 private:
  std::span<const std::byte> left_;
  bool ok_ = true;
};

// Copies `count` values that lie at `from`, wherever that is.
template <typename T>
void CopyAll(const std::byte* from, size_t count, std::vector<T>* to) {
  to->resize(count);
  if (count > 0) std::memcpy(to->data(), from, count * sizeof(T));
}

bool TakeKeys(const CachedShape& shape, const PackedRow& packed, Row* row) {
  Parts parts(packed.counts_and_rest);
  row->key_ends.clear();
  uint64_t keys = 0;
  for (size_t f = 0; f < shape.num_features; ++f) {
    const uint64_t count = parts.Count();
    if (!parts.ok() || count > kRowKeysMax || keys + count > kRowKeysMax) return false;
    keys += count;
    row->key_ends.push_back(static_cast<uint32_t>(keys));
  }
  const std::byte* const all = parts.Take<Key>(keys);
  const std::byte* const weights = packed.weighted ? parts.Take<float>(keys) : nullptr;
  if (!parts.ok()) return false;
  CopyAll(all, keys, &row->keys);
  CopyAll(weights, packed.weighted ? keys : 0, &row->weights);
  return true;
}

}  // namespace

CachedShape CachedShapeOf(const DataSpec& data, const std::vector<LabelSpec>& labels,
                          CachedForm form) {
  // All numbers are packed, whichever of them a worker takes.
  DataSpec all = data;
  all.kept_numbers.clear();
  const FeatureNames names = FeaturesOf(all);
  const bool has_ids =
      HasNamedColumns(data.format) &&
      std::ranges::any_of(data.columns, [](const ColumnSpec& c) { return c.vocab_size > 0; });
  return {
      .form = form,
      .num_numbers = names.numeric.size(),
      .num_features = form == CachedForm::kBase ? BaseFeaturesOf(data).size() : names.sparse.size(),
      .num_labels = static_cast<uint32_t>(labels.size()),
      .weights = HasColumn(data, ColumnType::kWeight),
      .groups = HasColumn(data, ColumnType::kGroup),
      .ids = has_ids};
}

size_t PackedBytes(const CachedShape& shape) {
  const size_t number = shape.form == CachedForm::kBase ? sizeof(double) : sizeof(float);
  return sizeof(RowFlag) + shape.num_labels * sizeof(float) + shape.num_numbers * number +
         shape.num_features * sizeof(Key) + (shape.weights ? sizeof(Row::weight) : 0) +
         (shape.groups ? sizeof(Row::group) : 0) + (shape.ids ? sizeof(Row::unknown_ids) : 0);
}

std::byte* CachedRun::Room(size_t bytes) {
  if (bytes > bytes_.size() - used_) bytes_.resize(std::max(used_ + bytes, 2 * bytes_.size()));
  return bytes_.data() + used_;
}

void CachedRun::Add(const CachedShape& shape, const Row& row, const std::vector<float>& numeric) {
  const bool one_each = HasOneKeyEach(row, shape.num_features);
  const bool weighted = !row.weights.empty();
  const auto flags =
      static_cast<uint8_t>((one_each ? kOneKeyEach : 0) | (weighted ? kWeighted : 0) |
                           (row.positive_texts != 0 ? kPositiveText : 0));
  constexpr size_t kOthers = sizeof(flags) + sizeof(row.weight) + sizeof(row.group) +
                             sizeof(row.unknown_ids) + kCountBytesMax;
  PartsOut out(Room(kOthers + shape.num_labels * sizeof(float) +
                    shape.num_numbers * sizeof(double) + shape.num_features * kCountBytesMax +
                    row.keys.size() * (sizeof(Key) + sizeof(float))));
  out.Put(&flags, 1);
  out.Put(shape.num_labels == 1 ? &row.label : row.task_labels.data(), shape.num_labels);
  if (shape.weights) out.Put(&row.weight, 1);
  if (shape.groups) out.Put(&row.group, 1);
  if (shape.ids) out.Put(&row.unknown_ids, 1);
  if (row.positive_texts != 0) out.PutCount(row.positive_texts);
  if (shape.form == CachedForm::kBase) {
    out.Put(row.numbers.data(), shape.num_numbers);
  } else {
    out.Put(numeric.data(), shape.num_numbers);
  }
  for (size_t f = 0; !one_each && f < shape.num_features; ++f) {
    out.PutCount(row.key_ends[f] - row.KeyBegin(f));
  }
  out.Put(row.keys.data(), row.keys.size());
  if (weighted) out.Put(row.weights.data(), row.weights.size());
  EndAt(out.at());
}

void CachedRun::AddBad(std::string_view why) {
  constexpr auto kFlags = static_cast<uint8_t>(kBad);
  PartsOut out(Room(sizeof(kFlags) + kCountBytesMax + why.size()));
  out.Put(&kFlags, 1);
  out.PutCount(why.size());
  out.Put(why.data(), why.size());
  EndAt(out.at());
}

std::optional<PackedRow> FindParts(const CachedShape& shape, std::span<const std::byte> bytes) {
  Parts parts(bytes);
  std::optional<PackedRow> found(std::in_place);
  PackedRow& row = *found;
  uint8_t flags = 0;
  parts.Copy(1, &flags);
  if ((flags & kBad) != 0) {
    const uint64_t size = parts.Count();
    const std::byte* const why = parts.Take<char>(size);
    row.bad = true;
    row.why = {reinterpret_cast<const char*>(why), parts.ok() ? size : 0};
    return parts.ok() ? found : std::nullopt;
  }
  row.labels = parts.Take<float>(shape.num_labels);
  if (shape.weights) parts.Copy(1, &row.weight);
  if (shape.groups) parts.Copy(1, &row.group);
  if (shape.ids) parts.Copy(1, &row.unknown_ids);
  if ((flags & kPositiveText) != 0) row.positive_texts = parts.Count();
  row.numbers = shape.form == CachedForm::kBase ? parts.Take<double>(shape.num_numbers)
                                                : parts.Take<float>(shape.num_numbers);
  row.weighted = (flags & kWeighted) != 0;
  row.one_key_each = (flags & kOneKeyEach) != 0;
  if (row.one_key_each) {
    row.keys = parts.Take<Key>(shape.num_features);
  } else {
    row.counts_and_rest = parts.left();
  }
  return parts.ok() ? found : std::nullopt;
}

bool Unpack(const CachedShape& shape, const PackedRow& packed, Row* row,
            std::vector<float>* numeric) {
  if (shape.num_labels == 1) {
    std::memcpy(&row->label, packed.labels, sizeof(row->label));
  } else {
    CopyAll(packed.labels, shape.num_labels, &row->task_labels);
  }
  row->weight = packed.weight;
  row->group = packed.group;
  row->unknown_ids = packed.unknown_ids;
  row->positive_texts = packed.positive_texts;
  if (shape.form == CachedForm::kBase) {
    CopyAll(packed.numbers, shape.num_numbers, &row->numbers);
  } else {
    CopyAll(packed.numbers, shape.num_numbers, numeric);
  }
  if (!packed.one_key_each) return TakeKeys(shape, packed, row);
  CopyAll(packed.keys, shape.num_features, &row->keys);
  row->weights.clear();
  row->key_ends.resize(shape.num_features);
  std::iota(row->key_ends.begin(), row->key_ends.end(), 1u);
  return true;
}

}  // namespace hdps
