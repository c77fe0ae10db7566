// Tests the lines of records: every value has one form, and any bytes give a row or an error.
#include "worker/data/records/cell_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/worker/data/columnar/arrow_maker.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/records/batch_lines.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;

// Returns the line of one row with these columns.
std::string LineOf(const std::vector<MadeColumn>& columns) {
  const auto table = MadeTable({columns});
  std::vector<uint32_t> indices;
  for (uint32_t c = 0; c < columns.size(); ++c) indices.push_back(c);
  CellLineWriter lines;
  EXPECT_TRUE(BatchLines(table->columns(), indices).Add(*table, 0, 1, &lines).ok());
  uint32_t bytes = 0;
  std::memcpy(&bytes, lines.data(), sizeof(bytes));
  EXPECT_EQ(sizeof(bytes) + bytes, lines.size());
  return {lines.data() + sizeof(bytes), bytes};
}

std::vector<std::string> TextsOf(std::string_view line) {
  std::vector<std::string> texts;
  while (!line.empty()) {
    const std::optional<CellValue> cell = TakeCell(&line);
    if (!cell) return {"damaged"};
    std::string& text = texts.emplace_back();
    ForEachValue(*cell, [&](std::string_view value) { text += "<" + std::string(value) + ">"; });
  }
  return texts;
}

// A decimal of the bits in `words`, the lowest first.
MadeColumn Decimals(const std::string& format, const std::vector<uint64_t>& words) {
  return {.format = format, .name = "d", .length = 1, .buffers = {std::nullopt, BytesOf(words)}};
}

TEST(CellLineTest, AValueHasOneFormWhateverTypeHeldIt) {
  const std::string five = LineOf({Numbers<int64_t>("n", {5})});
  EXPECT_EQ(LineOf({Numbers<int8_t>("n", {5})}), five);
  EXPECT_EQ(LineOf({Numbers<uint64_t>("n", {5})}), five);
  EXPECT_EQ(LineOf({Dictionary<int16_t>("n", {1}, Numbers<int32_t>("", {4, 5}))}), five);
  const std::string text = LineOf({Texts("t", {"red"})});
  for (const char* const format : {"z", "U", "Z", "vu", "vz"}) {
    EXPECT_EQ(LineOf({Texts("t", {"red"}, format)}), text) << format;
  }
  EXPECT_EQ(LineOf({Dictionary<uint8_t>("t", {2}, Texts("", {"a", "b", "red"}))}), text);
  const std::string missing = LineOf({Texts("t", {std::nullopt})});
  EXPECT_EQ(LineOf({Nulls("n", 1)}), missing);
  EXPECT_EQ(LineOf({Numbers<double>("n", {std::numeric_limits<double>::quiet_NaN()})}), missing);
  EXPECT_EQ(LineOf({Dictionary<int8_t>("t", {0}, Texts("", {std::nullopt}))}), missing);
}

TEST(CellLineTest, ValuesKeepTheirTexts) {
  EXPECT_THAT(TextsOf(LineOf({Numbers<int64_t>("a", {std::numeric_limits<int64_t>::min()}),
                              Numbers<uint64_t>("b", {std::numeric_limits<uint64_t>::max()}),
                              Numbers<float>("c", {0.1f}), Numbers<double>("d", {1e300}),
                              Bools("e", {true}), Texts("f", {"a long text, with \"quotes\"\n"}),
                              Lists("g", {3}, Texts("", {"x", std::nullopt, "z"})),
                              Lists("h", {std::nullopt}, Numbers<int32_t>("", {}))})),
              ElementsAre("<-9223372036854775808>", "<18446744073709551615>", "<0.1>", "<1e+300>",
                          "<1>", "<a long text, with \"quotes\"\n>", "<x><z>", ""));
}

TEST(CellLineTest, SixteenBitsKeepTheirTextsToo) {
  MadeColumn halves{"e", "a", 1};
  const auto text = [&](uint16_t bits) {
    halves.buffers = {std::nullopt, BytesOf<uint16_t>({bits})};
    return TextsOf(LineOf({halves}))[0];
  };
  EXPECT_EQ(text(0xb800), "<-0.5>");
  EXPECT_EQ(text(0x8000), "<-0.0>");
  EXPECT_EQ(text(0x7e00), "");  // NaN is missing.
}

TEST(CellLineTest, DecimalsHaveAllDigitsOfTheirScale) {
  const uint64_t minus = std::numeric_limits<uint64_t>::max();
  const auto text = [](const std::string& format, const std::vector<uint64_t>& words) {
    return TextsOf(LineOf({Decimals(format, words)}))[0];
  };
  EXPECT_EQ(text("d:9,2", {1250, 0}), "<12.50>");
  EXPECT_EQ(text("d:9,2", {minus - 4, minus}), "<-0.05>");
  EXPECT_EQ(text("d:9,0", {0, 0}), "<0>");
  EXPECT_EQ(text("d:9,2,128", {0, 0}), "<0.00>");
  // -2^127, and 2^255 - 1.
  EXPECT_EQ(text("d:38,38", {0, uint64_t{1} << 63}), "<-1.70141183460469231731687303715884105728>");
  EXPECT_EQ(text("d:76,0,256", {minus, minus, minus, minus >> 1}),
            "<57896044618658097711785492504343953926634992332820282019728792003956564819967>");
}

TEST(CellLineTest, TheHashIsThatOfTheValues) {
  const auto hash = [](const std::vector<MadeColumn>& columns) {
    return HashOfCells(LineOf(columns), {0}, 7);
  };
  const MadeColumn label = Numbers<int32_t>("y", {1}), x = Texts("x", {"5"});
  const uint64_t wanted = hash({label, x});
  EXPECT_EQ(hash({Bools("y", {false}), x}), wanted);
  EXPECT_EQ(hash({label, Numbers<uint16_t>("x", {5})}), wanted);
  EXPECT_EQ(hash({label, Lists("x", {1}, x)}), wanted);
  EXPECT_NE(hash({label, Lists("x", {2}, Texts("", {"5", "5"}))}), wanted);
  EXPECT_NE(hash({label, Texts("x", {"6"})}), wanted);
  EXPECT_NE(hash({label, Texts("x", {"1"}), Texts("z", {"2"})}),
            hash({label, Texts("x", {"12"}), Texts("z", {std::nullopt})}));
  EXPECT_NE(hash({label, Lists("x", {2}, Texts("", {"1", "2"})), Nulls("z", 1)}),
            hash({label, Texts("x", {"1"}), Texts("z", {"2"})}));
}

DataSpec SpecOfTwo() {
  DataSpec data;
  data.format = DataFormat::kParquet;
  data.columns.resize(3);
  data.columns[0].name = "y";
  data.columns[0].type = ColumnType::kLabel;
  data.columns[1].name = "n";
  data.columns[1].type = ColumnType::kNumeric;
  data.columns[2].name = "m";
  data.columns[2].type = ColumnType::kMulti;
  return data;
}

TEST(CellLineTest, AnyBytesAreARowOrAnError) {
  const DataSpec data = SpecOfTwo();
  const std::unique_ptr<RowParser> parser = NewCellLineParser(data, {LabelSpec()});
  const std::string good = LineOf({Numbers<int8_t>("y", {1}), Numbers<double>("n", {2.5}),
                                   Lists("m", {2}, Texts("", {"a", "b"}))});
  Row row;
  ASSERT_FALSE(parser->Parse(good, &row));
  EXPECT_EQ(row.keys.size(), 2u);
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_TRUE(parser->Parse(std::string_view(good).substr(0, bytes), &row)) << bytes;
  }
  EXPECT_TRUE(parser->Parse(good + '\0', &row));
  Random random(3);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string line = good;
    for (int change = 0; change < 3; ++change) {
      line[random.Below(line.size())] = static_cast<char>(random.Below(256));
    }
    static_cast<void>(parser->Parse(line, &row));
    static_cast<void>(parser->Values(line));
    static_cast<void>(HashOfCells(line, {0}, 1));
  }
}

TEST(CellLineTest, AListWhereOneValueIsWantedIsABadRow) {
  const std::unique_ptr<RowParser> parser = NewCellLineParser(SpecOfTwo(), {LabelSpec()});
  Row row;
  const auto error = parser->Parse(
      LineOf({Numbers<int8_t>("y", {1}), Lists("n", {1}, Numbers<int8_t>("", {2})), Nulls("m", 1)}),
      &row);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->column, "n");
  EXPECT_EQ(error->expected, "one value, not a list,");
}

}  // namespace
}  // namespace hdps
