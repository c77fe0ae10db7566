// Counts, names and lists, cut if they are long.
#include "worker/data/data_description.h"

#include <algorithm>
#include <map>

#include "common/base/enum_words.h"
#include "common/base/show_number.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "common/job/vocabulary.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

constexpr size_t kNamesShownMax = 3;

std::string DescribeLabel(const DataSpec& data) {
  const ColumnSpec* label = LabelColumn(data);
  if (label == nullptr) return "a label";
  std::string text = "label '" + label->name + "'";
  if (label->positive.empty()) return text;
  text += " (1 where it is ";
  for (size_t i = 0; i < label->positive.size() && i < kNamesShownMax; ++i) {
    text += (i == 0 ? "'" : " or '") + label->positive[i] + "'";
  }
  if (label->positive.size() > kNamesShownMax) text += " or another of data.columns";
  return text + ", else 0)";
}

// Returns the names of columns that share keys with another.
std::vector<std::string> SharedVocabularies(const DataSpec& data) {
  std::map<std::string, std::vector<std::string>> columns;
  std::vector<std::string> texts;
  for (const ColumnSpec& column : data.columns) {
    if (column.type != ColumnType::kCategorical && column.type != ColumnType::kMulti) continue;
    columns[column.key_space()].push_back("'" + column.name + "'");
  }
  for (const auto& [vocabulary, names] : columns) {
    if (names.size() < 2) continue;
    std::string text = names[0];
    for (size_t i = 1; i < names.size() && i < kNamesShownMax; ++i) {
      text += (i + 1 == names.size() ? " and " : ", ") + names[i];
    }
    if (names.size() > kNamesShownMax) {
      text += " and " + Whole(names.size() - kNamesShownMax) + " more";
    }
    texts.push_back(text + " have the same keys");
  }
  return texts;
}

}  // namespace

std::string Whole(size_t number) { return ShowWhole(static_cast<double>(number)); }

std::string Counted(size_t number, const std::string& what) {
  return Whole(number) + " " + what + (number == 1 ? "" : "s");
}

const ColumnSpec* LabelColumn(const DataSpec& data) {
  if (!HasNamedColumns(data.format)) return nullptr;
  const auto label = std::ranges::find(data.columns, ColumnType::kLabel, &ColumnSpec::type);
  return label == data.columns.end() ? nullptr : &*label;
}

std::string DescribeColumns(const DataSpec& data) {
  const FeatureNames names = FeaturesOf(data);
  std::string text = DescribeLabel(data) + ", " + Counted(names.numeric.size(), "numeric column") +
                     ", " + Counted(names.sparse.size(), "sparse feature");
  if (!data.features.empty()) {
    text += " (" + Whole(data.features.size()) + " of them derived)";
  }
  if (const Vocabulary* const values = data.vocabulary.values.get(); values != nullptr) {
    text += "; " + Counted(values->size(), "value") + " of " + data.vocabulary.file +
            " with keys of their own, the others of a feature share one";
  }
  if (!HasNamedColumns(data.format)) return text;
  for (const std::string& shared : SharedVocabularies(data)) text += "; " + shared;
  return text;
}

std::string DescribeFormat(const DataSpec& data, size_t num_files) {
  return Counted(num_files, "file") + " of format " + std::string(WordOf(data.format)) + ": " +
         DescribeColumns(data);
}

std::string DescribeTable(const DataSpec& data, size_t num_rows) {
  return "a table of " + Counted(num_rows, "row") + ": " + DescribeColumns(data);
}

std::vector<std::string> ColumnNames(const DataSpec& data) {
  std::vector<std::string> names;
  if (HasNamedColumns(data.format)) {
    for (const ColumnSpec& column : data.columns) {
      if (column.has_cell()) names.push_back(column.name);
    }
  } else if (data.format == DataFormat::kCriteo) {
    names.push_back("label");
    for (int i = 1; i <= 13; ++i) names.push_back("I" + std::to_string(i));
    for (int c = 1; c <= 26; ++c) names.push_back("C" + std::to_string(c));
  }
  return names;
}

std::string DescribeCounts(const std::map<std::string, uint64_t>& counts) {
  std::string text;
  size_t shown = 0;
  for (const auto& [value, count] : counts) {
    if (++shown > kNamesShownMax) return text + ", ...";
    text += (shown == 1 ? "'" : ", '") + Printable(value) + "' (" + Whole(count) + ")";
  }
  return text;
}

std::string DescribeKeys(const Batch& batch, const std::vector<std::string>& names) {
  if (batch.sparse.empty()) return "no sparse features, so no keys";
  size_t with_one = 0, others = 0;
  std::string text;
  for (size_t f = 0; f < batch.sparse.size(); ++f) {
    const std::vector<uint32_t>& offsets = batch.sparse[f].offsets;
    uint32_t least = UINT32_MAX, most = 0;
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      least = std::min(least, offsets[i + 1] - offsets[i]);
      most = std::max(most, offsets[i + 1] - offsets[i]);
    }
    if (least == 1 && most == 1) {
      ++with_one;
    } else if (++others <= kNamesShownMax) {
      const double mean = static_cast<double>(batch.sparse[f].keys.size()) /
                          static_cast<double>(batch.num_examples);
      text += (others == 1 ? "" : ", ") + ("'" + names[f] + "' ") + ShowNumber("%.1f", mean) +
              " keys a row (" + std::to_string(least) + " to " + std::to_string(most) + ")";
    }
  }
  if (others > kNamesShownMax) text += ", " + Whole(others - kNamesShownMax) + " more alike";
  if (with_one == 0) return text;
  return "1 key a row in " + Counted(with_one, "sparse feature") + (others == 0 ? "" : ", ") + text;
}

}  // namespace hdps
