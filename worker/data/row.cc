// Builds batches from rows, and describes bad rows.
#include "worker/data/row.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/base/outside_text.h"
#include "common/job/job_facts.h"

namespace hdps {
namespace {

constexpr size_t kShownBytesMax = 60;

bool IsWithinCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Counts the UTF-8 characters of a text; bytes if it is something else.
size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsWithinCharacter(c); }));
}

}  // namespace

std::string Printable(std::string_view value) {
  const bool whole = value.size() <= kShownBytesMax;
  size_t bytes = std::min(value.size(), kShownBytesMax);
  // Does not cut a character, whose first byte is followed by at most three.
  for (int back = 0; !whole && back < 3 && IsWithinCharacter(value[bytes]); ++back) --bytes;
  return EscapeUntrusted(value.substr(0, bytes)) + (whole ? "" : "...");
}

void Row::Clear() {
  label = 0;
  task_labels.clear();
  weight = 1;
  group = 0;
  unknown_ids = 0;
  positive_texts = 0;
  numbers.clear();
  keys.clear();
  weights.clear();
  key_ends.clear();
}

std::string DescribeRowError(const std::string& path, uint64_t line_number, std::string_view line,
                             const RowError& error) {
  // A value that was unquoted into other memory gets the line's start as its place.
  const bool inside =
      error.value.data() >= line.data() && error.value.data() <= line.data() + line.size();
  const size_t bytes = inside ? static_cast<size_t>(error.value.data() - line.data()) : 0;
  return DescribeCellError(path + ":" + std::to_string(line_number) + ":" +
                               std::to_string(CountCharacters(line.substr(0, bytes)) + 1),
                           error);
}

std::string DescribeCellError(const std::string& place, const RowError& error) {
  std::string text =
      place + ": '" + Printable(error.value) + "': expected " + std::string(error.expected);
  if (!error.column.empty()) text += " in column '" + std::string(error.column) + "'";
  return text;
}

BatchBuilder::BatchBuilder(const BatchShape& shape, uint32_t rows_expected)
    : shape_(shape),
      plain_(!shape.weights && !shape.groups && !shape.ids && !shape.numbered),
      rows_expected_(rows_expected) {
  batch_.num_numeric = static_cast<uint32_t>(shape.num_numeric);
  batch_.num_labels = shape.num_labels;
  batch_.sparse.resize(shape.num_sparse);
  batch_.labels.reserve(size_t{rows_expected} * shape.num_labels);
  batch_.numeric.reserve(shape.num_numeric * rows_expected);
  for (SparseColumn& column : batch_.sparse) {
    column.offsets.reserve(rows_expected + 1);
    column.offsets.push_back(0);
    column.keys.reserve(rows_expected);
  }
  waiting_.resize(kWaitingMax * shape.num_sparse);
}

template <typename AnyRow>
void BatchBuilder::AddSpecial(const AnyRow& row, uint32_t number) {
  if (shape_.weights) batch_.weights.push_back(row.weight);
  if (shape_.groups) batch_.groups.push_back(row.group);
  if (shape_.ids) batch_.unknown_ids.push_back(row.unknown_ids);
  if (shape_.numbered) batch_.rows.push_back(number);
}

void BatchBuilder::AddOthers(const Row& row, const std::vector<float>& numeric, uint32_t number) {
  DCHECK_EQ(numeric.size(), batch_.num_numeric);
  if (num_places_ > 0) AddPlaces();
  if (shape_.num_labels == 1) {
    batch_.labels.push_back(row.label);
  } else {
    DCHECK_EQ(row.task_labels.size(), shape_.num_labels);
    batch_.labels.insert(batch_.labels.end(), row.task_labels.begin(), row.task_labels.end());
  }
  if (!plain_) AddSpecial(row, number);
  batch_.positive_texts |= row.positive_texts;
  batch_.numeric.insert(batch_.numeric.end(), numeric.begin(), numeric.end());
  ++batch_.num_examples;
}

void BatchBuilder::AddOneKeyEach(const Row& row) {
  Key* const waiting = waiting_.data();  // Null if there are no sparse features.
  for (size_t f = 0; f < row.keys.size(); ++f)
    waiting[f * kWaitingMax + num_waiting_] = row.keys[f];
  if (++num_waiting_ == kWaitingMax) AddWaiting();
}

void BatchBuilder::AddInPlace(const RowInPlace& row, uint32_t number) {
  if (num_waiting_ > 0) AddWaiting();
  for (uint32_t i = 0; i < shape_.num_labels; ++i) {
    float label;
    std::memcpy(&label, row.labels + i * sizeof(label), sizeof(label));
    batch_.labels.push_back(label);
  }
  if (!plain_) AddSpecial(row, number);
  batch_.positive_texts |= row.positive_texts;
  ++batch_.num_examples;
  numbers_at_[num_places_] = row.numbers;
  keys_at_[num_places_] = row.keys;
  if (++num_places_ == kWaitingMax) AddPlaces();
}

void BatchBuilder::Add(const Row& row, const std::vector<float>& numeric, uint32_t number) {
  DCHECK_EQ(row.key_ends.size(), batch_.sparse.size());
  AddOthers(row, numeric, number);
  bool one_each = row.weights.empty() && row.keys.size() == row.key_ends.size();
  for (uint32_t f = 0; one_each && f < row.key_ends.size(); ++f) {
    one_each = row.key_ends[f] == f + 1;
  }
  if (one_each) return AddOneKeyEach(row);
  AddWaiting();
  AddKeys(row);
}

void BatchBuilder::AppendKeys(const Key* keys, uint32_t count, SparseColumn* column) {
  const auto before = static_cast<uint32_t>(column->keys.size());
  std::array<uint32_t, kWaitingMax> offsets;
  for (uint32_t i = 0; i < kWaitingMax; ++i) offsets[i] = before + i + 1;
  column->keys.insert(column->keys.end(), keys, keys + count);
  column->offsets.insert(column->offsets.end(), offsets.data(), offsets.data() + count);
  if (!column->weights.empty()) column->weights.resize(column->keys.size(), 1.0f);
}

void BatchBuilder::AddWaiting() {
  for (size_t f = 0; f < batch_.sparse.size(); ++f) {
    AppendKeys(waiting_.data() + f * kWaitingMax, num_waiting_, &batch_.sparse[f]);
  }
  num_waiting_ = 0;
}

void BatchBuilder::AddPlaces() {
  const size_t row_bytes = shape_.num_numeric * sizeof(float);
  const size_t before = batch_.numeric.size();
  batch_.numeric.resize(before + num_places_ * shape_.num_numeric);
  float* numeric = batch_.numeric.data() + before;
  for (uint32_t i = 0; row_bytes > 0 && i < num_places_; ++i, numeric += shape_.num_numeric) {
    std::memcpy(numeric, numbers_at_[i], row_bytes);
  }
  std::array<Key, kWaitingMax> keys = {};
  for (size_t f = 0; f < batch_.sparse.size(); ++f) {
    for (uint32_t i = 0; i < num_places_; ++i) {
      std::memcpy(&keys[i], keys_at_[i] + f * sizeof(Key), sizeof(Key));
    }
    AppendKeys(keys.data(), num_places_, &batch_.sparse[f]);
  }
  num_places_ = 0;
}

void BatchBuilder::AddKeys(const Row& row) {
  uint32_t begin = 0;
  for (size_t f = 0; f < batch_.sparse.size(); ++f) {
    SparseColumn& column = batch_.sparse[f];
    const uint32_t end = row.key_ends[f];
    if (!row.weights.empty() || !column.weights.empty()) AddWeights(row, f, &column);
    column.keys.insert(column.keys.end(), row.keys.begin() + begin, row.keys.begin() + end);
    column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
    begin = end;
  }
}

// Keeps weights from the first one on that is not 1.
void BatchBuilder::AddWeights(const Row& row, size_t feature, SparseColumn* column) {
  const uint32_t begin = row.KeyBegin(feature);
  const uint32_t end = row.key_ends[feature];
  const auto weight = [&](uint32_t i) { return row.weights.empty() ? 1.0f : row.weights[i]; };
  if (column->weights.empty()) {
    bool all_ones = true;
    for (uint32_t i = begin; i < end; ++i) all_ones = all_ones && weight(i) == 1.0f;
    if (all_ones) return;
    column->weights.assign(column->keys.size(), 1.0f);
  }
  for (uint32_t i = begin; i < end; ++i) column->weights.push_back(weight(i));
}

Batch BatchBuilder::Finish(uint64_t first_row) {
  AddPlaces();
  AddWaiting();
  Batch batch = std::move(batch_);
  batch.first_row = first_row;
  *this = BatchBuilder(shape_, rows_expected_);
  return batch;
}

}  // namespace hdps
