// A served model whose answers a test writes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol/manifest.h"
#include "tools/serve/served_model.h"

namespace hdps {

class ScriptedModel : public ServedModel {
 public:
  explicit ScriptedModel(std::vector<std::string> features) : features_(std::move(features)) {
    note_.name = "ctr";
  }

  bool ready() const override { return is_ready; }
  Clock step() const override { return at; }
  std::vector<Clock> steps() const override { return {at}; }
  const ModelNote& note() const override { return note_; }
  const std::vector<std::string>& features() const override { return features_; }
  Result<ScoreAnswer> Score(const ScoreRequest& request, Clock /*step*/) override {
    ++scored;
    return score(request);
  }
  Result<LookupAnswer> Lookup(const LookupRequest& /*request*/, Clock /*step*/) override {
    return Status(Code::kInvalidArgument, "no table");
  }
  Status Use(Clock /*step*/) override { return {}; }

  bool is_ready = true;
  Clock at = 7;
  int scored = 0;  // Calls of Score().
  std::function<Result<ScoreAnswer>(const ScoreRequest&)> score;

 private:
  ModelNote note_;
  const std::vector<std::string> features_;
};

// An answer with these predictions, and these keys and unknown keys of each feature.
inline ScoreAnswer AnswerOf(std::vector<float> predictions, std::vector<uint64_t> keys = {},
                            std::vector<uint64_t> unknown_keys = {}) {
  ScoreAnswer answer;
  answer.step = 7;
  answer.rows = predictions.size();
  answer.outputs.push_back({"probability", 1, std::move(predictions), {}});
  answer.keys = std::move(keys);
  answer.unknown_keys = std::move(unknown_keys);
  return answer;
}

}  // namespace hdps
