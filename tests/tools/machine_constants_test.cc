// Constants as the benchmark writes them, and files that are not what they should be.
#include "tools/plan/machine_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace hdps {
namespace {

using ::testing::HasSubstr;

std::map<std::string, double> AllValues() {
  std::map<std::string, double> values;
  double next = 1;
  for (const ConstantName& name : AllConstants()) values[name.name] = next++;
  for (const PathName& path : AllPaths()) {
    const std::string name = path.name;
    for (const ExchangeFigure& figure : ExchangeFigures()) {
      values[name + "_pull." + figure.name] = next++;
      values[name + "_push." + figure.name] = next++;
    }
    for (const RepairFigure& figure : RepairFigures()) {
      values[name + "_repair." + figure.name] = next++;
    }
  }
  values["products_429x1024_batch4096.rate"] = 100;
  values["products_64x32_batch4096.rate"] = 20;
  return values;
}

TEST(MachineConstantsTest, EachNameHasItsField) {
  const Result<MachineConstants> constants = ConstantsFrom(AllValues());
  ASSERT_TRUE(constants.ok()) << constants.status().message();
  double next = 1;
  for (const ConstantName& name : AllConstants()) {
    EXPECT_EQ((*constants).*name.field, next++) << name.name;
  }
  for (const PathName& path : AllPaths()) {
    const PathCosts& costs = (*constants).*path.field;
    for (const ExchangeFigure& figure : ExchangeFigures()) {
      EXPECT_EQ(costs.pull.*figure.field, next++) << path.name << figure.name;
      EXPECT_EQ(costs.push.*figure.field, next++) << path.name << figure.name;
    }
    for (const RepairFigure& figure : RepairFigures()) {
      EXPECT_EQ(costs.repair.*figure.field, next++) << path.name << figure.name;
    }
  }
  ASSERT_EQ(constants->products.size(), 2u);
}

TEST(MachineConstantsTest, WhatIsMissingIsNamed) {
  for (const auto& [name, value] : AllValues()) {
    if (name.starts_with("products")) continue;
    auto values = AllValues();
    values.erase(name);
    const Status status = ConstantsFrom(values).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("'" + name + "' is missing"));
    values[name] = -value;
    EXPECT_THAT(ConstantsFrom(values).status().message(), HasSubstr("expected 0 or more"));
  }
}

TEST(MachineConstantsTest, AMeasuredShapeCountsMost) {
  const MachineConstants constants = *ConstantsFrom(AllValues());
  EXPECT_NEAR(constants.GflopsFor(429, 1024, 4096), 100, 2);
  EXPECT_NEAR(constants.GflopsFor(64, 32, 4096), 20, 1);
  const double between = constants.GflopsFor(180, 180, 4096);
  EXPECT_GT(between, 20);
  EXPECT_LT(between, 100);
}

TEST(MachineConstantsTest, OtherFilesAreRefused) {
  const auto files = NewMemoryFileSystem();
  for (const char* text : {"", "no JSON", "[]", "{}", R"({"results": [1, {"bench": 7}]})"}) {
    ASSERT_TRUE(WriteFileAtomically(*files, "c.json", std::string(text)).ok());
    const Status status = ReadConstants(*files, "c.json").status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr("c.json"));
    EXPECT_THAT(status.message(), HasSubstr("hdps-bench constants --json=FILE"));
  }
  EXPECT_THAT(ReadConstants(*files, "nowhere.json").status().message(), HasSubstr("nowhere.json"));
}

}  // namespace
}  // namespace hdps
