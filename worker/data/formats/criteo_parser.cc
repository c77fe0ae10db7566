// Parses lines of the Criteo display advertising logs.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "worker/data/formats/cell_scan.h"
#include "worker/data/formats/label.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/number.h"

namespace hdps {
namespace {

constexpr size_t kNumbers = 13;
constexpr size_t kCategories = 26;
constexpr size_t kCells = 1 + kNumbers + kCategories;
constexpr std::string_view kExpectedCells =
    "40 cells between tabs: a label, 13 integers, 26 categories";

class CriteoParser : public RowParser {
 public:
  explicit CriteoParser(uint32_t num_classes) : label_({}, num_classes) {
    for (size_t i = 0; i < kNumbers; ++i) number_names_[i] = "I" + std::to_string(i + 1);
    for (size_t i = 0; i < kCategories; ++i) {
      category_names_[i] = "C" + std::to_string(i + 1);
      salts_[i] = HashString(category_names_[i]);
    }
  }

  void UseOrder(const CellOrder* order) override { labelled_ = order == nullptr || order->label; }

  std::optional<RowError> Parse(std::string_view line, Row* row) override {
    std::array<uint32_t, kCells> ends;
    if (!labelled_) {
      line_ = "0\t";
      line = line_ += line;
    }
    const size_t tabs = ScanCells(line, '\t', std::span(ends).first(kCells - 1));
    if (tabs < kCells - 1) return RowError{line.substr(line.size()), {}, kExpectedCells};
    ends[kCells - 1] = static_cast<uint32_t>(line.size());
    if (tabs > kCells - 1) {
      const size_t surplus = line.find('\t', ends[kCells - 2] + 1);
      return RowError{line.substr(surplus + 1), {}, kExpectedCells};
    }

    const std::string_view label = line.substr(0, ends[0]);
    if (label.size() == 1 && (label[0] == '0' || label[0] == '1')) {
      row->label = static_cast<float>(label[0] - '0');
    } else {
      const std::optional<float> parsed = label_.Parse(label);
      if (!parsed) return RowError{label, "label", label_.expected()};
      row->label = *parsed;
    }
    row->weights.clear();
    row->numbers.resize(kNumbers);
    for (size_t i = 0; i < kNumbers; ++i) {
      const uint32_t begin = ends[i] + 1;
      const std::string_view cell = line.substr(begin, ends[i + 1] - begin);
      if (cell.empty()) {
        row->numbers[i] = kMissingNumber;
        continue;
      }
      if (ParseDigits(cell, &row->numbers[i])) continue;
      const std::optional<double> number = ParseNumber(cell);
      if (!number) return RowError{cell, number_names_[i], "a number"};
      row->numbers[i] = *number;
    }
    row->keys.resize(kCategories);
    row->key_ends.resize(kCategories);
    for (size_t i = 0; i < kCategories; ++i) {
      const uint32_t begin = ends[kNumbers + i] + 1;
      row->keys[i] = FeatureKey(salts_[i], line.substr(begin, ends[kNumbers + i + 1] - begin));
      row->key_ends[i] = static_cast<uint32_t>(i + 1);
    }
    return std::nullopt;
  }

  std::vector<NamedText> Values(std::string_view line) override {
    std::vector<NamedText> values;
    for (size_t begin = 0; begin <= line.size();) {
      const size_t end = std::min(line.find('\t', begin), line.size());
      values.push_back({NameOf(values.size()), std::string(line.substr(begin, end - begin))});
      begin = end + 1;
    }
    return values;
  }

 private:
  std::string NameOf(size_t cell) const {
    if (cell == 0) return "label";
    if (cell <= kNumbers) return number_names_[cell - 1];
    return cell < kCells ? category_names_[cell - 1 - kNumbers] : "";
  }

  const LabelRule label_;
  bool labelled_ = true;  // Rows begin with a label.
  std::string line_;      // The current row, with a label put in front of it.
  std::array<std::string, kNumbers> number_names_;
  std::array<uint64_t, kCategories> salts_;
  std::array<std::string, kCategories> category_names_;
};

}  // namespace

std::unique_ptr<RowParser> NewCriteoParser(const DataSpec& /*data*/, uint32_t num_classes) {
  return std::make_unique<CriteoParser>(num_classes);
}

}  // namespace hdps
