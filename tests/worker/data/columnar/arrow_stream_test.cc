// Tests that tables are taken from Arrow streams as they are, and that broken ones are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/platform/random.h"
#include "tests/worker/data/columnar/arrow_maker.h"
#include "worker/data/columnar/column_sources.h"
#include "worker/data/columnar/columns.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns the text of each row of a column, with "-" for a missing cell of a column without lists.
std::vector<std::string> TextsOf(const ColumnTable& table, size_t column = 0) {
  const CellType& type = table.columns()[column].type;
  const ColumnTexts texts(type, ";");
  std::vector<std::string> all;
  for (uint64_t row = 0; row < table.num_rows(); ++row) {
    const ColumnTable::Place place = table.PlaceOf(row, row % 3);
    const ColumnChunk& chunk = table.chunk(place.batch, column);
    std::string& text = all.emplace_back();
    texts.Append(chunk, place.index, &text);
    CellText memory;
    std::string_view cell;
    if (!IsList(type.kind) && !CellReader(type).Text(chunk, place.index, &memory, &cell)) {
      text = "-";
    }
  }
  return all;
}
std::vector<std::string> TextsOf(MadeColumn column) {
  const std::shared_ptr<const ColumnTable> table = MadeTable({{std::move(column)}});
  return table == nullptr ? std::vector<std::string>() : TextsOf(*table);
}

std::string WhyRefused(MadeStream made) {
  const Result<std::unique_ptr<ColumnTable>> table = TableFrom(std::move(made));
  EXPECT_TRUE(table.ok() || table.status().code() == Code::kInvalidArgument);
  return table.status().message();
}
std::string WhyRefused(MadeColumn column) { return WhyRefused(MadeStream{{{std::move(column)}}}); }

template <typename T>
void ExpectWidest() {
  using Limits = std::numeric_limits<T>;
  const auto text = [](T value) { return std::to_string(value); };
  EXPECT_THAT(TextsOf(Numbers<T>("a", {Limits::lowest(), std::nullopt, Limits::max(), T{7}})),
              ElementsAre(text(Limits::lowest()), "-", text(Limits::max()), "7"))
      << FormatOf<T>();
}

TEST(ArrowStreamTest, AnIntegerHasItsDecimalText) {
  ExpectWidest<int8_t>();
  ExpectWidest<int16_t>();
  ExpectWidest<int32_t>();
  ExpectWidest<int64_t>();
  ExpectWidest<uint8_t>();
  ExpectWidest<uint16_t>();
  ExpectWidest<uint32_t>();
  ExpectWidest<uint64_t>();
}

TEST(ArrowStreamTest, AFloatHasTheTextThatPythonWrites) {
  // The right sides are repr() of Python 3.11.
  EXPECT_THAT(
      TextsOf(Numbers<double>(
          "a", {0.0, -0.0, 5.0, -1.25, 0.1, 100000.0, 1e15, 9007199254740993.0, 1e16, 1.5e300,
                0.0001, 0.00001, 123456.789, 5e-324, std::numeric_limits<double>::infinity(),
                -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
                std::nullopt})),
      ElementsAre("0.0", "-0.0", "5.0", "-1.25", "0.1", "100000.0", "1000000000000000.0",
                  "9007199254740992.0", "1e+16", "1.5e+300", "0.0001", "1e-05", "123456.789",
                  "5e-324", "inf", "-inf", "-", "-"));
  EXPECT_THAT(TextsOf(Numbers<float>("a", {0.1f, 3.0f, 16777216.0f})),
              ElementsAre("0.1", "3.0", "16777216.0"));
  MadeColumn halves{"e", "a", 5};
  halves.buffers = {std::nullopt, BytesOf<uint16_t>({0x3c00, 0xb800, 0x0001, 0x7c00, 0x7e00})};
  EXPECT_THAT(TextsOf(halves), ElementsAre("1.0", "-0.5", "5.9604645e-08", "inf", "-"));
}

TEST(ArrowStreamTest, TextsOfAllLayoutsAreTheSame) {
  const Cells cells = {
      "", "a", std::nullopt, "twelve bytes", "more than twelve bytes", std::string("\0\xff", 2)};
  for (const char* format : {"u", "z", "U", "Z", "vu", "vz"}) {
    EXPECT_THAT(TextsOf(Texts("a", cells, format)),
                ElementsAre("", "a", "-", "twelve bytes", "more than twelve bytes",
                            std::string("\0\xff", 2)))
        << format;
    EXPECT_THAT(TextsOf(Sliced(Texts("a", cells, format), 4)),
                ElementsAre("more than twelve bytes", std::string("\0\xff", 2)))
        << format;
  }
}

TEST(ArrowStreamTest, BoolsAreZeroAndOneAndNullsAreMissing) {
  EXPECT_THAT(TextsOf(Bools("a", {true, false, std::nullopt})), ElementsAre("1", "0", "-"));
  EXPECT_THAT(TextsOf(Sliced(Bools("a", std::vector<std::optional<bool>>(19, false)), 17)),
              ElementsAre("0", "0"));
  EXPECT_THAT(TextsOf(Nulls("a", 2)), ElementsAre("-", "-"));
}

TEST(ArrowStreamTest, AnIndexIsItsValueOfTheDictionary) {
  const MadeColumn values = Texts("", {"x", "y", std::nullopt}, "vu");
  EXPECT_THAT(TextsOf(Dictionary<int8_t>("a", {1, 0, std::nullopt, 2, 1}, values)),
              ElementsAre("y", "x", "-", "-", "y"));
  EXPECT_THAT(TextsOf(Sliced(Dictionary<uint32_t>("a", {1, 0, 2, 0}, Sliced(values, 0)), 1)),
              ElementsAre("x", "-", "x"));
  // The values may be a slice themselves, which indices do not see.
  EXPECT_THAT(TextsOf(Dictionary<uint64_t>("a", {0}, Sliced(Texts("", {"x", "y"}), 1))),
              ElementsAre("y"));
  EXPECT_THAT(TextsOf(Dictionary<int16_t>("a", {1, 0}, Numbers<int64_t>("", {-5, 17}))),
              ElementsAre("17", "-5"));
}

TEST(ArrowStreamTest, ListsHaveAnyNumberOfCells) {
  const MadeColumn items = Numbers<int32_t>("item", {1, 2, std::nullopt, 4, 5});
  for (const char* format : {"+l", "+L"}) {
    EXPECT_THAT(TextsOf(Lists("a", {2, 0, std::nullopt, 3}, items, format)),
                ElementsAre("1;2", "", "", ";4;5"));
    EXPECT_THAT(TextsOf(Sliced(Lists("a", {2, 0, std::nullopt, 3}, items, format), 3)),
                ElementsAre(";4;5"));
  }
  EXPECT_THAT(
      TextsOf(Lists("a", {1, 2}, Dictionary<int8_t>("item", {0, 1, 0}, Texts("", {"x", "y"})))),
      ElementsAre("x", "y;x"));
}

TEST(ArrowStreamTest, BatchesFollowEachOther) {
  const auto table = MadeTable({{Numbers<int64_t>("a", {0, 1}), Texts("b", {"p", "q"})},
                                {Numbers<int64_t>("a", {}), Texts("b", {})},
                                {Numbers<int64_t>("a", {2}), Texts("b", {"r"})},
                                {Sliced(Numbers<int64_t>("a", {9, 3, 4}), 1),
                                 Sliced(Texts("b", {"z", "s", std::nullopt}), 1)}});
  EXPECT_EQ(table->num_rows(), 5u);
  EXPECT_THAT(TextsOf(*table, 0), ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_THAT(TextsOf(*table, 1), ElementsAre("p", "q", "r", "s", "-"));
  // The rows themselves may be a slice.
  const auto sliced = TableFrom({.batches = {{Numbers<int64_t>("a", {7, 8, 9})}}, .row_offset = 2});
  EXPECT_THAT(TextsOf(**sliced), ElementsAre("9"));
  EXPECT_THAT(TextsOf(*MadeTable({{Numbers<int64_t>("a", {})}})), IsEmpty());
}

TEST(ArrowStreamTest, KeepsTheBuffersAndReleasesThemOnce) {
  const int64_t before = ExportedNow();
  auto table = MadeTable({{Texts("a", {"p"})}, {Texts("a", {})}, {Texts("a", {"q"})}});
  // Two batches with rows of a struct with a column each. The stream and the schema are gone.
  EXPECT_EQ(ExportedNow() - before, 4);
  EXPECT_THAT(TextsOf(*table), ElementsAre("p", "q"));
  table.reset();
  EXPECT_EQ(ExportedNow(), before);
}

TEST(ArrowStreamTest, NumbersAreNotCopied) {
  std::vector<int64_t> numbers = {4, 5};
  ColumnTable::Column column{"a", {CellKind::kInt64, nullptr, "int64"}};
  const auto table =
      ColumnTable::FromChunks({column}, {{.length = 2, .cells = numbers.data()}}, nullptr);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ((*table)->chunk(0, 0).cells, numbers.data());
  numbers[1] = 6;
  EXPECT_THAT(TextsOf(**table), ElementsAre("4", "6"));
  EXPECT_THAT(ColumnTable::FromChunks({column}, {}, nullptr).status().message(),
              HasSubstr("0 chunks for 1 columns"));
  EXPECT_THAT(
      ColumnTable::FromChunks(
          {column, {"b", column.type}},
          {{.length = 2, .cells = numbers.data()}, {.length = 1, .cells = numbers.data()}}, nullptr)
          .status()
          .message(),
      HasSubstr("column 'b': 1 cells, but column 'a' has 2"));
}

TEST(ArrowStreamTest, TellsWhatTheStreamSaysOfItsFailure) {
  EXPECT_THAT(WhyRefused(MadeStream{}), HasSubstr("failed: the cable is unplugged"));
  const MadeBatches batches = {{Numbers<int64_t>("a", {1})}, {Numbers<int64_t>("a", {2})}};
  EXPECT_THAT(WhyRefused({.batches = batches, .fails_at = 1}), HasSubstr("the cable is unplugged"));
  EXPECT_THAT(WhyRefused({.batches = batches, .fails_at = 1, .fails_silently = true}),
              HasSubstr("Input/output error"));
  EXPECT_THAT(WhyRefused({.batches = batches, .schema_format = "l"}),
              HasSubstr("has no columns: expected a table"));
  EXPECT_THAT(ColumnTable::FromStream(nullptr).status().message(), HasSubstr("is empty"));
  ArrowArrayStream stream;
  Export({batches}, &stream);
  EXPECT_TRUE(ColumnTable::FromStream(&stream).ok());
  EXPECT_THAT(ColumnTable::FromStream(&stream).status().message(), HasSubstr("was read before"));
  EXPECT_EQ(ExportedNow(), 0);
}

// Returns a column that `change` has broken.
MadeColumn With(MadeColumn column, const std::function<void(MadeColumn&)>& change) {
  change(column);
  return column;
}

struct BrokenCase {
  MadeColumn column;
  const char* why;
};

void ExpectRefused(const std::vector<BrokenCase>& cases) {
  for (const BrokenCase& c : cases) {
    EXPECT_THAT(WhyRefused(c.column), HasSubstr(c.why));
    EXPECT_EQ(ExportedNow(), 0) << c.why;
  }
}

TEST(ArrowStreamTest, RefusesCellsThatContradictTheInterface) {
  const MadeColumn number = Numbers<int64_t>("a", {1, std::nullopt, 3});
  const MadeColumn text = Texts("a", {"one", "two", "three"});
  const MadeColumn view = Texts("a", {"one", "more than twelve bytes"}, "vu");
  ExpectRefused({
      {With(number, [](auto& c) { c.length = -1; }), "it has -1 cells"},
      {With(number, [](auto& c) { c.offset = -1; }), "3 cells from -1 on"},
      {With(number, [](auto& c) { c.offset = std::numeric_limits<int64_t>::max(); }), "3 cells"},
      {With(number, [](auto& c) { c.length = int64_t{1} << 60; }), "cells from 0 on"},
      {With(number, [](auto& c) { c.says_buffers = 1; }), "1 buffers: expected 2"},
      {With(number, [](auto& c) { c.says_buffers = -5; }), "-5 buffers"},
      {With(number, [](auto& c) { c.no_buffers = true; }), "buffers: expected 2"},
      {With(number, [](auto& c) { c.buffers[0].reset(); }), "1 of its cells are missing, and"},
      {With(number, [](auto& c) { c.buffers[1].reset(); }), "the buffer of its cells is missing"},
      {With(number, [](auto& c) { c.released = true; }), "was released"},
      {With(text, [](auto& c) { c.buffers[2].reset(); }), "the bytes of its texts are missing"},
      {With(text,
            [](auto& c) {
              c.buffers[1] = BytesOf<int32_t>({0, 6, 3, 11});
            }),
       "its offsets go backwards at cell 1"},
      {With(text,
            [](auto& c) {
              c.buffers[1] = BytesOf<int32_t>({-1, 3, 6, 11});
            }),
       "an offset is negative"},
      {With(view, [](auto& c) { c.says_buffers = 2; }), "2 buffers: expected 3 or more"},
      {With(view, [](auto& c) { c.buffers[3] = BytesOf<int64_t>({10}); }),
       "a text lies outside of the buffers at cell 1"},
      {With(view, [](auto& c) { c.buffers[3] = BytesOf<int64_t>({-1}); }), "-1 bytes"},
      {With(view, [](auto& c) { c.buffers[2].reset(); }), "is missing"},
      {With(view, [](auto& c) { c.buffers[3].reset(); }), "the lengths of its buffers"},
      {With(view, [](auto& c) { (*c.buffers[1])[3] = '\xff'; }), "negative length at cell 0"},
      {With(view, [](auto& c) { (*c.buffers[1])[16 + 8] = 1; }), "outside of the buffers"},
      {With(view, [](auto& c) { (*c.buffers[1])[16 + 15] = '\x80'; }), "outside of the buffers"},
  });
}

TEST(ArrowStreamTest, RefusesValuesThatContradictTheInterface) {
  const MadeColumn list = Lists("a", {1, 2}, Numbers<int64_t>("item", {1, 2, 3}));
  const MadeColumn word = Dictionary<int32_t>("a", {0, 1}, Texts("", {"x", "y"}));
  ExpectRefused({
      {With(list,
            [](auto& c) {
              c.buffers[1] = BytesOf<int32_t>({0, 1, 4});
            }),
       "its lists end at 4, but there are 3 cells in them"},
      {With(list,
            [](auto& c) {
              c.buffers[1] = BytesOf<int32_t>({0, 3, 1});
            }),
       "go backwards"},
      {With(list, [](auto& c) { c.says_children = 0; }), "its values are missing"},
      {With(list, [](auto& c) { c.no_array_children = true; }), "its values are missing"},
      {With(list, [](auto& c) { c.children[0].length = -2; }), "it has -2 cells"},
      {With(list, [](auto& c) { c.children[0].buffers[1].reset(); }), "cells is missing"},
      {With(list, [](auto& c) { c.children.clear(); }), "have no type of their values"},
      {With(word, [](auto& c) { c.no_array_dictionary = true; }), "its values are missing"},
      {With(word,
            [](auto& c) {
              c.buffers[1] = BytesOf<int32_t>({0, 2});
            }),
       "its index into 2 values of the dictionary is 2 at cell 1"},
      {With(word,
            [](auto& c) {
              c.buffers[1] = BytesOf<int32_t>({-1, 0});
            }),
       "is -1 at cell 0"},
      {With(word, [](auto& c) { c.dictionary[0].released = true; }), "was released"},
  });
}

TEST(ArrowStreamTest, RefusesBatchesThatDoNotFit) {
  const MadeColumn number = Numbers<int64_t>("a", {1, std::nullopt, 3});
  EXPECT_THAT(WhyRefused(MadeStream{{{number}, {number, number}}}),
              HasSubstr("batch 1 of the Arrow stream: 2 columns: expected 1"));
  EXPECT_THAT(WhyRefused(MadeStream{{{number, Numbers<int64_t>("b", {1})}}}),
              HasSubstr("column 'b': it has 1 cells from 0 on: expected 3"));
}

// Changes a part of a column, or of one inside, in a way that can be seen.
void Break(MadeColumn* column, Random* random) {
  const auto below = [random](size_t count) { return static_cast<size_t>(random->Below(count)); };
  const int64_t odd[] = {-1, std::numeric_limits<int64_t>::min(), int64_t{1} << 50,
                         std::numeric_limits<int64_t>::max()};
  if (!column->children.empty() && below(3) == 0) return Break(&column->children[0], random);
  if (!column->dictionary.empty() && below(3) == 0) return Break(&column->dictionary[0], random);
  // Indices, views and the offsets of lists can be checked. Those of texts cannot be entirely,
  // because nothing tells how long the bytes of the texts are.
  const bool has_places =
      !column->dictionary.empty() || !column->children.empty() || column->format[0] == 'v';
  switch (below(has_places ? 12 : 8)) {
    case 0:
      column->length = odd[below(4)];
      break;
    case 1:
      column->offset = odd[below(4)];
      break;
    case 2:
      column->null_count = odd[below(4)];
      break;
    case 3:
      column->says_buffers = static_cast<int64_t>(below(3)) - 1;
      break;
    case 4:
      column->says_children = static_cast<int64_t>(below(2)) - 1;
      break;
    case 5:
      if (!column->buffers.empty()) column->buffers[below(column->buffers.size())].reset();
      break;
    case 6:
      (below(2) == 0 ? column->no_array_children : column->no_array_dictionary) = true;
      break;
    case 7:
      (below(2) == 0 ? column->no_buffers : column->released) = true;
      break;
    default: {
      if (!column->buffers[1] || column->buffers[1]->empty()) break;
      std::string& bytes = *column->buffers[1];
      bytes[below(bytes.size())] = static_cast<char>(random->Next());
    }
  }
}

TEST(ArrowStreamTest, NoBrokenStreamIsReadBeyondItsBuffers) {
  // Under AddressSanitizer a cell outside of a buffer ends the test.
  const Cells cells = {"", "a", std::nullopt, "more than twelve bytes", "two"};
  std::vector<MadeColumn> columns = {
      Numbers<int64_t>("a", {1, 2, std::nullopt, 4, 5}),
      Bools("a", {true, std::nullopt, false, true, true}),
      Texts("a", cells, "u"),
      Texts("a", cells, "U"),
      Texts("a", cells, "vu"),
      Lists("a", {1, 0, std::nullopt, 2, 1}, Texts("item", {"p", "q", "r", "s"})),
      Lists("a", {1, 0, 1, 1, 1}, Dictionary<int8_t>("", {0, 1, 0, 1}, Texts("", {"x", "y"})),
            "+L"),
      Dictionary<int16_t>("a", {0, 1, std::nullopt, 1, 0}, Texts("", {"x", "y"}, "vu")),
      Dictionary<uint64_t>("a", {0, 1, 1, 1, 0}, Numbers<int32_t>("", {7, 8})),
      Nulls("a", 5)};
  Random random(17);
  uint64_t taken = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    MadeColumn column = columns[static_cast<size_t>(random.Below(columns.size()))];
    if (random.Below(2) == 0) column = Sliced(std::move(column), 2);
    Break(&column, &random);
    const auto table = TableFrom({{{std::move(column)}}});
    ++(table.ok() ? taken : refused);
    if (table.ok()) TextsOf(**table);
  }
  EXPECT_EQ(ExportedNow(), 0);
  EXPECT_GT(taken, 1000u);
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace hdps
