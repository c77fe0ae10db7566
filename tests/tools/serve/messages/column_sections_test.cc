// Tests that cells read the same on both sides of a message, and that what lies is refused.
#include "tools/serve/messages/column_sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/protocol/message_frames.h"
#include "tests/common/protocol/message_samples.h"
#include "tests/worker/data/columnar/arrow_maker.h"
#include "tools/serve/requests/score_request.h"
#include "worker/data/columnar/cell_reader.h"

namespace hdps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_samples::EndsOf;
using testing_samples::SamplePredict;

std::shared_ptr<const ColumnTable> TableOfBatches(MadeBatches batches) {
  ArrowArrayStream stream;
  Export({std::move(batches)}, &stream);
  auto table = ColumnTable::FromStream(&stream);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return std::move(*table);
}

// Returns what the reader of a job sees of each cell: its text and, where it has one, its number.
using Seen = std::vector<std::vector<std::string>>;
Seen SeenIn(const ColumnTable& table) {
  Seen seen;
  for (size_t c = 0; c < table.columns().size(); ++c) {
    const CellType& type = table.columns()[c].type;
    const CellReader reader(IsList(type.kind) ? *type.values : type);
    const auto cell = [&](const ColumnChunk& chunk, int64_t index) {
      CellText memory;
      std::string_view text;
      double number = 0;
      std::string shown(reader.Text(chunk, index, &memory, &text) ? text : "");
      if (reader.has_numbers() && reader.Number(chunk, index, &number)) {
        CellText digits;
        shown += " = " + std::string(TextOfFloat(number, &digits));
      }
      return shown;
    };
    seen.emplace_back();
    for (uint64_t row = 0; row < table.num_rows(); ++row) {
      const ColumnTable::Place place = table.PlaceOf(row);
      const ColumnChunk& chunk = table.chunk(place.batch, c);
      std::string shown;
      if (IsList(type.kind)) {
        const CellRange range = ListAt(type.kind, chunk, place.index);
        for (int64_t i = range.begin; i < range.end; ++i) {
          const std::string value = cell(*chunk.values, i);
          if (!value.empty()) shown += value.substr(0, value.find(" = ")) + ";";
        }
      } else {
        shown = cell(chunk, place.index);
      }
      seen.back().push_back(shown);
    }
  }
  return seen;
}

std::vector<std::string> NamesIn(const ColumnTable& table) {
  std::vector<std::string> names;
  for (const ColumnTable::Column& column : table.columns()) names.push_back(column.name);
  return names;
}

Result<std::shared_ptr<const ColumnTable>> Sent(const ColumnTable& table) {
  SentCells cells;
  HDPS_RETURN_IF_ERROR(AddCells(table, NamesIn(table), &cells));
  PredictRequest request, decoded;
  PutInto(&request, std::move(cells));
  HDPS_RETURN_IF_ERROR(DecodeMessage(EncodeMessage(request), &decoded));
  return TableOf(std::move(decoded));
}

TEST(ColumnSections, CellsReadAsTheyDidWhereTheyWereSent) {
  const Cells texts = {"a", "", "0.1", std::nullopt};
  const std::vector<std::optional<float>> floats = {0.1F, -0.0F, std::nullopt, 1e-30F};
  const std::vector<std::optional<double>> doubles = {0.1, -0.0, std::nullopt, 1.0 / 3};
  const std::vector<std::optional<int64_t>> whole = {1, -(int64_t{1} << 60), 0, 9};
  const std::vector<std::optional<int64_t>> some = {1, std::nullopt, 0, 9};
  const std::vector<std::optional<uint64_t>> large = {~uint64_t{0}, 1, 2, 3};
  const std::vector<std::optional<uint8_t>> at = {1, 0, std::nullopt, 1};
  const MadeColumn values = Texts("", {"x", "", "yz", std::nullopt, "w"});
  const std::vector<MadeColumn> columns = {
      Texts("text", texts),
      Texts("view", {"a long text that lies elsewhere", "b", "c", "d"}, "vu"),
      Numbers<float>("float", floats),
      Numbers<double>("double", doubles),
      Numbers<int64_t>("whole", whole),
      Numbers<int64_t>("some", some),
      Numbers<uint64_t>("large", large),
      Bools("bool", {true, false, std::nullopt, true}),
      Dictionary<uint8_t>("words", at, Texts("", {"no", "yes"})),
      Dictionary<uint8_t>("halves", at, Numbers<float>("", {-0.0F, 0.1F})),
      Lists("lists", {2, std::nullopt, 3, 0}, values),
      Nulls("nothing", 4)};
  const auto table = TableOfBatches({columns, columns});
  const auto sent = Sent(*table);
  ASSERT_TRUE(sent.ok()) << sent.status().message();
  EXPECT_EQ(NamesIn(**sent), NamesIn(*table));
  Seen expected = SeenIn(*table);
  EXPECT_EQ((*sent)->num_rows(), 8U);
  Seen seen = SeenIn(**sent);
  // A text has no number before the reader makes one, and it makes the same of the same digits.
  for (Seen* one : {&expected, &seen}) {
    for (size_t c = 5; c < 9; ++c) {
      for (std::string& cell : (*one)[c]) cell = cell.substr(0, cell.find(" = "));
    }
  }
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(seen[2][1], "-0.0 = 0.0") << "a zero keeps its sign as a text";
  EXPECT_EQ(seen[10], (std::vector<std::string>{"x;", "", "yz;w;", "", "x;", "", "yz;w;", ""}));
}

TEST(ColumnSections, OneCellCountsForAllRows) {
  PredictRequest request;
  request.rows = 3;
  request.columns = {{"user", CellForm::kTexts, 1, false},
                     {"tags", CellForm::kTexts, 1, true},
                     {"price", CellForm::kFloats, 3, false},
                     {"age", CellForm::kIntegers, 1, false}};
  request.ends = EndsOf({0, 2, 0, 2, 2, 3, 5});
  request.texts = testing_samples::TextsOf("u1abc");
  request.floats = testing_samples::FloatsOf(3);
  request.integers = Buffer::CopyOf<int64_t>(std::vector<int64_t>{40});
  PredictRequest decoded;
  const Status read = DecodeMessage(EncodeMessage(request), &decoded);
  ASSERT_TRUE(read.ok()) << read.message();
  const auto table = TableOf(std::move(decoded));
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_THAT(SeenIn(**table),
              ElementsAre(ElementsAre("u1", "u1", "u1"), ElementsAre("a;bc;", "a;bc;", "a;bc;"),
                          ElementsAre("-1.0 = -1.0", "-0.5 = -0.5", "0.0 = 0.0"),
                          ElementsAre("40 = 40.0", "40 = 40.0", "40 = 40.0")));
}

TEST(ColumnSections, WhatIsTooMuchIsRefused) {
  PredictRequest rows;
  rows.rows = static_cast<uint32_t>(kRequestRowsMax) + 1;
  EXPECT_EQ(TableOf(rows).status().code(), Code::kResourceExhausted);
  EXPECT_THAT(TableOf(rows).status().message(), HasSubstr("8193 rows"));

  PredictRequest lists;
  lists.rows = kRequestRowsMax;
  lists.columns = {{"tags", CellForm::kTexts, 1, true}};
  std::vector<uint32_t> ends(4098);
  ends[1] = 4095;
  lists.ends = EndsOf(ends);
  PredictRequest decoded;
  ASSERT_TRUE(DecodeMessage(EncodeMessage(lists), &decoded).ok());
  const Status refused = TableOf(std::move(decoded)).status();
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("input 'tags': 4095 values for all of 8192 rows"));

  PredictRequest twice = SamplePredict();
  twice.columns[4].name = "price";
  EXPECT_THAT(TableOf(twice).status().message(), HasSubstr("input 'price' is there twice"));
}

TEST(ColumnSections, ColumnsHaveAsManyRowsOrOne) {
  SentCells cells;
  const auto add = [&cells](const std::string& name, const Cells& texts) {
    return AddCells(*TableOfBatches({{Texts(name, texts)}}), {name}, &cells);
  };
  EXPECT_TRUE(add("user", {"u"}).ok());
  EXPECT_TRUE(add("item", {"a", "b"}).ok());
  EXPECT_TRUE(add("day", {"monday"}).ok());
  EXPECT_EQ(cells.rows, 2U);
  const Status refused = add("price", {"1", "2", "3"});
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "column 'price' has 3 rows: expected 2 as before it, or one that counts for all");
}

// Each of these breaks one rule of the sections.
TEST(ColumnSections, SectionsThatLieAreNoMessage) {
  const auto refused = [](const PredictRequest& request) {
    PredictRequest decoded;
    return DecodeMessage(EncodeMessage(request), &decoded).code() == Code::kCorruption;
  };
  PredictRequest request = SamplePredict();
  EXPECT_FALSE(refused(request));
  for (const std::vector<uint32_t>& ends :
       {std::vector<uint32_t>{0, 2, 3, 0, 1, 3, 3, 4, 6, 7},  // Beyond the bytes.
        {0, 3, 2, 0, 1, 3, 3, 4, 6, 6},                       // Backwards.
        {0, 2, 3, 1, 1, 3, 3, 4, 6, 6},                       // Lists do not begin at 0.
        {0, 2, 3, 0, 1, 4, 3, 4, 6, 6},                       // More values than there are.
        {0, 2, 3, 0, 1, 0xFFFFFFFF, 3, 4, 6, 6},
        {0, 2, 3, 0, 1, 3, 3, 4, 6},        // One too few.
        {0, 2, 3, 0, 1, 3, 3, 4, 6, 6, 6},  // One too many.
        {0, 2, 3, 0, 1, 3, 2, 4, 6, 6},     // A column begins before the one before it ends.
        {}}) {
    request.ends = EndsOf(ends);
    EXPECT_TRUE(refused(request)) << ends.size();
  }
  request = SamplePredict();
  request.rows = 3;
  EXPECT_TRUE(refused(request));
  request = SamplePredict();
  request.columns[3].lists = true;
  EXPECT_TRUE(refused(request)) << "lists of numbers";
  request = SamplePredict();
  request.integers = Buffer();
  EXPECT_TRUE(refused(request));
  request = SamplePredict();
  request.columns.assign(kSentColumnsMax + 1, {"x", CellForm::kFloats, 2, false});
  EXPECT_TRUE(refused(request));
}

TEST(ColumnSections, NoMutationReadsBeyondItsSections) {
  std::mt19937_64 chance(7);
  const Frame original = EncodeMessage(SamplePredict());
  int taken = 0;
  for (int i = 0; i < 50'000; ++i) {
    Frame frame = original;
    for (int change = 0; change < 2; ++change) {
      const size_t part = chance() % (frame.sections.size() + 1);
      Buffer& buffer = part == 0 ? frame.envelope : frame.sections[part - 1];
      std::span<std::byte> bytes;
      // Exactly as long, so that a sanitizer sees each byte beyond.
      Buffer changed = Buffer::Allocate(buffer.size(), &bytes);
      std::ranges::copy(buffer.bytes(), bytes.begin());
      if (!bytes.empty()) bytes[chance() % bytes.size()] = static_cast<std::byte>(chance() % 8);
      buffer = std::move(changed);
    }
    PredictRequest request;
    if (!DecodeMessage(frame, &request).ok()) continue;
    const auto table = TableOf(std::move(request));
    if (!table.ok()) continue;
    ++taken;
    SeenIn(**table);
  }
  EXPECT_GT(taken, 100) << "mutations that are requests too";
}

}  // namespace
}  // namespace hdps
