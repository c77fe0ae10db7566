// Tests small files of many kinds, column by column, against a person's judgment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "tests/worker/data/data_fixture.h"
#include "tools/prepare/columns/column_names.h"
#include "tools/prepare/columns/whole_shape.h"
#include "tools/prepare/data_plan.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kRows = 2000;

uint64_t Draw(uint64_t row, uint64_t column) { return MixBits(row * 64 + column + 1); }
std::string Of(uint64_t number) { return std::to_string(number); }
std::string Bit(uint64_t i) { return Draw(i, 60) % 4 == 0 ? "1" : "0"; }

// Returns one of `count` values in random order, the first most often, like users and items.
uint64_t Popular(uint64_t row, uint64_t column, uint64_t count) {
  const double share = static_cast<double>(Draw(row, column) >> 11) / std::ldexp(1.0, 53);
  const auto rank = static_cast<uint64_t>(std::pow(static_cast<double>(count), share)) - 1;
  return MixBits(rank + column * 1000003) % count;
}

// Returns values on a bell curve around `mean`.
uint64_t Bell(uint64_t row, uint64_t column, double mean, double deviation) {
  double sum = 0;
  for (uint64_t part = 0; part < 12; ++part) {
    sum += static_cast<double>(Draw(row * 12 + part, column) >> 11) / std::ldexp(1.0, 53);
  }
  return static_cast<uint64_t>(std::max(0.0, mean + deviation * (sum - 6)));
}

// Returns 0, 1, 2, ..., each half as often as the one before.
uint64_t Falling(uint64_t row, uint64_t column) {
  const double share = (static_cast<double>(Draw(row, column) >> 11) + 1) / std::ldexp(1.0, 53);
  return static_cast<uint64_t>(-4 * std::log(share));
}

struct Column {
  const char* name;
  std::function<std::string(uint64_t row)> cell;
  const char* expected;  // "categorical"; of the label "label binary", "label classes", ...
};

std::string TableOf(const std::vector<Column>& columns, uint64_t rows = kRows) {
  std::string text;
  for (const Column& column : columns) text += (text.empty() ? "" : ",") + std::string(column.name);
  for (uint64_t i = 0; i < rows; ++i) {
    text += "\n";
    for (size_t c = 0; c < columns.size(); ++c) text += (c == 0 ? "" : ",") + columns[c].cell(i);
  }
  return text + "\n";
}

struct Planned {
  DataPlan plan;
  std::map<std::string, ColumnPlan> columns;
  std::string notes, error;
};

Planned PlanOf(const std::string& text, const DataWish& wish = {}) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f.csv", text);
  const auto layout = TellLayout(*files, "f.csv");
  if (!layout.ok()) return {{}, {}, "", layout.status().message()};
  const auto profile = ProfileData(*files, *layout, {"f.csv"}, {});
  const auto plan = PlanData(*profile, nullptr, wish);
  if (!plan.ok()) return {{}, {}, "", plan.status().message()};
  Planned planned = {*plan, {}, "", ""};
  for (const ColumnPlan& column : plan->columns) planned.columns[column.spec.name] = column;
  for (const std::string& note : plan->notes) planned.notes += note + "\n";
  return planned;
}

void ExpectColumns(const char* what, const std::vector<Column>& columns,
                   const DataWish& wish = {}) {
  const Planned planned = PlanOf(TableOf(columns), wish);
  ASSERT_EQ(planned.error, "") << what;
  for (const Column& column : columns) {
    const ColumnPlan& plan = planned.columns.at(column.name);
    std::string type(WordOf(plan.spec.type));
    if (plan.spec.type == ColumnType::kLabel) type += " " + std::string(WordOf(planned.plan.task));
    EXPECT_EQ(type, column.expected) << what << ": " << column.name << ": " << plan.why;
    EXPECT_NE(plan.why, "") << what << ": " << column.name;
  }
}

const Column kClicked = {"clicked", Bit, "label binary"};

TEST(ColumnsTest, UsersAndItemsAreCategories) {
  for (const auto& [user, item] :
       std::vector<std::pair<const char*, const char*>>{{"user", "item"},
                                                        {"uid", "movie"},
                                                        {"user_id", "movieId"},
                                                        {"userid", "itemid"},
                                                        {"CustomerID", "StockCode"},
                                                        {"visitor", "product"}}) {
    ExpectColumns("pairs",
                  {{user, [](uint64_t i) { return Of(Popular(i, 1, 200)); }, "categorical"},
                   {item, [](uint64_t i) { return Of(Popular(i, 2, 90)); }, "categorical"},
                   kClicked});
  }
}

TEST(ColumnsTest, HashedIdsAreCategories) {
  const auto hashed = [](uint64_t i) { return Of(MixBits(Popular(i, 1, 300)) | (1ull << 62)); };
  ExpectColumns("hashes",
                {{"ad", hashed, "categorical"},
                 {"anything", hashed, "categorical"},
                 {"of_32_bits", [](uint64_t i) { return Of(MixBits(Popular(i, 3, 300)) >> 32); },
                  "categorical"},
                 {"request", [](uint64_t i) { return Of(Draw(i, 4) | (1ull << 62)); }, "skip"},
                 {"price", [](uint64_t i) { return Of(Draw(i, 5) % 100000) + ".5"; }, "numeric"},
                 kClicked});
}

TEST(ColumnsTest, CodesOfTensOfValuesAreCategories) {
  const auto code = [](uint64_t column, uint64_t count) {
    return [=](uint64_t i) { return Of(Popular(i, column, count)); };
  };
  ExpectColumns(
      "codes",
      {{"occupation", code(1, 21), "categorical"},
       {"industry", code(2, 52), "categorical"},
       {"detailed_industry_recode", code(3, 52), "categorical"},
       {"zip", [](uint64_t i) { return Of(10000 + 37 * Popular(i, 4, 400)); }, "categorical"},
       {"hour", [](uint64_t i) { return Of(Draw(i, 5) % 24); }, "categorical"},
       {"month", [](uint64_t i) { return Of(1 + Draw(i, 6) % 12); }, "categorical"},
       {"mostly_0", [](uint64_t i) { return Of(i % 2 == 0 ? 0 : 1 + Popular(i, 10, 45)); },
        "categorical"},
       {"here_and_there", [](uint64_t i) { return Of(35 + MixBits(Popular(i, 11, 40)) % 20000); },
        "categorical"},
       {"f7", code(7, 40), "categorical"},
       {"f8", [](uint64_t i) { return "0" + Of(10 + Popular(i, 8, 80)); }, "categorical"},
       {"f9", [](uint64_t i) { return Of(Draw(i, 9) % 30); }, "categorical"},
       kClicked});
}

TEST(ColumnsTest, CountsAndAmountsAreNumbers) {
  ExpectColumns(
      "amounts",
      {{"age", [](uint64_t i) { return Of(Bell(i, 1, 40, 12)); }, "numeric"},
       {"hours-per-week", [](uint64_t i) { return Of(i % 3 == 0 ? 40 : Bell(i, 2, 40, 10)); },
        "numeric"},
       {"num_visits", [](uint64_t i) { return Of(Falling(i, 3)); }, "numeric"},
       {"item_price", [](uint64_t i) { return Of(5 * Bell(i, 4, 60, 20)); }, "numeric"},
       {"year_built", [](uint64_t i) { return Of(1900 + Bell(i, 5, 60, 20)); }, "numeric"},
       {"capital-gain", [](uint64_t i) { return Of(i % 9 == 0 ? 100 * Falling(i, 6) : 0); },
        "numeric"},
       {"fnlwgt", [](uint64_t i) { return Of(10000 + Draw(i, 7) % 900000); }, "numeric"},
       {"f8", [](uint64_t i) { return Of(Bell(i, 8, 50, 15)); }, "numeric"},
       {"f9", [](uint64_t i) { return Of(Falling(i, 9)); }, "numeric"},
       {"campaign", [](uint64_t i) { return Of(1 + Falling(i, 10)); }, "numeric"},
       {"ratio", [](uint64_t i) { return "0." + Of(Draw(i, 11) % 1000); }, "numeric"},
       {"timestamp", [](uint64_t i) { return Of(956703932 + Draw(i, 12) % 90000000); }, "skip"},
       {"moment", [](uint64_t i) { return Of(1600000000000 + Draw(i, 13) % 90000000000); }, "skip"},
       kClicked});
}

// One text among numbers makes the column text, because a job would refuse its row. A note says
// that it may be a mistake.
TEST(ColumnsTest, NumbersWithAFewTextsAreTexts) {
  for (const uint64_t every : {10u, 20u, 100u, 1999u}) {
    const std::vector<Column> columns = {
        {"size",
         [every](uint64_t i) { return i % every == 3 ? "large" : Of(Draw(i, 1) % 90) + ".5"; },
         "categorical"},
        {"length", [](uint64_t i) { return Of(Draw(i, 1) % 90) + ".5"; }, "numeric"},
        kClicked};
    ExpectColumns("numbers with texts", columns);
    EXPECT_THAT(PlanOf(TableOf(columns)).notes,
                HasSubstr("of the cells are numbers; it counts as texts because of the others"));
  }
}

TEST(ColumnsTest, NamesNearlyUniqueAndConstantOnesAreLeftOut) {
  ExpectColumns("own values",
                {{"row", [](uint64_t i) { return Of(1000 + i); }, "skip"},
                 {"session_id", [](uint64_t i) { return Of(Draw(i, 1) % 100000000); }, "skip"},
                 {"token", [](uint64_t i) { return "t" + Of(Draw(i, 2)); }, "skip"},
                 {"same", [](uint64_t) { return std::string("x"); }, "skip"},
                 {"nothing", [](uint64_t) { return std::string(); }, "skip"},
                 {"amount", [](uint64_t i) { return Of(Draw(i, 3) % 100000000); }, "numeric"},
                 kClicked});
}

TEST(ColumnsTest, HistoriesHaveSeveralValuesACell) {
  const auto list = [](const char* between, const char* front) {
    return [=](uint64_t i) {
      std::string cell;
      for (uint64_t n = 0; n <= Draw(i, 1) % 5; ++n) {
        cell += (n == 0 ? "" : between) + (front + Of(Popular(i * 5 + n, 2, 40)));
      }
      return cell;
    };
  };
  ExpectColumns(
      "lists",
      {{"history", list("|", ""), "multi"},
       {"genres", list(";", "g"), "multi"},
       {"clicked_items", list(" ", ""), "multi"},
       {"target", [](uint64_t i) { return Of(Popular(i, 3, 40)); }, "categorical"},
       {"city", [](uint64_t i) { return i % 2 == 0 ? "New York" : "San Jose"; }, "categorical"},
       {"label", Bit, "label binary"}});
}

TEST(ColumnsTest, ALabelOfSeveralValuesIsNeverPassedOver) {
  const Column x = {"x", [](uint64_t i) { return Of(Draw(i, 1) % 1000) + ".5"; }, "numeric"};
  const Column two = {"smoker", [](uint64_t i) { return i % 3 == 0 ? "yes" : "no"; },
                      "categorical"};
  ExpectColumns(
      "texts",
      {x,
       two,
       {"class",
        [](uint64_t i) {
          return std::string(i % 3 == 0 ? "setosa" : i % 3 == 1 ? "virginica" : "versicolor");
        },
        "label classes"}});
  ExpectColumns(
      "numbers",
      {x, two, {"label", [](uint64_t i) { return Of(Draw(i, 2) % 7); }, "label classes"}});
  ExpectColumns("amounts", {x,
                            two,
                            {"target", [](uint64_t i) { return Of(Draw(i, 2) % 90000) + ".25"; },
                             "label rating"}});
  const std::vector<Column> ratings = {
      {"user", [](uint64_t i) { return Of(Popular(i, 1, 200)); }, "categorical"},
      {"movie", [](uint64_t i) { return Of(Popular(i, 2, 90)); }, "categorical"},
      {"gender", [](uint64_t i) { return Popular(i, 1, 200) % 2 == 0 ? "F" : "M"; }, "categorical"},
      {"rating", [](uint64_t i) { return Of(1 + Draw(i, 3) % 5); }, "label rating"},
      {"timestamp", [](uint64_t i) { return Of(956703932 + Draw(i, 4) % 90000000); }, "skip"}};
  ExpectColumns("ratings", ratings);
  const Planned rated = PlanOf(TableOf(ratings));
  EXPECT_THAT(rated.plan.choices, ElementsAre(TaskKind::kRating, TaskKind::kClasses));
  EXPECT_THAT(rated.notes, HasSubstr("--task=classes takes them for classes"));
  EXPECT_NEAR(rated.plan.label_mean, 3, 0.1);
  EXPECT_EQ(rated.plan.user, 0u);
  EXPECT_EQ(rated.plan.item, 1u);
  DataWish wish;
  wish.positive = ">=4";
  const Planned binary = PlanOf(TableOf(ratings), wish);
  EXPECT_EQ(binary.plan.task, TaskKind::kBinary);
  EXPECT_THAT(binary.columns.at("rating").spec.positive, ElementsAre("4", "5"));
  EXPECT_NEAR(binary.plan.positive_share, 0.4, 0.05);
  for (const auto& [text, needle] :
       std::vector<std::pair<std::string, std::string>>{{">=x", "expected \">=4\" with a number"},
                                                        {"=9", "no row has the label '9'"},
                                                        {">=0", "all are positive"},
                                                        {"1|7", "no row has the label '7'"}}) {
    wish.positive = text;
    EXPECT_THAT(PlanOf(TableOf(ratings), wish).error, HasSubstr(needle)) << text;
  }
  wish = {};
  wish.task = TaskKind::kClasses;
  const Planned classes = PlanOf(TableOf(ratings), wish);
  EXPECT_THAT(classes.columns.at("rating").spec.classes, ElementsAre("1", "2", "3", "4", "5"));
  EXPECT_EQ(classes.plan.num_classes, 5u);
}

TEST(ColumnsTest, PositiveRowsAloneAreARanking) {
  const std::vector<Column> rows = {
      {"user_id", [](uint64_t i) { return Of(Popular(i, 1, 200)); }, "categorical"},
      {"item_id", [](uint64_t i) { return Of(Popular(i, 2, 90)); }, "categorical"},
      {"hour", [](uint64_t i) { return Of(Draw(i, 3) % 24); }, "categorical"}};
  ExpectColumns("positives", rows);
  const Planned planned = PlanOf(TableOf(rows));
  EXPECT_EQ(planned.plan.task, TaskKind::kPositivesOnly);
  EXPECT_EQ(planned.plan.label, kNoColumn);
  EXPECT_THAT(planned.plan.item_features, ElementsAre("item_id"));
  EXPECT_GT(planned.plan.negatives, 0u);
  EXPECT_THAT(planned.notes, HasSubstr("every row is taken for one that happened"));
  // A target is an item if there is a history.
  std::vector<Column> target = rows;
  target[1].name = "target";
  target[2] = {"history",
               [](uint64_t i) { return Of(Popular(i, 4, 90)) + "|" + Of(Popular(i, 5, 90)); },
               "multi"};
  ExpectColumns("a target", target);
  EXPECT_THAT(PlanOf(TableOf(target)).plan.item_features, ElementsAre("target"));
  // Without names the user has to say so.
  std::vector<Column> unnamed = rows;
  unnamed[0].name = "a";
  unnamed[1].name = "b";
  EXPECT_THAT(PlanOf(TableOf(unnamed)).error, HasSubstr("say --task=ranking"));
  DataWish wish;
  wish.task = TaskKind::kPositivesOnly;
  const Planned asked = PlanOf(TableOf(unnamed), wish);
  EXPECT_EQ(asked.plan.user, 0u);
  EXPECT_THAT(asked.plan.item_features, ElementsAre("b"));
}

TEST(ColumnsTest, WhatAPersonSaysHolds) {
  const std::vector<Column> columns = {
      {"f1", [](uint64_t i) { return Of(Bell(i, 1, 50, 15)); }, "categorical"},
      {"f2", [](uint64_t i) { return Of(Popular(i, 2, 40)); }, "numeric"},
      {"f3", [](uint64_t i) { return "a b" + Of(Draw(i, 3) % 9); }, "multi"},
      {"f4", [](uint64_t i) { return Of(Draw(i, 4) % 9); }, "skip"},
      {"f5", [](uint64_t i) { return Of(Draw(i, 5) % 9); }, "group"},
      {"f6", [](uint64_t i) { return Of(Draw(i, 6) % 9) + ".5"; }, "weight"},
      {"f7, too", Bit, "label binary"}};
  std::string text = TableOf(columns);
  text.replace(text.find("f7, too"), 7, "\"f7, too\"");
  DataWish wish;
  wish.categorical = {"f1"};
  wish.numeric = {"f2"};
  wish.multi = {"f3"};
  wish.skip = {"f4"};
  wish.group = "f5";
  wish.weight = "f6";
  wish.label = "f7, too";
  const Planned planned = PlanOf(text, wish);
  ASSERT_EQ(planned.error, "");
  for (const Column& column : columns) {
    const std::string type(WordOf(planned.columns.at(column.name).spec.type));
    EXPECT_EQ(type, std::string(column.expected).substr(0, type.size())) << column.name;
  }
  DataWish weights = wish;
  weights.weight = "f2";
  weights.numeric.clear();
  std::string holes = text;
  holes.replace(holes.find("\n") + 1, 0, "9,,a b1,1,1,1,1\n");
  EXPECT_THAT(PlanOf(holes, weights).error,
              HasSubstr("f.csv:2: --weight: no weight in column 'f2'"));
  wish.numeric = {"f3"};
  EXPECT_THAT(PlanOf(text, wish).error, HasSubstr("--multi=f3: the column is named by --numeric"));
  wish.multi.clear();
  EXPECT_THAT(PlanOf(text, wish).error, HasSubstr("are no numbers, such as 'a b"));
  wish.numeric = {"f22"};
  EXPECT_THAT(PlanOf(text, wish).error,
              HasSubstr("--numeric=f22: there is no such column in f.csv; "
                        "did you mean \"f2\"?"));
}

TEST(ColumnsTest, NamesSayWhatValuesAre) {
  for (const char* name : {"age", "num_items", "item_count", "hours_per_week", "price", "maxPrice",
                           "days_since_visit", "total_orders", "education-num"}) {
    EXPECT_EQ(HintOf(name), NameHint::kQuantity) << name;
  }
  for (const char* name : {"user", "uid", "itemId", "MOVIE_ID", "movieids", "adgroup_id", "product",
                           "cate_id", "brand", "device"}) {
    EXPECT_EQ(HintOf(name), NameHint::kIdentity) << name;
  }
  for (const char* name : {"zip_code2", "Occupation", "hour", "age_group", "weekday"}) {
    EXPECT_THAT((std::vector<NameHint>{NameHint::kCode, NameHint::kIdentity}),
                ::testing::Contains(HintOf(name)))
        << name;
  }
  for (const char* name : {"f1", "column7", "x", "valid", "paid"}) {
    EXPECT_EQ(HintOf(name), NameHint::kNothing) << name;
  }
  EXPECT_THAT(WordsOfName("hoursPerWeek2"), ElementsAre("hours", "per", "week"));
}

TEST(ColumnsTest, ShapesOfWholeNumbers) {
  const auto sample = [](const std::function<uint64_t(uint64_t)>& number) {
    std::vector<double> numbers;
    for (uint64_t i = 0; i < 4000; ++i) numbers.push_back(static_cast<double>(number(i)));
    return numbers;
  };
  EXPECT_EQ(ShapeOfWhole(sample([](uint64_t i) { return Bell(i, 1, 50, 15); })),
            WholeShape::kSmooth);
  EXPECT_EQ(ShapeOfWhole(sample([](uint64_t i) { return Falling(i, 1); })), WholeShape::kFalling);
  EXPECT_EQ(ShapeOfWhole(sample([](uint64_t i) {
              const uint64_t hours = Bell(i, 1, 40, 12);
              return i % 2 == 0 ? hours / 5 * 5 : hours;
            })),
            WholeShape::kSmooth);
  EXPECT_EQ(ShapeOfWhole(sample([](uint64_t i) { return Popular(i, 1, 50); })),
            WholeShape::kJagged);
  EXPECT_EQ(ShapeOfWhole(sample([](uint64_t i) { return Draw(i, 1) % 50; })), WholeShape::kFlat);
  EXPECT_EQ(ShapeOfWhole(sample([](uint64_t i) { return MixBits(i % 300) >> 30; })),
            WholeShape::kSpread);
  EXPECT_EQ(ShapeOfWhole({}), WholeShape::kUnknown);
}

}  // namespace
}  // namespace hdps
