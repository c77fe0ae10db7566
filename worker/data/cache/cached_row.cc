// Writes the parts of a row one behind the other, and reads them with their bounds checked.
#include "worker/data/cache/cached_row.h"

#include <cstring>

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

template <typename T>
void Put(const T* values, size_t count, std::vector<std::byte>* to) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(values);
  to->insert(to->end(), bytes, bytes + count * sizeof(T));
}

// Seven bits a byte, the lowest first.
void PutCount(uint64_t count, std::vector<std::byte>* to) {
  for (; count >= 0x80; count >>= 7) to->push_back(static_cast<std::byte>(count | 0x80));
  to->push_back(static_cast<std::byte>(count));
}

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
  template <typename T>
  void CopyAll(size_t count, std::vector<T>* to) {
    const std::byte* const from = Take<T>(count);
    if (from == nullptr) return;
    to->resize(count);
    if (count > 0) std::memcpy(to->data(), from, count * sizeof(T));
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

void TakeSpecial(const CachedShape& shape, uint8_t flags, Parts* parts, Row* row) {
  if (shape.num_labels == 1) {
    parts->Copy(1, &row->label);
  } else {
    parts->CopyAll(shape.num_labels, &row->task_labels);
  }
  row->weight = 1;
  if (shape.weights) parts->Copy(1, &row->weight);
  if (shape.groups) parts->Copy(1, &row->group);
  row->unknown_ids = 0;
  if (shape.ids) parts->Copy(1, &row->unknown_ids);
  row->positive_texts = (flags & kPositiveText) != 0 ? parts->Count() : 0;
}

bool TakeKeys(const CachedShape& shape, uint8_t flags, Parts* parts, Row* row) {
  row->key_ends.clear();
  uint64_t keys = 0;
  for (size_t f = 0; f < shape.num_features; ++f) {
    const uint64_t count = parts->Count();
    if (!parts->ok() || count > kRowKeysMax || keys + count > kRowKeysMax) return false;
    keys += count;
    row->key_ends.push_back(static_cast<uint32_t>(keys));
  }
  parts->CopyAll(keys, &row->keys);
  row->weights.clear();
  if ((flags & kWeighted) != 0) parts->CopyAll(keys, &row->weights);
  return parts->ok();
}

}  // namespace

void CachedRun::Add(const CachedShape& shape, const Row& row, const std::vector<float>& numeric) {
  const bool one_each = HasOneKeyEach(row, shape.num_features);
  const bool weighted = !row.weights.empty();
  const auto flags =
      static_cast<uint8_t>((one_each ? kOneKeyEach : 0) | (weighted ? kWeighted : 0) |
                           (row.positive_texts != 0 ? kPositiveText : 0));
  Put(&flags, 1, &bytes_);
  if (shape.num_labels == 1) {
    Put(&row.label, 1, &bytes_);
  } else {
    Put(row.task_labels.data(), row.task_labels.size(), &bytes_);
  }
  if (shape.weights) Put(&row.weight, 1, &bytes_);
  if (shape.groups) Put(&row.group, 1, &bytes_);
  if (shape.ids) Put(&row.unknown_ids, 1, &bytes_);
  if (row.positive_texts != 0) PutCount(row.positive_texts, &bytes_);
  if (shape.form == CachedForm::kBase) {
    Put(row.numbers.data(), row.numbers.size(), &bytes_);
  } else {
    Put(numeric.data(), numeric.size(), &bytes_);
  }
  for (size_t f = 0; !one_each && f < shape.num_features; ++f) {
    PutCount(row.key_ends[f] - row.KeyBegin(f), &bytes_);
  }
  Put(row.keys.data(), row.keys.size(), &bytes_);
  if (weighted) Put(row.weights.data(), row.weights.size(), &bytes_);
}

void CachedRun::AddBad(std::string_view why) {
  bytes_.push_back(std::byte{kBad});
  PutCount(why.size(), &bytes_);
  Put(why.data(), why.size(), &bytes_);
}

std::optional<Unpacked> Unpack(const CachedShape& shape, std::span<const std::byte> bytes, Row* row,
                               std::vector<float>* numeric) {
  Parts parts(bytes);
  Unpacked unpacked;
  uint8_t flags = 0;
  parts.Copy(1, &flags);
  if ((flags & kBad) != 0) {
    const uint64_t size = parts.Count();
    const std::byte* const why = parts.Take<char>(size);
    if (!parts.ok()) return std::nullopt;
    unpacked.bad = true;
    unpacked.why = {reinterpret_cast<const char*>(why), size};
    return unpacked;
  }
  TakeSpecial(shape, flags, &parts, row);
  if (shape.form == CachedForm::kBase) {
    parts.CopyAll(shape.num_numbers, &row->numbers);
  } else {
    parts.CopyAll(shape.num_numbers, numeric);
  }
  unpacked.one_key_each = (flags & kOneKeyEach) != 0;
  if (!unpacked.one_key_each) {
    return TakeKeys(shape, flags, &parts, row) ? std::optional(unpacked) : std::nullopt;
  }
  parts.CopyAll(shape.num_features, &row->keys);
  row->weights.clear();
  if (!parts.ok()) return std::nullopt;
  return unpacked;
}

}  // namespace hdps
