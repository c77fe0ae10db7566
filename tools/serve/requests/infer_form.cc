// Reads requests of the Open Inference Protocol.
#include <algorithm>
#include <utility>

#include "common/base/outside_text.h"
#include "tools/serve/requests/answer_columns.h"
#include "tools/serve/requests/infer_answer.h"
#include "tools/serve/requests/infer_input.h"
#include "tools/serve/requests/json_body.h"
#include "tools/serve/requests/json_text.h"
#include "tools/serve/requests/request_forms.h"
#include "tools/serve/requests/request_table.h"

namespace hdps {
namespace {

constexpr uint64_t kTopKMax = 1000;
constexpr uint64_t kTopKItemsMax = 1 << 20;  // Of all rows of a request together.
constexpr Place kRequest = {"the request"}, kParameterK = {"the parameter k"};

Status CheckOutput(const ModelNote& model, std::string_view name, const InferAnswer& answer) {
  const Place place = {.what = "output", .name = name};
  if (std::ranges::find(answer.names, name) != answer.names.end()) {
    return Wrong(place, " comes twice: expected it once");
  }
  if (std::ranges::find(model.outputs, name, &TensorNote::name) != model.outputs.end()) return {};
  std::string all;
  for (const TensorNote& note : model.outputs) all += (all.empty() ? "" : ", ") + note.name;
  return Wrong(place, " is none of the model: expected some of " + EscapeUntrusted(all));
}

// Reads a parameter that is true or false; `otherwise` if it is not there.
Result<bool> ReadFlag(const std::optional<JsonElement>& parameters, std::string_view name,
                      const Place& place, bool otherwise) {
  HDPS_ASSIGN_OR_RETURN(const std::optional<JsonElement> flag,
                        JsonParameter(parameters, name, place));
  if (!flag) return otherwise;
  return JsonBool(*flag, place.Part(name));
}

Status ReadOutputs(const ModelNote& model, JsonElement outputs, InferAnswer* answer,
                   ScoreRequest* request) {
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::array list, JsonList(outputs, {"outputs"}));
  int64_t index = 0;
  for (const JsonElement output : list) {
    const Place place = {.what = "outputs", .index = index++};
    HDPS_ASSIGN_OR_RETURN(const auto members, JsonMembers(output, place, {"name", "parameters"}));
    if (!members[0]) return Wrong(place, " has no name: expected the name of an output");
    HDPS_ASSIGN_OR_RETURN(const std::string_view name,
                          JsonText(*members[0], place.Part("the name")));
    HDPS_RETURN_IF_ERROR(CheckOutput(model, name, *answer));
    HDPS_ASSIGN_OR_RETURN(const bool binary,
                          ReadFlag(members[1], "binary_data", place, answer->all_binary));
    answer->names.emplace_back(name);
    answer->binary.push_back(binary);
    const ScoreOutput wanted = OutputOfName(name);
    if (std::ranges::find(request->outputs, wanted) == request->outputs.end()) {
      request->outputs.push_back(wanted);
    }
  }
  return {};
}

Status ReadTopK(const std::optional<JsonElement>& parameters, ScoreRequest* request) {
  HDPS_ASSIGN_OR_RETURN(const std::optional<JsonElement> k,
                        JsonParameter(parameters, "k", kRequest));
  const bool asked =
      std::ranges::find(request->outputs, ScoreOutput::kTopK) != request->outputs.end();
  if (k && !asked) return Wrong(kParameterK, " counts for the output top_k alone: ask for it");
  if (!asked) return {};
  uint64_t items = kTopKDefault;
  if (k) {
    HDPS_ASSIGN_OR_RETURN(items, JsonWhole(*k, kParameterK));
  }
  if (items == 0 || items > kTopKMax) {
    return Wrong(kParameterK,
                 " is " + std::to_string(items) + ": expected 1 to " + std::to_string(kTopKMax));
  }
  request->top_k = static_cast<uint32_t>(items);
  const uint64_t rows = request->rows->num_rows();
  if (rows <= kTopKItemsMax / items) return {};
  return {Code::kResourceExhausted, std::to_string(rows) + " rows with " + std::to_string(items) +
                                        " items each: expected at most " +
                                        std::to_string(kTopKItemsMax / items) + " rows"};
}

Status ReadInputs(const ModelNote& model, JsonElement inputs,
                  std::optional<std::string_view> binary, RequestTable* table) {
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::array list, JsonList(inputs, {"inputs"}));
  size_t index = 0;
  for (const JsonElement input : list) {
    HDPS_RETURN_IF_ERROR(ReadInferInput(model, input, index++, &binary, table));
  }
  if (!binary || binary->empty()) return {};
  return Wrong(kRequest, ": " + std::to_string(binary->size()) +
                             " bytes are left behind the last input: expected that the sizes of "
                             "binary_data_size add up to all bytes behind the JSON");
}

}  // namespace

Result<AskedScore> ReadInfer(const ModelNote& model, std::string body,
                             std::optional<size_t> json_bytes) {
  HDPS_RETURN_IF_ERROR(CheckBytes(body.size()));
  const size_t size = json_bytes.value_or(body.size());
  if (size > body.size()) {
    return Wrong({"Inference-Header-Content-Length"},
                 " is " + std::to_string(size) + ": expected at most the " +
                     std::to_string(body.size()) + " bytes of the body");
  }
  RequestTable table(std::move(body));
  HDPS_ASSIGN_OR_RETURN(const JsonBody json, JsonBody::Parse(&table.body(), size));
  HDPS_ASSIGN_OR_RETURN(const auto members, JsonMembers(json.root(), kRequest,
                                                        {"inputs", "outputs", "id", "parameters"}));
  std::optional<std::string_view> binary;
  if (json_bytes) binary = std::string_view(table.body()).substr(size);
  if (!members[0]) return Wrong(kRequest, " has no inputs: expected the list \"inputs\"");
  HDPS_RETURN_IF_ERROR(ReadInputs(model, *members[0], binary, &table));

  ScoreRequest request;
  InferAnswer answer;
  answer.model = model.name;
  if (members[2]) {
    HDPS_ASSIGN_OR_RETURN(const std::string_view id, JsonText(*members[2], {"the id"}));
    HDPS_RETURN_IF_ERROR(CheckId({"the id"}, id));
    answer.id = JsonQuoted(id);
    request.id = id;
  }
  HDPS_ASSIGN_OR_RETURN(answer.all_binary,
                        ReadFlag(members[3], "binary_data_output", kRequest, false));
  if (members[1]) HDPS_RETURN_IF_ERROR(ReadOutputs(model, *members[1], &answer, &request));
  HDPS_ASSIGN_OR_RETURN(request.rows, table.Finish());
  HDPS_RETURN_IF_ERROR(ReadTopK(members[3], &request));
  return AskedScore{std::move(request), [answer = std::move(answer)](const ScoreAnswer& scored) {
                      return answer.Write(scored);
                    }};
}

}  // namespace hdps
