// Tests that each form of a request gives the same table, and how answers are written.
#include "tools/serve/requests/request_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/base/hash.h"
#include "common/platform/random.h"
#include "common/protocol/manifest.h"
#include "tests/tools/serve/requests/request_bodies.h"
#include "tools/serve/requests/json_text.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Cells = std::map<std::string, std::vector<std::string>>;

constexpr auto kJson = [](size_t) { return false; };
constexpr auto kBinary = [](size_t) { return true; };

const Cells kSmallCells = {{"color", {"red", "", "", "bl\xc3\xbc \"x\""}},
                           {"id", {"-7", "0", "9223372036854775807", "12"}},
                           {"tags", {"a|b", "c|", "|", "a|a"}},
                           {"price", {"0.5", "-2.0", "", "10000000000.0"}},
                           {"user", {"u1", "u1", "u1", "u1"}}};

AskedScore Infer(const Body& body) {
  Result<AskedScore> asked = ReadInfer(SmallModel(), body.bytes, body.json_bytes);
  EXPECT_TRUE(asked.ok()) << asked.status().message() << " of " << body.bytes;
  return asked.ok() ? *std::move(asked) : AskedScore();
}
AskedScore Predict(const ModelNote& model, const std::string& body) {
  Result<AskedScore> asked = ReadPredict(model, body);
  EXPECT_TRUE(asked.ok()) << asked.status().message() << " of " << body;
  return asked.ok() ? *std::move(asked) : AskedScore();
}

TEST(RequestForms, EachFormGivesTheSameCells) {
  const std::vector<InputText> inputs = SmallInputs();
  for (uint32_t binary = 0; binary < 1u << inputs.size(); ++binary) {
    const Body body = InferBody(inputs, "", [&](size_t i) { return (binary >> i & 1) != 0; });
    EXPECT_EQ(CellsOf(*Infer(body).request.rows), kSmallCells) << body.bytes;
  }
  EXPECT_EQ(CellsOf(*Predict(SmallModel(), SmallInstances()).request.rows), kSmallCells);
  EXPECT_EQ(CellsOf(*Predict(SmallModel(), SmallColumns()).request.rows), kSmallCells);
}

TEST(RequestForms, DataMayBeFlatAndStandBeforeTheirShape) {
  const std::string body = R"({"id":"7","inputs":[
    {"data":["a","b","c","","","","a","a"],"datatype":"BYTES","name":"tags","shape":[4,2]}]})";
  EXPECT_EQ(CellsOf(*Infer({body}).request.rows), (Cells{{"tags", kSmallCells.at("tags")}}));
}

TEST(RequestForms, NullIsAsGoodAsNoMember) {
  const std::string body = R"({"id":null,"parameters":null,"outputs":null,"inputs":[{"name":"color",
    "shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":null},"data":["x"]}]})";
  const AskedScore asked = Infer({body});
  EXPECT_EQ(CellsOf(*asked.request.rows), (Cells{{"color", {"x"}}}));
  EXPECT_THAT(asked.write({}).body, testing::Not(testing::HasSubstr("\"id\"")));
}

// Each datatype, its lowest and highest values, and the text of these cells.
TEST(RequestForms, EachDatatypeIsRead) {
  const auto cells = [](const InputText& input, bool binary) {
    const Body body = InferBody(std::vector{input}, "", [&](size_t) { return binary; });
    return CellsOf(*Infer(body).request.rows).begin()->second;
  };
  const auto check = [&]<typename Number>(const char* datatype, std::vector<Number> numbers) {
    std::string data;
    std::vector<std::string> texts;
    for (const Number number : numbers) {
      texts.push_back(std::to_string(number));
      data += (data.empty() ? "[" : ",") + texts.back();
    }
    const std::string shape = "[" + std::to_string(numbers.size()) + "]";
    const InputText input = {"id", datatype, shape, data + "]", NumbersTensor(numbers)};
    EXPECT_EQ(cells(input, true), texts) << datatype;
    EXPECT_EQ(cells(input, false), texts) << datatype;
    texts[1] = "";
    const InputText with_null = {"id", datatype, shape, "[" + texts[0] + ",null]", ""};
    EXPECT_EQ(cells(with_null, false), texts) << datatype;
  };
  const auto check_limits = [&]<typename Number>(const char* datatype, Number) {
    using Limits = std::numeric_limits<Number>;
    check(datatype, std::vector<Number>{Limits::min(), Limits::max()});
  };
  check_limits("INT8", int8_t{});
  check_limits("INT16", int16_t{});
  check_limits("INT32", int32_t{});
  check_limits("INT64", int64_t{});
  check_limits("UINT8", uint8_t{});
  check_limits("UINT16", uint16_t{});
  check_limits("UINT32", uint32_t{});
  check_limits("UINT64", uint64_t{});
  for (const bool binary : {false, true}) {
    EXPECT_THAT(cells({"id", "BOOL", "[2]", "[true,false]", std::string("\1\0", 2)}, binary),
                ElementsAre("1", "0"));
    EXPECT_THAT(
        cells({"price", "FP64", "[2]", "[0.1,1e300]", NumbersTensor<double>({0.1, 1e300})}, binary),
        ElementsAre("0.1", "1e+300"));
  }
  // A number in JSON is what it is in a file, whatever the datatype says of its bits.
  EXPECT_THAT(cells({"price", "FP32", "[2]", "[0.1,7]", ""}, false), ElementsAre("0.1", "7.0"));
  EXPECT_THAT(cells({"id", "BYTES", "[2]", "[18446744073709551615,-5]", ""}, false),
              ElementsAre("18446744073709551615", "-5"));
}

TEST(RequestForms, ALoneRowOfAnInputCountsForAllRows) {
  const std::string body = R"({"inputs":[
    {"name":"color","shape":[3],"datatype":"BYTES","data":["x","y","z"]},
    {"name":"tags","shape":[1,3],"datatype":"BYTES","data":["a",null,"c"]},
    {"name":"id","shape":[1,1],"datatype":"INT64","data":[[5]]},
    {"name":"user","shape":[1],"datatype":"BYTES","data":[null]},
    {"name":"price","shape":[1],"datatype":"FP32","data":[null]}]})";
  const AskedScore asked = Infer({body});
  EXPECT_EQ(CellsOf(*asked.request.rows), (Cells{{"color", {"x", "y", "z"}},
                                                 {"tags", {"a||c", "a||c", "a||c"}},
                                                 {"id", {"5", "5", "5"}},
                                                 {"user", {"", "", ""}},
                                                 {"price", {"", "", ""}}}));
  for (const ColumnTable::Column& column : asked.request.rows->columns()) {
    const bool shared = column.name != "color" && column.name != "tags";
    EXPECT_EQ(column.type.is_dictionary(), shared) << column.name;
  }
}

TEST(RequestForms, ListsOfPredictHaveTheirOwnLengths) {
  const std::string body = R"({"instances":[{"tags":null},{"tags":["a"]},{"tags":[]},{"tags":null},
    {"tags":["b",7,null]}],"context":{"user":["x","y"],"color":"c"}})";
  EXPECT_EQ(CellsOf(*Predict(SmallModel(), body).request.rows),
            (Cells{{"tags", {"", "a", "", "", "b|7|"}},
                   {"user", {"x|y", "x|y", "x|y", "x|y", "x|y"}},
                   {"color", {"c", "c", "c", "c", "c"}}}));
}

TEST(RequestForms, TheOnlyInputNeedsNoName) {
  ModelNote lines;
  lines.inputs = {{"row", "BYTES"}};
  const Cells cells = {{"row", {"1 3:0.5", "0 7:1"}}};
  for (const char* const member : {"instances", "inputs"}) {
    const std::string body = R"({")" + std::string(member) + R"(":["1 3:0.5","0 7:1"]})";
    EXPECT_EQ(CellsOf(*Predict(lines, body).request.rows), cells);
  }
}

TEST(RequestForms, OutputsAreAskedForOnce) {
  const auto outputs = [](const std::string& rest) {
    const ScoreRequest request = Infer(InferBody(SmallInputs(), rest, kJson)).request;
    return std::pair(request.outputs, request.top_k);
  };
  using enum ScoreOutput;
  EXPECT_EQ(outputs(""), std::pair(std::vector<ScoreOutput>(), 0u));
  EXPECT_EQ(outputs(R"(,"outputs":[{"name":"logit"},{"name":"probability"}])"),
            std::pair(std::vector({kLogit, kPrediction}), 0u));
  EXPECT_EQ(outputs(R"(,"outputs":[{"name":"top_k"},{"name":"user_vector"}])"),
            std::pair(std::vector({kTopK, kUserVector}), 10u));
  EXPECT_EQ(outputs(R"(,"outputs":[{"name":"top_k"}],"parameters":{"k":3,"priority":"x"})"),
            std::pair(std::vector({kTopK}), 3u));
}

ScoreAnswer SmallAnswer() {
  ScoreAnswer answer;
  answer.step = 512;
  answer.rows = 2;
  answer.outputs = {{"probability", 1, {0.1f, 1}, {}},
                    {"user_vector", 2, {1.5f, -0.0f, 3e-20f, 16777216}, {}},
                    {"top_k", 1, {}, {"i\"1", "\xff"}},
                    {"top_k_score", 1, {2, 1}, {}}};
  return answer;
}

TEST(RequestForms, AnInferAnswerIsWritten) {
  const Body plain = InferBody(SmallInputs(), R"(,"id":"a\"b")", kJson);
  const WrittenAnswer all = Infer(plain).write(SmallAnswer());
  EXPECT_EQ(all.type, "application/json");
  EXPECT_THAT(all.headers, IsEmpty());
  EXPECT_EQ(
      all.body,
      R"({"model_name":"small","model_version":"512","id":"a\"b","outputs":[)"
      R"({"name":"probability","shape":[2],"datatype":"FP32","data":[0.1,1]},)"
      R"({"name":"user_vector","shape":[2,2],"datatype":"FP32","data":[1.5,-0,3e-20,16777216]},)"
      R"({"name":"top_k","shape":[2,1],"datatype":"BYTES","data":["i\"1",")"
      "\xef\xbf\xbd"
      R"("]},{"name":"top_k_score","shape":[2,1],"datatype":"FP32","data":[2,1]}]})");
  const Body named = InferBody(SmallInputs(),
                               R"(,"outputs":[{"name":"top_k","parameters":{"binary_data":true}},
                {"name":"probability"}])",
                               kJson);
  const WrittenAnswer some = Infer(named).write(SmallAnswer());
  EXPECT_EQ(some.type, "application/octet-stream");
  const std::string json =
      R"({"model_name":"small","model_version":"512","outputs":[)"
      R"({"name":"top_k","shape":[2,1],"datatype":"BYTES","parameters":{"binary_data_size":12}},)"
      R"({"name":"top_k_score","shape":[2,1],"datatype":"FP32",)"
      R"("parameters":{"binary_data_size":8}},)"
      R"({"name":"probability","shape":[2],"datatype":"FP32","data":[0.1,1]}]})";
  EXPECT_EQ(some.body, json + BytesTensor({"i\"1", "\xff"}) + NumbersTensor<float>({2, 1}));
  EXPECT_THAT(some.headers, ElementsAre(std::pair("Inference-Header-Content-Length",
                                                  std::to_string(json.size()))));
}

TEST(RequestForms, EachAskedOutputIsWrittenOnce) {
  const auto names = [](const std::string& outputs) {
    const Body body = InferBody(SmallInputs(), R"(,"outputs":[)" + outputs + "]", kJson);
    std::vector<std::string> written;
    const auto json = nlohmann::json::parse(Infer(body).write(SmallAnswer()).body);
    for (const auto& output : json["outputs"]) written.push_back(output["name"]);
    return written;
  };
  EXPECT_THAT(names(R"({"name":"top_k"})"), ElementsAre("top_k", "top_k_score"));
  EXPECT_THAT(names(R"({"name":"top_k_score"})"), ElementsAre("top_k_score"));
  EXPECT_THAT(names(R"({"name":"top_k_score"},{"name":"top_k"})"),
              ElementsAre("top_k_score", "top_k"));
}

TEST(RequestForms, AllOutputsMayBeBinaryButOne) {
  const Body body = InferBody(SmallInputs(),
                              R"(,"parameters":{"binary_data_output":true},"outputs":[
      {"name":"probability"},{"name":"user_vector","parameters":{"binary_data":false}}])",
                              kBinary);
  const WrittenAnswer answer = Infer(body).write(SmallAnswer());
  ASSERT_EQ(answer.headers.size(), 1u);
  const size_t size = std::stoul(answer.headers[0].second);
  const auto json = nlohmann::json::parse(answer.body.substr(0, size));
  EXPECT_EQ(json["outputs"][0]["parameters"]["binary_data_size"], 8);
  EXPECT_EQ(json["outputs"][1]["data"].size(), 4u);
  EXPECT_EQ(answer.body.substr(size), NumbersTensor<float>({0.1f, 1}));
}

TEST(RequestForms, PredictionsHaveNamesIfThereAreSeveral) {
  ScoreAnswer answer = SmallAnswer();
  answer.outputs.resize(2);
  const AskedScore rows = Predict(SmallModel(), SmallInstances());
  const AskedScore columns = Predict(SmallModel(), SmallColumns());
  EXPECT_EQ(rows.write(answer).body,
            R"({"predictions":[{"probability":0.1,"user_vector":[1.5,-0]},)"
            R"({"probability":1,"user_vector":[3e-20,16777216]}],"model_version":"512"})");
  EXPECT_EQ(columns.write(answer).body,
            R"({"outputs":{"probability":[0.1,1],"user_vector":[[1.5,-0],[3e-20,16777216]]},)"
            R"("model_version":"512"})");
  answer.outputs.resize(1);
  EXPECT_EQ(rows.write(answer).body, R"({"predictions":[0.1,1],"model_version":"512"})");
  EXPECT_EQ(columns.write(answer).body, R"({"outputs":[0.1,1],"model_version":"512"})");
}

TEST(RequestForms, NumbersReadBackToTheSameBits) {
  Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto number = std::bit_cast<float>(static_cast<uint32_t>(random.Next()));
    std::string json;
    AppendJsonNumber(number, &json);
    if (!std::isfinite(number)) {
      ASSERT_EQ(json, "null");
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(std::strtof(json.c_str(), nullptr)),
              std::bit_cast<uint32_t>(number))
        << json;
    ASSERT_TRUE(nlohmann::json::accept(json)) << json;
  }
}

TEST(RequestForms, LookupsHaveKeysOrValues) {
  const Result<AskedLookup> keys =
      ReadLookup(R"({"table":"deep","keys":[0,18446744073709551615,"18446744073709551614"]})");
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_EQ(keys->request.table, "deep");
  EXPECT_THAT(keys->request.keys, ElementsAre(0u, ~uint64_t{0}, ~uint64_t{1}));
  EXPECT_EQ(keys->request.values, nullptr);
  EXPECT_EQ(keys->write({7, 2, {1, 2, 0.5f, -1, 0, 0}, {true, true, false}}).body,
            R"({"model_version":"7","dim":2,"rows":[[1,2],[0.5,-1],[0,0]],)"
            R"("has_row":[true,true,false]})");
  const Result<AskedLookup> values =
      ReadLookup(R"({"table":"deep","feature":"color","values":["red",5,null]})");
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ(values->request.feature, "color");
  EXPECT_EQ(CellsOf(*values->request.values), (Cells{{"color", {"red", "5", ""}}}));
}

TEST(RequestForms, UseTakesAStepOrTheNewest) {
  EXPECT_EQ(*ReadUse(R"({"version": 512})"), 512);
  EXPECT_EQ(*ReadUse(R"({"version": "512"})"), 512);
  EXPECT_EQ(*ReadUse(R"({"version": "newest"})"), kNoClock);
  EXPECT_EQ(ErrorBody("a \"b\"\n\xff"), "{\"error\":\"a \\\"b\\\"\\n\xef\xbf\xbd\"}");
}

}  // namespace
}  // namespace hdps
