// Tests that every example in docs/data.md is read as the page says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/base/enum_words.h"
#include "common/base/hash.h"
#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t at = text.find(separator); at != text.npos; at = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// Replaces "
// ", "\r", "\t" and "\xef" by their bytes.
std::string Unescaped(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
      continue;
    }
    const char next = text.at(++i);
    if (next == 'x') {
      bytes += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      bytes += next == 'n' ? '\n' : next == 'r' ? '\r' : '\t';
    }
  }
  return bytes;
}

struct Example {
  std::string section, rule, lines, read_as;
};

// Returns the rows of the tables whose first column is "rule".
std::vector<Example> ExamplesOfThePage() {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const auto page = ReadWholeFile(*files, JoinPath(HDPS_SOURCE_DIR, "docs/data.md"), 1 << 20);
  EXPECT_TRUE(page.ok()) << page.status().message();
  std::vector<Example> examples;
  std::string section;
  bool in_table = false;
  for (const std::string& line : Split(page.ok() ? *page : "", "\n")) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (!line.starts_with("|") || line.starts_with("| rule |")) {
      in_table = line.starts_with("| rule |");
      continue;
    }
    if (!in_table || line.starts_with("|---")) continue;
    const std::vector<std::string> cells = Split(line, " | ");
    EXPECT_EQ(cells.size(), 3u) << line;
    if (cells.size() != 3) continue;
    const std::vector<std::string> lines = Split(cells[1], "`"), read_as = Split(cells[2], "`");
    EXPECT_TRUE(lines.size() == 3 && read_as.size() == 3) << line;
    if (lines.size() != 3 || read_as.size() != 3) continue;
    examples.push_back({section, cells[0].substr(2), lines[1], read_as[1]});
  }
  return examples;
}

// Returns the job of a section of the page.
DataSpec SpecOf(const std::string& section) {
  DataSpec data;
  if (section == "libsvm" || section == "libffm" || section == "libfm") {
    data.format = section == "libsvm"   ? DataFormat::kLibsvm
                  : section == "libffm" ? DataFormat::kLibffm
                                        : DataFormat::kLibfm;
    data.num_fields = section == "libffm" ? 3 : 2;
    return data;
  }
  data.comment = "#";
  data.missing = "?";
  data.columns.resize(4);
  data.columns[0].name = "y";
  data.columns[0].type = ColumnType::kLabel;
  data.columns[1].name = "n";
  data.columns[1].type = ColumnType::kNumeric;
  data.columns[2].name = "c";
  data.columns[3].name = "m";
  data.columns[3].type = ColumnType::kMulti;
  data.columns[3].separator = "/";
  if (section == "Weights, groups and tasks") {
    for (const ColumnType type : {ColumnType::kWeight, ColumnType::kGroup, ColumnType::kLabel}) {
      data.columns.emplace_back().type = type;
      data.columns.back().name = type == ColumnType::kLabel ? "z" : std::string(WordOf(type));
    }
  }
  return data;
}

// Expects `row`, such as "y=1; n=2; c=red; m=a+b" or "y=1; field0=7*0.5".
void ExpectRow(const DataSpec& data, const Batch& batch, uint32_t example, const std::string& row) {
  const std::vector<std::string> names = FeaturesOf(data).sparse;
  size_t features = 0;
  for (const std::string& part : Split(row, "; ")) {
    const size_t equals = part.find('=');
    ASSERT_NE(equals, part.npos) << row;
    const std::string name = part.substr(0, equals), value = part.substr(equals + 1);
    if (name == "group") {
      EXPECT_EQ(batch.groups[example], FeatureKey(HashString(name), value));
      continue;
    }
    const std::map<std::string, std::vector<float>> numbers = {
        {"y", batch.labels}, {"n", batch.numeric}, {"weight", batch.weights}};
    if (numbers.contains(name) || name == "z") {
      const float number = name == "z"   ? batch.labels[2 * example + 1]
                           : name == "y" ? batch.labels[batch.num_labels * example]
                                         : numbers.at(name)[example];
      EXPECT_EQ(number, std::stof(value)) << name;
      continue;
    }
    const auto feature = static_cast<size_t>(std::ranges::find(names, name) - names.begin());
    ASSERT_LT(feature, names.size()) << name;
    const SparseColumn& column = batch.sparse[feature];
    uint32_t at = column.offsets[example];
    const bool empty_value = value.empty() && name == "c";  // An empty category is a value.
    for (const std::string& text :
         value.empty() && !empty_value ? std::vector<std::string>() : Split(value, "+")) {
      const size_t star = data.format == DataFormat::kCsv ? text.npos : text.find('*');
      ASSERT_LT(at, column.offsets[example + 1]);
      EXPECT_EQ(column.keys[at], FeatureKey(HashString(name), text.substr(0, star)));
      const float weight = column.weights.empty() ? 1.0f : column.weights[at];
      EXPECT_EQ(weight, star == text.npos ? 1.0f : std::stof(text.substr(star + 1)));
      ++at;
    }
    EXPECT_EQ(at, column.offsets[example + 1]) << "more keys than the page says";
    ++features;
  }
  EXPECT_EQ(features, names.size()) << "the page leaves out a feature";
}

TEST(DataRulesTest, ThePageSaysWhatIsRead) {
  std::map<std::string, int> sections;
  for (const Example& example : ExamplesOfThePage()) {
    SCOPED_TRACE(example.section + ": " + example.rule);
    ++sections[example.section];
    const auto files = NewMemoryFileSystem();
    WriteText(*files, "f", Unescaped(example.lines));
    const DataSpec data = SpecOf(example.section);
    ReaderOptions options{.shuffle = false};
    if (data.columns.size() > 4) options.labels = {{"y", 2}, {"z", kLabelsAnyNumber}};
    const auto reader = NewBatchReader(*files, data, {"f"}, options);
    ASSERT_TRUE(reader.ok() && (*reader)->StartEpoch(0, 0).ok());
    const auto batch = (*reader)->Next();
    if (!example.read_as.starts_with("y=")) {
      EXPECT_EQ(batch.status().code(), Code::kInvalidArgument);
      EXPECT_THAT(batch.status().message(), HasSubstr(example.read_as));
      continue;
    }
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    if (!batch.ok() || !batch->has_value()) continue;
    const std::vector<std::string> rows = Split(example.read_as, " and ");
    EXPECT_EQ((*batch)->num_examples, rows.size());
    for (uint32_t i = 0; i < std::min<size_t>(rows.size(), (*batch)->num_examples); ++i) {
      ExpectRow(data, **batch, i, rows[i]);
    }
  }
  // A table that is not found would not be tested.
  for (const char* section :
       {"Lines", "csv", "libsvm", "libffm", "libfm", "Labels", "Weights, groups and tasks"}) {
    EXPECT_GE(sections[section], 4) << section;
  }
}

}  // namespace
}  // namespace hdps
