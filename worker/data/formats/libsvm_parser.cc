// Parses lines of "label index:value ..." and "label field:index:value ...": libsvm, libffm, libfm.
// Entries are separated by blanks, or by commas if one follows the label, as in xLearn.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/formats/derived_features.h"
#include "worker/data/formats/label.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/number.h"

namespace hdps {
namespace {

bool AllDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

constexpr std::string_view kBlanks = " \t\r", kComma = ",", kCommasAndBlanks = ", \t\r";

// Takes the next word off the front of `*rest`; empty at the end or before a "#". `between` are the
// separators, at least one of which stands between words, with blanks.
std::string_view NextWord(std::string_view* rest, std::string_view between) {
  const std::string_view skipped = between == kBlanks ? kBlanks : kCommasAndBlanks;
  const size_t begin = std::min(rest->find_first_not_of(skipped), rest->size());
  rest->remove_prefix(begin);
  if (rest->empty() || rest->front() == '#') return {};
  const size_t end = std::min(rest->find_first_of(between), rest->size());
  const std::string_view word = TrimBlanks(rest->substr(0, end));
  rest->remove_prefix(end);
  return word;
}

// Takes the label off the front of `*rest`, and sets `*between` to the separators of the entries.
std::string_view TakeLabel(std::string_view* rest, std::string_view* between) {
  std::string_view after = *rest;
  std::string_view label = NextWord(&after, kBlanks);
  const size_t comma = label.find(',');
  *between = comma == label.npos ? kBlanks : kComma;
  if (comma != label.npos) {
    label = label.substr(0, comma);
    rest->remove_prefix(static_cast<size_t>(label.data() + comma - rest->data()));
  } else {
    *rest = after;
  }
  return label;
}

// Takes the text before the first ':' off `*word`, or all of it.
std::string_view TextUpToColon(std::string_view* word) {
  const size_t end = std::min(word->find(':'), word->size());
  const std::string_view text = word->substr(0, end);
  word->remove_prefix(std::min(end + 1, word->size()));
  return text;
}

// Tells what determines the field of an entry, and so its sparse feature.
enum class FieldBy : uint8_t {
  kNothing,  // libsvm: there is one feature.
  kNumber,   // libffm: the number before the index.
  kPlace,    // libfm: the number of entries before it in the row.
};

class LibsvmParser : public RowParser {
 public:
  LibsvmParser(const DataSpec& data, uint32_t num_classes)
      : field_by_(data.format == DataFormat::kLibffm  ? FieldBy::kNumber
                  : data.format == DataFormat::kLibfm ? FieldBy::kPlace
                                                      : FieldBy::kNothing),
        label_({}, num_classes),
        features_(BaseFeaturesOf(data)) {
    for (const std::string& name : features_) salts_.push_back(HashString(name));
    expected_field_ = "a field from 0 to data.num_fields - 1 = " +
                      std::to_string(salts_.empty() ? 0 : salts_.size() - 1);
  }

  void UseOrder(const CellOrder* order) override { labelled_ = order == nullptr || order->label; }

  std::optional<RowError> Parse(std::string_view line, Row* row) override {
    row->Clear();
    entries_.clear();
    std::string_view rest = line, between;
    if (auto error = BeginRow(&rest, &between, row)) return error;
    while (true) {
      const std::string_view word = NextWord(&rest, between);
      if (word.empty()) break;
      if (field_by_ == FieldBy::kPlace && entries_.size() == salts_.size()) {
        size_t found = entries_.size() + 1;
        while (!NextWord(&rest, between).empty()) ++found;
        return WrongCount(word, found);
      }
      if (entries_.size() == kRowKeysMax) return RowError{word, {}, "fewer values in a row"};
      if (auto error = AddWord(word)) return error;
    }
    if (field_by_ == FieldBy::kPlace && entries_.size() < salts_.size()) {
      return WrongCount(rest.substr(0, 0), entries_.size());
    }
    Group(row);
    return std::nullopt;
  }

  std::vector<NamedText> Values(std::string_view line) override {
    std::string_view rest = line, between;
    std::vector<NamedText> values = {{"label", std::string(TakeLabel(&rest, &between))}};
    while (true) {
      std::string_view word = NextWord(&rest, between);
      if (word.empty()) return values;
      size_t field = field_by_ == FieldBy::kPlace ? values.size() - 1 : 0;
      if (field_by_ == FieldBy::kNumber) {
        const std::optional<double> number = ParseNumber(TextUpToColon(&word));
        field = number && *number >= 0 && *number < static_cast<double>(features_.size())
                    ? static_cast<size_t>(*number)
                    : features_.size();
      }
      values.push_back({field < features_.size() ? features_[field] : "", std::string(word)});
    }
  }

 private:
  struct Entry {
    uint32_t field;
    float weight;
    Key key;
  };

  // Takes the label. In a row to predict it is any word without a colon; entries have one.
  std::optional<RowError> BeginRow(std::string_view* rest, std::string_view* between,
                                   Row* row) const {
    std::string_view behind = *rest;
    const std::string_view word = TakeLabel(&behind, between);
    const bool entry = word.find(':') != std::string_view::npos;
    if (!labelled_) {
      if (entry || word.empty()) return std::nullopt;
      return RowError{word, {}, "an entry with a colon, as the first row of the file begins"};
    }
    *rest = behind;
    const bool none = entry || word.empty();
    const std::optional<float> label = none ? std::nullopt : label_.Parse(word);
    if (!label) return RowError{word, "label", label_.expected()};
    row->label = *label;
    return std::nullopt;
  }

  RowError WrongCount(std::string_view where, size_t found) {
    expected_count_ = "as many entries index:value in a row as data.num_fields says, " +
                      std::to_string(salts_.size()) + ", and this row has " + std::to_string(found);
    return {where, {}, expected_count_};
  }

  std::optional<RowError> AddWord(std::string_view word) {
    std::string_view rest = word;
    uint32_t field = field_by_ == FieldBy::kPlace ? static_cast<uint32_t>(entries_.size()) : 0;
    if (field_by_ == FieldBy::kNumber) {
      const std::string_view text = TextUpToColon(&rest);
      const std::optional<double> number = AllDigits(text) ? ParseNumber(text) : std::nullopt;
      if (!number || *number >= salts_.size()) return RowError{word, {}, expected_field_};
      field = static_cast<uint32_t>(*number);
    }
    const std::string_view index = TextUpToColon(&rest);
    if (!AllDigits(index)) {
      return RowError{
          word, {}, field_by_ == FieldBy::kNumber ? "field:index:value" : "index:value"};
    }
    float weight = 1;
    if (index.data() + index.size() != word.data() + word.size()) {
      const std::optional<double> value = ParseNumber(rest);
      weight = static_cast<float>(value.value_or(0));
      if (!value || !std::isfinite(weight)) return RowError{word, {}, "a number as the value"};
    }
    entries_.push_back({field, weight, FeatureKey(salts_[field], index)});
    return std::nullopt;
  }

  // Sorts the entries by field, and within a field in the order of the line.
  void Group(Row* row) {
    const auto by_field = [](const Entry& a, const Entry& b) { return a.field < b.field; };
    if (!std::is_sorted(entries_.begin(), entries_.end(), by_field)) {
      std::stable_sort(entries_.begin(), entries_.end(), by_field);
    }
    bool all_ones = true;
    for (const Entry& entry : entries_) {
      while (row->key_ends.size() < entry.field) row->EndFeature();
      row->keys.push_back(entry.key);
      row->weights.push_back(entry.weight);
      all_ones = all_ones && entry.weight == 1.0f;
    }
    while (row->key_ends.size() < salts_.size()) row->EndFeature();
    if (all_ones) row->weights.clear();
  }

  const FieldBy field_by_;
  const LabelRule label_;
  bool labelled_ = true;  // Rows begin with a label.
  const std::vector<std::string> features_;
  std::vector<uint64_t> salts_;  // [features]
  std::string expected_field_;
  std::string expected_count_;  // For the current row, if it has too few or too many entries.
  std::vector<Entry> entries_;  // Entries of the current row.
};

}  // namespace

std::unique_ptr<RowParser> NewLibsvmParser(const DataSpec& data, uint32_t num_classes) {
  return std::make_unique<LibsvmParser>(data, num_classes);
}

}  // namespace hdps
