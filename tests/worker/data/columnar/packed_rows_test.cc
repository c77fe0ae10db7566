// Tests that a packed row is read as the row itself, in any order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/worker/data/columnar/arrow_maker.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

constexpr const char* kPath = "memory:train";
constexpr int kRows = 150;  // More than two blocks, in two batches.

// One column of each form: label, weight, group and id are cells; a list, a dictionary of ids and
// texts with a rule lie in place; all cells of a dictionary of one value are alike unless missing.
DataSpec Spec() {
  DataSpec data;
  data.train = {kPath};
  data.missing = "-1";
  const auto add = [&](const std::string& name, ColumnType type, uint64_t vocab_size = 0) {
    ColumnSpec& column = data.columns.emplace_back();
    column.name = name;
    column.type = type;
    column.vocab_size = vocab_size;
  };
  add("y", ColumnType::kLabel);
  add("w", ColumnType::kWeight);
  add("g", ColumnType::kGroup);
  for (const char* const name : {"x8", "x32", "x64", "half", "flag", "coded", "one"}) {
    add(name, ColumnType::kNumeric);
  }
  for (const char* const name :
       {"text", "large", "view", "word", "number", "truth", "nothing", "one_word", "one_or_none"}) {
    add(name, ColumnType::kCategorical);
  }
  add("id", ColumnType::kCategorical, 30);
  add("coded_id", ColumnType::kCategorical, 30);
  add("text_id", ColumnType::kCategorical, 30);
  add("tags", ColumnType::kMulti);
  return data;
}

std::vector<MadeColumn> ColumnsOf(int rows, uint64_t seed) {
  Random random(seed);
  const auto draw = [&random](uint64_t below) { return static_cast<int>(random.Below(below)); };
  // Returns cells of a type, of which some are missing.
  const auto cells = [&]<typename T>(T, int below, bool whole = true) {
    std::vector<std::optional<T>> made;
    for (int i = 0; i < rows; ++i) {
      const int value = draw(static_cast<uint64_t>(below)) - 1;
      made.push_back(value == 3 ? std::nullopt : std::optional(static_cast<T>(value)));
      if (!whole && made.back()) *made.back() = static_cast<T>(*made.back() / 8);
    }
    return made;
  };
  const auto texts = [&] {
    Cells made;
    for (int i = 0; i < rows; ++i) {
      const int kind = draw(5);
      made.push_back(kind == 0 ? std::nullopt : std::optional<std::string>(" far beyond twelve "));
      if (kind == 1) made.back() = "-1";
      if (kind > 2) made.back() = std::to_string(draw(50));
    }
    return made;
  };
  std::vector<std::optional<int32_t>> labels;
  std::vector<std::optional<float>> weights;
  std::vector<std::optional<bool>> flags;
  std::vector<std::optional<int>> lengths;
  std::vector<std::optional<uint8_t>> indices, zero_or_none;
  const std::vector<std::optional<uint8_t>> zeros(static_cast<size_t>(rows), uint8_t{0});
  Cells ids, items;
  for (int i = 0; i < rows; ++i) {
    labels.push_back(draw(2));
    weights.push_back(static_cast<float>(1 + draw(3)));
    flags.push_back(draw(3) == 0 ? std::nullopt : std::optional(draw(2) == 0));
    indices.push_back(static_cast<uint8_t>(draw(4)));
    zero_or_none.push_back(i % 3 == 0 ? std::nullopt : std::optional<uint8_t>(0));
    ids.push_back(std::to_string(draw(35)));
    lengths.push_back(draw(4));
    for (int tag = 0; tag < *lengths.back(); ++tag) items.push_back("t" + std::to_string(draw(9)));
  }
  return {Numbers<int32_t>("y", labels),
          Numbers<float>("w", weights),
          Numbers<int64_t>("g", cells(int64_t{}, 9)),
          Numbers<int8_t>("x8", cells(int8_t{}, 90)),
          Numbers<int32_t>("x32", cells(int32_t{}, 900)),
          Numbers<uint64_t>("x64", cells(uint64_t{}, 900)),
          Numbers<double>("half", cells(double{}, 90, /*whole=*/false)),
          Bools("flag", flags),
          Dictionary<uint8_t>("coded", indices, Numbers<double>("", {0.5, -1, 2, std::nullopt})),
          Dictionary<uint8_t>("one", zeros, Numbers<double>("", {0.25})),
          Texts("text", texts()),
          Texts("large", texts(), "U"),
          Texts("view", texts(), "vu"),
          Dictionary<uint8_t>("word", indices, Texts("", {"a", " b", std::nullopt, "-1"})),
          Numbers<int16_t>("number", cells(int16_t{}, 60)),
          Bools("truth", flags),
          Nulls("nothing", rows),
          Dictionary<uint8_t>("one_word", zeros, Texts("", {" b"})),
          Dictionary<uint8_t>("one_or_none", zero_or_none, Texts("", {"c"})),
          Numbers<int32_t>("id", cells(int32_t{}, 35)),
          Dictionary<uint8_t>("coded_id", indices, Numbers<int64_t>("", {1, 29, 30, std::nullopt})),
          Texts("text_id", ids),
          Lists("tags", lengths, Texts("item", items))};
}

std::unique_ptr<RowParser> Parser(const DataSpec& data) {
  auto parser = NewParserOf(data, data.train, {{}});
  EXPECT_TRUE(parser.ok()) << parser.status().message();
  return *std::move(parser);
}

// Returns all that a parser says of a line as text; numbers by their bits.
std::string Told(RowParser& parser, std::string_view line) {
  Row row;
  if (const std::optional<RowError> error = parser.Parse(line, &row)) {
    return "error: '" + std::string(error->value) + "' in " + std::string(error->column) +
           ", expected " + std::string(error->expected);
  }
  std::string told = std::to_string(row.label) + " " + std::to_string(row.weight) + " " +
                     std::to_string(row.group) + " " + std::to_string(row.unknown_ids);
  for (const double number : row.numbers) told += " " + std::to_string(std::bit_cast<Key>(number));
  for (const Key key : row.keys) told += " " + std::to_string(key);
  for (const uint32_t end : row.key_ends) told += " " + std::to_string(end);
  return told;
}

TEST(PackedRowsTest, APackedRowIsTheRow) {
  DataSpec data = Spec();
  std::vector<MadeColumn> first = ColumnsOf(kRows / 3, 1), second = ColumnsOf(kRows, 2);
  for (MadeColumn& column : second) column = Sliced(std::move(column), kRows / 3);
  data.tables[kPath] = MadeTable({std::move(first), std::move(second)});
  ASSERT_EQ(data.tables[kPath]->num_rows(), uint64_t{kRows});
  const std::unique_ptr<RowParser> in_place = Parser(data), packed = Parser(data);
  std::vector<std::string> held(kRows), expected(kRows);
  // Backwards, so that no row is taken for the next one.
  for (uint64_t row = kRows; row-- > 0;) expected[row] = Told(*in_place, LineOfRow(row));
  EXPECT_NE(expected[0], expected[1]);
  for (uint64_t row = 0; row < kRows; ++row) {
    held[row] = packed->Hold(LineOfRow(row));
    EXPECT_GT(held[row].size(), kRowNumberBytes);
    EXPECT_EQ(Told(*in_place, LineOfRow(row)), expected[row]) << "the next one, row " << row;
  }
  Random random(3);
  for (int i = 0; i < 3 * kRows; ++i) {
    const uint64_t row = random.Below(kRows);
    EXPECT_EQ(Told(*packed, held[row]), expected[row]) << row;
    // Another order of packing gives the same bytes.
    EXPECT_EQ(in_place->Hold(LineOfRow(row)), held[row]) << row;
  }
}

TEST(PackedRowsTest, WhatIsWrongWithACellIsTheSame) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  DataSpec data;
  data.train = {kPath};
  for (const char* const name : {"x", "y"}) {
    data.columns.emplace_back().name = name;
    data.columns.back().type = name == std::string("x") ? ColumnType::kNumeric : ColumnType::kLabel;
  }
  data.tables[kPath] =
      MadeTable({{Numbers<double>("x", {1, -kInfinite, 2}), Numbers<int16_t>("y", {0, 1, 77})}});
  const std::unique_ptr<RowParser> in_place = Parser(data), packed = Parser(data);
  for (const uint64_t row : {2, 1, 0}) {
    EXPECT_EQ(Told(*packed, packed->Hold(LineOfRow(row))), Told(*in_place, LineOfRow(row))) << row;
  }
  EXPECT_EQ(Told(*packed, packed->Hold(LineOfRow(1))), "error: '-inf' in x, expected a number");
}

TEST(PackedRowsTest, AnyBytesAreARowOrNone) {
  DataSpec data = Spec();
  data.tables[kPath] = MadeTable({ColumnsOf(3, 1)});
  const std::unique_ptr<RowParser> parser = Parser(data);
  const std::string whole(parser->Hold(LineOfRow(1)));
  for (size_t size = 0; size <= whole.size() + 9; ++size) {
    std::string line = whole + "123456789";
    line.resize(size);
    const bool is_row = size == kRowNumberBytes || size == whole.size();
    EXPECT_EQ(Told(*parser, line).starts_with("error: '' in , expected a row of the table"),
              !is_row)
        << size;
  }
  const uint64_t beyond = 3;
  EXPECT_EQ(parser->Hold(LineOfRow(beyond)), LineOfRow(beyond));
}

}  // namespace
}  // namespace hdps
