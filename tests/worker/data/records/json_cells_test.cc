// Tests that the two parsers of JSON lines take the same lines and write the same cells.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "common/job/spec/data_spec.h"
#include "worker/data/records/cell_line.h"
#include "worker/data/records/record_cells.h"

namespace hdps {
namespace {

DataSpec Columns() {
  DataSpec data;
  data.format = DataFormat::kJsonl;
  for (const auto& [name, type] : {std::pair{"y", ColumnType::kLabel},
                                   {"x", ColumnType::kNumeric},
                                   {"c", ColumnType::kCategorical},
                                   {"t", ColumnType::kMulti}}) {
    ColumnSpec& column = data.columns.emplace_back();
    column.name = name;
    column.type = type;
  }
  return data;
}

// Returns the bytes of the line's cells, or what is wrong.
std::string CellsOf(RecordCells& cells, std::string_view line) {
  CellLineWriter writer;
  if (const auto error = cells.Write(line, &writer)) {
    return "expected " + std::string(error->expected);
  }
  return {writer.data(), writer.size()};
}

struct Line {
  const char* text;
  bool is_row = true;
};

const Line kLines[] = {
    {R"({"y": 1, "x": 2.5, "c": "a", "t": ["b", "c"]})"},
    {R"({"t": [], "c": null, "y": false, "x": -0})"},
    {R"({"t": "one", "c": true, "x": -0.0})"},
    {R"({"t": [1, -2, null, true, "", 18446744073709551615], "c": 9223372036854775808})"},
    {R"({"c": -9223372036854775808, "x": 1e-320, "y": 1E+2})"},
    {R"({"x": 18446744073709551616, "c": "behind a number of 65 bits"})"},
    {R"({"x": -9223372036854775809})"},
    {R"({"x": 0.1000000000000000055511151231257827, "y": 179769313486231570000e288})"},
    {R"({"c": "\u00e9\ud83d\ude00\u0000\n\"", "\u0078": 3})"},
    {R"({"unread": {"c": [1, {"c": "x"}]}, "c": "y", "unread": 1, "unread": 1e5})"},
    {R"(  { "c" : "blanks" }	 )"},
    {"\xef\xbb\xbf{\"c\": \"behind a mark of UTF-8\"}"},
    {R"({})"},
    {R"({"x": "a text, which a column may read"})"},
    {"", false},
    {"[1]", false},
    {"5", false},
    {R"({"c": 1.5})", false},
    {R"({"c": ["a", 1.5]})", false},
    {R"({"x": [1]})", false},
    {R"({"c": {"a": 1}})", false},
    {R"({"t": [["a"]]})", false},
    {R"({"t": [1.5]})", false},
    {R"({"c": 1, "c": 1})", false},
    {R"({"x": 1e999})", false},
    {R"({"x": NaN})", false},
    {R"({"x": 01})", false},
    {R"({"x": +1})", false},
    {R"({"x": .5})", false},
    {R"({"x": 1,})", false},
    {R"({"x": 1} {"x": 2})", false},
    {R"({"c": "\ud83d"})", false},
    {R"({"c": "\x41"})", false},
    {"{\"c\": \"\xff\"}", false},
    {"{\"c\": \"a\tb\"}", false},
    {R"({"c": "never ends)", false},
};

TEST(JsonCellsTest, BothParsersWriteTheSameCells) {
  const DataSpec data = Columns();
  for (const bool labels_read : {true, false}) {
    const auto cells = NewJsonCells(data, labels_read);
    const auto by_events = NewJsonEventCells(data, labels_read);
    for (const Line& line : kLines) {
      const std::string expected = CellsOf(*by_events, line.text);
      EXPECT_EQ(CellsOf(*cells, line.text), expected) << line.text;
      EXPECT_EQ(expected.starts_with("expected "), !line.is_row) << line.text << ": " << expected;
    }
  }
}

// A cell that nothing needs is missing where its value does not fit.
TEST(JsonCellsTest, BothLeaveOutALabelThatNobodyReads) {
  const DataSpec data = Columns();
  const auto cells = NewJsonCells(data, /*labels_read=*/false);
  const auto by_events = NewJsonEventCells(data, /*labels_read=*/false);
  const std::string without = CellsOf(*by_events, R"({"c": "a"})");
  for (const char* label : {R"({"a": 1})", R"([1, [2]])", R"([1.5])", R"([])"}) {
    const std::string line = R"({"c": "a", "y": )" + std::string(label) + "}";
    EXPECT_EQ(CellsOf(*by_events, line), without) << line;
    EXPECT_EQ(CellsOf(*cells, line), without) << line;
  }
}

// simdjson reads a few bytes behind a text: in whatever block of memory it ends.
TEST(JsonCellsTest, LinesOfEveryLengthAreRead) {
  const auto cells = NewJsonCells(Columns(), /*labels_read=*/true);
  for (size_t length = 0; length < 300; ++length) {
    const std::string value(length, 'v'), line = R"({"c": ")" + value + "\"}";
    const std::string written = CellsOf(*cells, line);
    ASSERT_NE(written.find(value), std::string::npos) << length;
  }
}

}  // namespace
}  // namespace hdps
