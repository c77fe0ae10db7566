// Tests the error of each mistake in a request: its place, its value and what would be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/serve/requests/request_bodies.h"
#include "tools/serve/requests/request_forms.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

struct Mistake {
  std::string body;
  std::vector<std::string> told;
  std::optional<size_t> json_bytes = {};
  Code code = Code::kInvalidArgument;
};

template <typename Read>
void Check(const std::vector<Mistake>& mistakes, const Read& read) {
  for (const Mistake& mistake : mistakes) {
    const Status status = read(mistake);
    const std::string shown = mistake.body.substr(0, 200);
    EXPECT_EQ(status.code(), mistake.code) << status.message() << " of " << shown;
    for (const std::string& told : mistake.told) {
      EXPECT_THAT(status.message(), HasSubstr(told)) << shown;
    }
  }
}

// An infer request of one input with these members, and more members of the request.
std::string One(const std::string& members, const std::string& rest = "") {
  return R"({"inputs":[{)" + members + "}]" + rest + "}";
}
std::string Named(const std::string& members) { return One(R"("name":"color",)" + members); }
std::string Data(const std::string& datatype, const std::string& shape, const std::string& data) {
  return Named(R"("datatype":")" + datatype + R"(","shape":)" + shape + R"(,"data":)" + data);
}
std::string WithOutputs(const std::string& rest) {
  return One(R"("name":"color","datatype":"BYTES","shape":[1],"data":["x"])", rest);
}

TEST(RequestMistakes, InferMembersAndNames) {
  const auto read = [](const Mistake& mistake) {
    return ReadInfer(SmallModel(), mistake.body, mistake.json_bytes).status();
  };
  Check(
      {{"", {"the request is no JSON: "}},
       {"{\"inputs\": [NaN]}", {"no JSON: line 1, column 13", "invalid literal"}},
       {"{\"inputs\": []} x", {"no JSON: line 1, column 16"}},
       {"{\"inputs\": [\"\xff\"]}", {"no JSON: ", "UTF-8"}},
       {"{\"inputs\": [100000000000000000000]}", {"no JSON: ", "number"}},
       {"[1]", {"the request is a list: expected an object"}},
       {R"({"outputs":[]})", {"no inputs", "\"inputs\""}},
       {R"({"inputs":[]})", {"no inputs: expected at least one"}},
       {R"({"inputs":5})", {"inputs is 5: expected a list"}},
       {R"({"inputs":[],"input":[]})", {"member 'input'", "did you mean \"inputs\"?"}},
       {R"({"inputs":[],"inputs":[]})", {"member 'inputs' twice: expected it once"}},
       {R"({"inputs":["x"]})", {"inputs[0] is \"x\": expected an object"}},
       {One(R"("shape":[1])"), {"inputs[0] has no name"}},
       {One(R"("name":7)"), {"inputs[0]: the name is 7: expected a text"}},
       {One(R"("name":"colour")"), {"input 'colour'", "did you mean \"color\"?"}},
       {One(R"("name":"y")"), {"input 'y'", "expected some of color, id, tags, price, user"}},
       {Named(R"("data":[])"), {"input 'color' has no shape"}},
       {Named(R"("shape":[1],"data":[])"), {"input 'color' has no datatype"}},
       {Named(R"("shape":[1],"datatype":"BYTES","date":[])"), {"did you mean \"data\"?"}},
       {Named(R"("shape":[1],"datatype":"BYTES")"), {"neither data nor", "binary_data_size"}},
       {Data("BYTES", "[1]", R"(["x"],"parameters":{"binary_data_size":5})"),
        {"has both data and"}},
       {Data("BYTES", "[1]", R"(["x"],"parameters":5)"), {"parameters is 5: expected an object"}},
       {Data("FP16", "[1]", "[1]"), {"datatype 'FP16': expected one of BOOL, INT8", "BYTES"}},
       {R"({"inputs":[{"name":"id","shape":[1],"datatype":"INT8","data":[1]},
             {"name":"id","shape":[1],"datatype":"INT8","data":[1]}]})",
        {"input 'id' comes twice"}},
       {WithOutputs(R"(,"id":7)"), {"the id is 7: expected a text"}},
       {WithOutputs(R"(,"id":")" + std::string(kRequestIdBytesMax + 1, 'x') + "\""),
        {"the id has 513 bytes: expected at most 512"}},
       {WithOutputs(R"(,"outputs":[{"name":"prob"}])"),
        {"output 'prob'", "expected some of probability, logit, user_vector, top_k, top_k_score"}},
       {WithOutputs(R"(,"outputs":[{"name":"logit"},{"name":"logit"}])"), {"'logit' comes twice"}},
       {WithOutputs(R"(,"outputs":[{}])"), {"outputs[0] has no name"}},
       {WithOutputs(R"(,"outputs":[{"name":"logit","parameters":{"binary_data":1}}])"),
        {"outputs[0]: binary_data is 1: expected true or false"}},
       {WithOutputs(R"(,"parameters":{"binary_data_output":"yes"})"),
        {"binary_data_output is \"yes\": expected true or false"}},
       {WithOutputs(R"(,"parameters":{"k":5})"), {"the parameter k", "top_k"}},
       {WithOutputs(R"(,"parameters":{"k":0},"outputs":[{"name":"top_k"}])"),
        {"the parameter k is 0: expected 1 to 1000"}},
       {WithOutputs(R"(,"parameters":{"k":-1},"outputs":[{"name":"top_k"}])"),
        {"the parameter k is -1: expected a whole number from 0 on"}}},
      read);
}

TEST(RequestMistakes, InferShapesAndValues) {
  const auto read = [](const Mistake& mistake) {
    return ReadInfer(SmallModel(), mistake.body, mistake.json_bytes).status();
  };
  Check(
      {{Data("BYTES", "5", "[]"), {"input 'color': the shape is 5: expected a list"}},
       {Data("BYTES", "[]", "[]"), {"the shape has 0 numbers: expected [rows]"}},
       {Data("BYTES", "[1,1,1]", "[]"), {"the shape has 3 numbers"}},
       {Data("BYTES", "[-1]", "[]"), {"a size of the shape is -1: expected a whole number"}},
       {Data("BYTES", "[1.5]", "[]"), {"a size of the shape is 1.5"}},
       {Data("BYTES", "[0]", "[]"), {"input 'color' has no rows: expected at least one"}},
       {Data("BYTES", "[1,0]", "[]"), {"the shape has 0 values a row"}},
       {Data("BYTES", "[2]", R"(["x"])"),
        {"input 'color' has 1 values: expected 2 by the shape [2]"}},
       {Data("BYTES", "[2,2]", R"([["x","y"]])"), {"has 1 values: expected 2 by the shape [2, 2]"}},
       {Data("BYTES", "[2,2]", R"([["x","y"],["z"]])"),
        {"input 'color', row 1 has 1 values: expected 2"}},
       {Data("BYTES", "[2,1]", R"([["x"],"z"])"),
        {"input 'color', row 1 is \"z\": expected a list"}},
       {Data("BYTES", "[2]", R"([["x"],["z"]])"),
        {"input 'color', row 0 is a list: expected a text"}},
       {Data("BYTES", "[1]", R"("x")"), {"input 'color': the data is \"x\": expected a list"}},
       {Data("BYTES", "[2]", R"(["x",0.5])"),
        {"input 'color', row 1 is 0.5: expected a text or a whole number, or null"}},
       {Data("BYTES", "[1]", "[true]"), {"row 0 is true: expected a text"}},
       {Data("FP32", "[2,2]", R"([1,2,3,"x"])"), {"row 1 is \"x\": expected a number, or null"}},
       {Data("INT8", "[2]", "[-128,128]"),
        {"row 1 is 128: expected a whole number from -128 to 127"}},
       {Data("INT64", "[1]", "[9223372036854775808]"), {"to 9223372036854775807"}},
       {Data("UINT16", "[1]", "[-1]"), {"row 0 is -1: expected a whole number from 0 to 65535"}},
       {Data("UINT16", "[1]", "[1.0]"), {"row 0 is 1.0: expected a whole number"}},
       {Data("BOOL", "[1]", "[1]"), {"row 0 is 1: expected true or false"}},
       {R"({"inputs":[{"name":"id","shape":[3],"datatype":"INT8","data":[1,2,3]},
             {"name":"price","shape":[2],"datatype":"FP32","data":[1,2]}]})",
        {"input 'price' has 2 rows, but input 'id' has 3: expected as many, or 1"}},
       {Data("BYTES", "[8193]", "[]"),
        {"input 'color': 8193 rows: expected at most 8192"},
        {},
        Code::kResourceExhausted},
       {Data("BYTES", "[9223372036854775808]", "[]"),
        {"expected at most 8192"},
        {},
        Code::kResourceExhausted},
       {Data("BYTES", "[8192,9223372036854775808]", "[]"), {"values a row: expected 1 to"}},
       {Data("BYTES", "[8192,16777216]", "[]"), {"has 0 values: expected 137438953472"}}},
      read);
}

TEST(RequestMistakes, BinaryTensors) {
  const auto read = [](const Mistake& mistake) {
    return ReadInfer(SmallModel(), mistake.body, mistake.json_bytes).status();
  };
  const auto binary = [](const std::string& datatype, const std::string& shape,
                         const std::string& size, const std::string& bytes,
                         std::vector<std::string> told) {
    const std::string json = Named(R"("datatype":")" + datatype + R"(","shape":)" + shape +
                                   R"(,"parameters":{"binary_data_size":)" + size + "}");
    return Mistake{json + bytes, std::move(told), json.size()};
  };
  const std::string four(4, '\0');
  Check(
      {binary("FP32", "[2]", "8", four, {"binary_data_size is 8: expected at most the 4 bytes"}),
       binary("FP32", "[2]", "4", four,
              {"binary_data_size is 4: expected 8 by the shape [2] of FP32"}),
       binary("FP32", "[1]", "4", four + "x", {"1 bytes are left behind the last input"}),
       binary("FP32", "[1]", "-4", four, {"binary_data_size is -4: expected a whole number"}),
       binary("FP32", "[1]", "18446744073709551615", four, {"expected at most the 4 bytes"}),
       binary("FP64", "[8192,16777216]", "4", four, {"expected 1099511627776 by the shape"}),
       binary("BOOL", "[2]", "2", "\1\2", {"row 1: a byte of BOOL is 2: expected 0 or 1"}),
       binary("BYTES", "[1]", "3", four.substr(1), {"row 0: its data end before the text"}),
       binary("BYTES", "[2]", "4", four, {"row 1: its data end before the text: expected 2 texts"}),
       binary("BYTES", "[1]", "5", "\5" + four.substr(1) + "x",
              {"row 0: the text has 5 bytes: expected at most the 1"}),
       binary("BYTES", "[1]", "4", "\xff\xff\xff\xff", {"the text has 4294967295 bytes"}),
       binary("BYTES", "[1]", "6", four + "xy",
              {"2 bytes behind the last text: expected 1 texts"})},
      read);
  Mistake lone =
      binary("FP32", "[1]", "4", "", {"expected the header Inference-Header-Content-Length"});
  lone.json_bytes.reset();
  Mistake beyond = lone;
  beyond.json_bytes = lone.body.size() + 1;
  beyond.told = {"Inference-Header-Content-Length is", "expected at most the"};
  Check({lone, beyond, {WithOutputs("") + "x", {"1 bytes are left"}, WithOutputs("").size()}},
        read);
}

TEST(RequestMistakes, Predict) {
  const auto read = [](const Mistake& mistake) {
    return ReadPredict(SmallModel(), mistake.body).status();
  };
  std::string many = R"({"instances":[0)";
  for (uint64_t i = 0; i < kRequestRowsMax; ++i) many += ",0";
  Check(
      {{"{}", {"neither \"instances\" and \"inputs\": expected one of them"}},
       {R"({"instances":[],"inputs":{}})", {"both \"instances\" and \"inputs\""}},
       {R"({"instance":[]})", {"did you mean \"instances\"?"}},
       {R"({"instances":[]})", {"instances is an empty list"}},
       {R"({"instances":{}})", {"instances is an object: expected a list"}},
       {R"({"instances":["x"]})", {"instances has values without names", "5 inputs by name"}},
       {R"({"inputs":["x"]})", {"inputs has values without names"}},
       {R"({"instances":[{"color":"x"},7]})", {"instances[1] is 7: expected an object"}},
       {R"({"instances":[{}]})", {"instances[0] is an empty object"}},
       {R"({"instances":[{"colour":"x"}]})", {"input 'colour'", "did you mean \"color\"?"}},
       {R"({"instances":[{"color":"x","color":"y"}]})",
        {"instances[0] has the input 'color' twice"}},
       {R"({"instances":[{"color":"x","id":1},{"id":1}]})",
        {"instances[1] lacks the input 'color', which instances[0] has"}},
       {R"({"instances":[{"id":1},{"id":1,"color":"x"}]})",
        {"instances[1] has the input 'color', which instances[0] lacks"}},
       {R"({"instances":[{"id":1},{"id":1,"colour":"x"}]})", {"did you mean \"color\"?"}},
       {R"({"instances":[{"price":1},{"price":"x"}]})",
        {"input 'price', row 1 is \"x\": expected a number, or null"}},
       {R"({"instances":[{"id":1},{"id":1.5}]})",
        {"row 1 is 1.5: expected a text or a whole number"}},
       {R"({"instances":[{"id":{}}]})", {"row 0 is an object: expected a text"}},
       {R"({"instances":[{"tags":["x"]},{"tags":"x"}]})", {"row 1 is \"x\": expected a list"}},
       {R"({"instances":[{"tags":"x"},{"tags":["x"]}]})", {"row 1 is a list: expected one value"}},
       {R"({"instances":[{"tags":["x",["y"]]}]})", {"row 0 is a list: expected a text"}},
       {R"({"instances":[{"id":1}],"context":{"id":2}})", {"input 'id' comes twice"}},
       {R"({"instances":[{"id":1}],"context":[2]})", {"context is a list: expected an object"}},
       {R"({"instances":[{"id":1}],"signature_name":"x"})", {"signature_name is 'x': expected"}},
       {R"({"inputs":{"id":[1,2,3],"price":[1,2]}})",
        {"input 'price' has 2 rows, but input 'id' has 3"}},
       {R"({"inputs":{"id":5}})", {"input 'id' is 5: expected a list"}},
       {R"({"inputs":{}})", {"no inputs: expected at least one"}},
       {R"({"inputs":{"id":[]}})", {"input 'id' has no rows"}},
       {many + "]}",
        {"instances: 8193 rows: expected at most 8192"},
        {},
        Code::kResourceExhausted}},
      read);
}

TEST(RequestMistakes, SharedListsHaveABound) {
  std::string list = R"(["x")", rows = "[0";
  for (int i = 1; i < 1000; ++i) list += R"(,"x")";
  for (uint64_t i = 1; i < kRequestRowsMax; ++i) rows += ",0";
  const std::string body = R"({"inputs":{"id":)" + rows + R"(]},"context":{"tags":)" + list + "]}}";
  const Status status = ReadPredict(SmallModel(), body).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("input 'tags' has 1000 values for each of 8192 rows: "
                                          "expected at most 512"));
}

TEST(RequestMistakes, TopKHasABoundOverAllRows) {
  std::string rows = "[0";
  for (int i = 1; i < 1049; ++i) rows += ",0";
  const std::string body =
      One(R"("name":"id","shape":[1049],"datatype":"INT8","data":)" + rows + "]",
          R"(,"outputs":[{"name":"top_k"}],"parameters":{"k":1000})");
  const Status status = ReadInfer(SmallModel(), body, {}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("expected at most 1048 rows"));
}

TEST(RequestMistakes, LookupAndUse) {
  const auto lookup = [](const Mistake& mistake) { return ReadLookup(mistake.body).status(); };
  const std::string either = "expected either \"keys\", or \"feature\" with \"values\"";
  Check({{R"({"keys":[1]})", {"no table"}},
         {R"({"table":5,"keys":[1]})", {"table is 5: expected a text"}},
         {R"({"table":"t"})", {either}},
         {R"({"table":"t","keys":[1],"values":[1]})", {either}},
         {R"({"table":"t","values":[1]})", {either}},
         {R"({"table":"t","keys":[1],"feature":"f"})", {either}},
         {R"({"table":"t","keys":[]})", {"keys is an empty list"}},
         {R"({"table":"t","keys":[1,-1]})", {"keys[1] is -1: expected a whole number from 0 to"}},
         {R"({"table":"t","keys":["18446744073709551616"]})",
          {"keys[0] is \"18446744073709551616\""}},
         {R"({"table":"t","keys":["1x"]})", {"keys[0] is \"1x\""}},
         {R"({"table":"t","feature":"","values":[1]})", {"feature is \"\""}},
         {R"({"table":"t","feature":"f","values":[1,0.5]})", {"input 'f', row 1 is 0.5"}},
         {R"({"table":"t","feature":"f","values":[]})", {"input 'f' has no rows"}}},
        lookup);
  const auto use = [](const Mistake& mistake) { return ReadUse(mistake.body).status(); };
  const std::string wanted = R"(expected {"version": STEP} or {"version": "newest"})";
  Check({{"{}", {"no version", wanted}},
         {R"({"version":-1})", {"version is -1: ", wanted}},
         {R"({"version":"best"})", {"version is \"best\": ", wanted}},
         {R"({"version":9223372036854775808})", {wanted}},
         {R"({"versions":1})", {"did you mean \"version\"?"}}},
        use);
}

TEST(RequestMistakes, ALargeBodyIsNotRead) {
  const std::string body(kRequestBytesMax + 1, ' ');
  EXPECT_EQ(ReadInfer(SmallModel(), body, {}).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(ReadPredict(SmallModel(), body).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(ReadLookup(body).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(ReadUse(body).status().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace hdps
