// Reads requests of each form, and writes their answers: bytes in, bytes out, and nothing of HTTP.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "tools/serve/requests/score_request.h"

namespace hdps {

struct WrittenAnswer {
  std::string type;  // Content-Type.
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// A request that was read, and how its answer is written. The tables in it keep its body.
template <typename Request, typename Answer>
struct Asked {
  Request request;
  std::function<WrittenAnswer(const Answer&)> write;
};
using AskedScore = Asked<ScoreRequest, ScoreAnswer>;
using AskedLookup = Asked<LookupRequest, LookupAnswer>;

// All of these: kInvalidArgument names the input, the row from 0 on, the value and what would be
// right; kResourceExhausted for more than kRequestRowsMax rows.

// An infer request of the Open Inference Protocol (KServe V2). `json_bytes` is the value of
// Inference-Header-Content-Length: the length of the JSON, behind which binary tensors lie.
Result<AskedScore> ReadInfer(const ModelNote& model, std::string body,
                             std::optional<size_t> json_bytes);
// TensorFlow Serving's :predict, with "instances" or "inputs", and "context" for inputs that all
// rows share.
Result<AskedScore> ReadPredict(const ModelNote& model, std::string body);
// {"table": NAME, "keys": [...]} or {"table": NAME, "feature": NAME, "values": [...]}.
Result<AskedLookup> ReadLookup(std::string body);
// {"version": STEP} or {"version": "newest"}, which is kNoClock.
Result<Clock> ReadUse(const std::string& body);

// {"error": "..."}
std::string ErrorBody(const std::string& message);

}  // namespace hdps
