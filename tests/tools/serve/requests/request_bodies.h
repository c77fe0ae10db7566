// Bodies of requests for the same rows in each form, and the cells of a table as texts.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/serve/requests/score_request.h"
#include "worker/data/columnar/column_sources.h"

namespace hdps {

// A model whose inputs have each kind of cells.
inline ModelNote SmallModel() {
  ModelNote model;
  model.name = "small";
  model.inputs = {
      {"color", "BYTES"}, {"id", "BYTES"}, {"tags", "BYTES"}, {"price", "FP32"}, {"user", "BYTES"}};
  model.outputs = {{"probability", "FP32"},
                   {"logit", "FP32"},
                   {"user_vector", "FP32", 2},
                   {"top_k", "BYTES"},
                   {"top_k_score", "FP32"}};
  return model;
}

// Texts as a tensor has them: each behind its length.
inline std::string BytesTensor(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    const auto size = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(text);
  }
  return bytes;
}
template <typename Number>
std::string NumbersTensor(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

// One input in both forms of a tensor.
struct InputText {
  std::string name, datatype, shape, data;  // JSON.
  std::string binary;                       // The same values as bytes.
};

// A body, and the length of its JSON if there are bytes behind it.
struct Body {
  std::string bytes;
  std::optional<size_t> json_bytes = {};
};

// Returns an infer request; inputs of which `is_binary` holds go behind the JSON.
template <typename IsBinary>
Body InferBody(const std::vector<InputText>& inputs, const std::string& rest, IsBinary is_binary) {
  std::string json = R"({"inputs":[)", behind;
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputText& input = inputs[i];
    const std::string size = std::to_string(input.binary.size());
    const bool binary = is_binary(i);
    json += i > 0 ? "," : "";
    json += R"({"name":")" + input.name + R"(","shape":)" + input.shape + R"(,"datatype":")" +
            input.datatype + R"(",)" +
            (binary ? R"("parameters":{"binary_data_size":)" + size + "}}"
                    : R"("data":)" + input.data + "}");
    if (binary) behind += input.binary;
    any |= binary;
  }
  json += "]" + rest + "}";
  if (!any) return {json};
  return {json + behind, json.size()};
}

// Four rows of SmallModel(), with missing cells, lists and an input that all rows share.
inline std::vector<InputText> SmallInputs() {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  return {
      {"color", "BYTES", "[4]", R"(["red","",null,"bl\u00fc \"x\""])",
       BytesTensor({"red", "", "", "bl\xc3\xbc \"x\""})},
      {"id", "INT64", "[4,1]", "[[-7],[0],[9223372036854775807],[12]]",
       NumbersTensor<int64_t>({-7, 0, std::numeric_limits<int64_t>::max(), 12})},
      {"tags", "BYTES", "[4,2]", R"([["a","b"],["c",""],[null,""],["a","a"]])",
       BytesTensor({"a", "b", "c", "", "", "", "a", "a"})},
      {"price", "FP32", "[4]", "[0.5,-2,null,1e10]", NumbersTensor<float>({0.5f, -2, nan, 1e10f})},
      {"user", "BYTES", "[1]", R"(["u1"])", BytesTensor({"u1"})}};
}

// The same rows by :predict, as rows and as columns.
inline std::string SmallInstances() {
  return R"({"instances":[
    {"color":"red","id":-7,"tags":["a","b"],"price":0.5},
    {"color":"","id":0,"tags":["c",""],"price":-2},
    {"id":9223372036854775807,"color":null,"price":null,"tags":[null,""]},
    {"color":"bl\u00fc \"x\"","id":"12","tags":["a","a"],"price":1e10}],
    "context":{"user":"u1"},"signature_name":"serving_default"})";
}
inline std::string SmallColumns() {
  return R"({"inputs":{"color":["red","",null,"bl\u00fc \"x\""],
    "id":[-7,0,9223372036854775807,12],"tags":[["a","b"],["c",""],[null,""],["a","a"]],
    "price":[0.5,-2,null,1e10],"user":["u1"]}})";
}

// Returns the cells of each column as texts, with '|' between the values of a list.
inline std::map<std::string, std::vector<std::string>> CellsOf(const ColumnTable& table) {
  std::map<std::string, std::vector<std::string>> cells;
  for (size_t c = 0; c < table.columns().size(); ++c) {
    const ColumnTable::Column& column = table.columns()[c];
    const ColumnTexts texts(column.type, "|");
    for (uint64_t row = 0; row < table.num_rows(); ++row) {
      const ColumnTable::Place place = table.PlaceOf(row);
      std::string& text = cells[column.name].emplace_back();
      texts.Append(table.chunk(place.batch, c), place.index, &text);
    }
  }
  return cells;
}

}  // namespace hdps
