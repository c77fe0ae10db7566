// Whoever wants to know of each answer: figures, drift, the log of requests.
#pragma once

#include <cstdint>

#include "tools/serve/requests/score_request.h"

namespace hdps {

enum class ServingProtocol : uint8_t { kInferJson, kInferBinary, kPredict, kLookup, kMessage };

// One request that was answered. The pointers are null where it has none, and live as long as the
// call.
struct Answered {
  ServingProtocol protocol = ServingProtocol::kInferJson;
  int code = 200;       // As over HTTP.
  int64_t time_ns = 0;  // From its last byte to its answer.
  const ScoreRequest* request = nullptr;
  const ScoreAnswer* answer = nullptr;
};

// Safe to call from any thread; a call never waits.
class AnswerWatch {
 public:
  virtual ~AnswerWatch() = default;
  virtual void Saw(const Answered& answered) = 0;
};

class ServedModel;

// A model that is asked, by whatever protocol, and who is told of its answers; null: nobody.
struct WatchedModel {
  ServedModel* model = nullptr;
  AnswerWatch* watch = nullptr;
};

}  // namespace hdps
