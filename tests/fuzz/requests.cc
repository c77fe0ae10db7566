// Fuzzes requests of each form: the cells of an accepted one can be read, and its answer is JSON.
#include <glog/logging.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/protocol/manifest.h"
#include "tests/fuzz/target.h"
#include "tests/tools/serve/requests/request_bodies.h"
#include "tools/serve/requests/request_forms.h"

namespace hdps::fuzz {
namespace {

Verdict RefusedRequest(const Status& status) {
  return Refused(status, status.code() == Code::kResourceExhausted ? Code::kResourceExhausted
                                                                   : Code::kInvalidArgument);
}

Verdict CheckScore(const Result<AskedScore>& asked) {
  if (!asked.ok()) return RefusedRequest(asked.status());
  const uint64_t rows = asked->request.rows->num_rows();
  CHECK_GT(rows, 0u);
  CHECK_LE(rows, kRequestRowsMax);
  for (const auto& [name, cells] : CellsOf(*asked->request.rows)) CHECK_EQ(cells.size(), rows);
  ScoreAnswer answer;
  answer.rows = rows;
  answer.outputs.push_back({"probability", 1, std::vector<float>(rows, 0.5f), {}});
  answer.outputs.push_back({"top_k", 1, {}, std::vector<std::string>(rows, "\xff\"")});
  const WrittenAnswer written = asked->write(answer);
  const size_t json_bytes =
      written.headers.empty() ? written.body.size() : std::stoul(written.headers[0].second);
  CHECK(nlohmann::json::accept(written.body.substr(0, json_bytes))) << written.body;
  return Verdict::kAccepted;
}

// The first two bytes are the length of the JSON; 0: there is no such header.
Verdict RunInfer(std::string_view bytes) {
  Input input(bytes);
  const size_t json_bytes = input.Take<uint16_t>();
  const std::optional<size_t> header = json_bytes > 0 ? std::optional(json_bytes) : std::nullopt;
  return CheckScore(ReadInfer(SmallModel(), std::string(input.TakeRest()), header));
}
std::vector<std::string> InferSeeds() {
  const std::string rest = R"(,"id":"7","parameters":{"binary_data_output":true,"k":2},"outputs":[
      {"name":"top_k"},{"name":"probability","parameters":{"binary_data":false}}])";
  std::vector<std::string> seeds;
  const auto add = [&](const Body& body) {
    seeds.push_back(BytesOf(static_cast<uint16_t>(body.json_bytes.value_or(0))) + body.bytes);
  };
  for (const InputText& input : SmallInputs()) {
    add(InferBody(std::vector{input}, "", [](size_t) { return false; }));
    add(InferBody(std::vector{input}, "", [](size_t) { return true; }));
  }
  for (const size_t first_binary : {0, 2, 9}) {
    add(InferBody(SmallInputs(), rest, [&](size_t i) { return i >= first_binary; }));
  }
  return seeds;
}

Verdict RunPredict(std::string_view bytes) {
  return CheckScore(ReadPredict(SmallModel(), std::string(bytes)));
}
std::vector<std::string> PredictSeeds() { return {SmallInstances(), SmallColumns()}; }

// Bodies of :lookup and of :use.
Verdict RunLookup(std::string_view bytes) {
  const Result<Clock> use = ReadUse(std::string(bytes));
  if (use.ok()) {
    CHECK_GE(*use, kNoClock);
    return Verdict::kAccepted;
  }
  RefusedRequest(use.status());
  const Result<AskedLookup> asked = ReadLookup(std::string(bytes));
  if (!asked.ok()) return RefusedRequest(asked.status());
  const LookupRequest& request = asked->request;
  CHECK_EQ(request.keys.empty(), request.values != nullptr);
  if (request.values != nullptr) CellsOf(*request.values);
  const WrittenAnswer written = asked->write({1, 2, {0.5f, -1}, {true}});
  CHECK(nlohmann::json::accept(written.body)) << written.body;
  return Verdict::kAccepted;
}
std::vector<std::string> LookupSeeds() {
  return {R"({"table":"t","keys":[1,"18446744073709551615"]})",
          R"({"table":"t","feature":"color","values":["a",5,null]})", R"({"version":512})",
          R"({"version":"newest"})"};
}

const AddTarget infer({"infer", RunInfer, InferSeeds});
const AddTarget predict({"predict", RunPredict, PredictSeeds});
const AddTarget lookup({"lookup", RunLookup, LookupSeeds});

}  // namespace
}  // namespace hdps::fuzz
