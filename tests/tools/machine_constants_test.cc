// Tests constants from the benchmark's file, and files that are invalid.
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
  MachineConstants constants;
  for (const NamedConstant& constant : NamedConstants(&constants)) values[constant.name] = next++;
  values["products_429x1024_batch4096.rate"] = 100;
  values["products_64x32_batch4096.rate"] = 20;
  return values;
}

TEST(MachineConstantsTest, EachNameHasItsField) {
  Result<MachineConstants> constants = ConstantsFrom(AllValues());
  ASSERT_TRUE(constants.ok()) << constants.status().message();
  double next = 1;
  for (const NamedConstant& constant : NamedConstants(&*constants)) {
    EXPECT_EQ(*constant.value, next++) << constant.name;
  }
  EXPECT_EQ(constants->server_push_row_ns, AllValues().at("server.push_row"));
  EXPECT_EQ(constants->local.push.float_ns, AllValues().at("local_push.float"));
  EXPECT_EQ(constants->socket.repair.changed_row_ns, AllValues().at("socket_repair.changed_row"));
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
