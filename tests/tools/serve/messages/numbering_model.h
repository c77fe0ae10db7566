// A served model of tests whose answers number rows and keys, with a queue of one thread for it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/platform/executor.h"
#include "tools/serve/front/request_queue.h"
#include "tools/serve/served_model.h"
#include "tools/serve/watch/answer_watch.h"

namespace hdps {

// Answers each row with the step plus its number, and with texts.
class NumberingModel : public ServedModel {
 public:
  explicit NumberingModel(const std::string& name) {
    note_.name = name;
    note_.inputs = {{"price", "FP32", 1}};
    note_.outputs = {{"probability", "FP32", 1}, {"logit", "FP32", 1}, {"top_k", "BYTES", 2}};
  }
  bool ready() const override { return ready_; }
  Clock step() const override { return 640; }
  std::vector<Clock> steps() const override { return {600, 640}; }
  const ModelNote& note() const override { return note_; }
  const std::vector<std::string>& features() const override { return features_; }
  Result<ScoreAnswer> Score(const ScoreRequest& request, Clock step) override {
    if (step != -1 && step != 640) return Status(Code::kNotFound, "step 640 answers");
    asked_ = request.outputs;
    id_ = request.id;
    ScoreAnswer answer;
    answer.step = 640;
    answer.rows = request.rows->num_rows();
    OutputColumn scores, texts;
    scores.name = "probability";
    texts.name = "top_k";
    texts.width = 2;
    for (uint64_t row = 0; row < answer.rows; ++row) {
      scores.numbers.push_back(640.0F + static_cast<float>(row));
      texts.texts.push_back("item " + std::to_string(row));
      texts.texts.emplace_back();
    }
    answer.outputs = {scores, texts};
    return answer;
  }
  // Each row has the key and its double, or the numbers of the value and its length.
  Result<LookupAnswer> Lookup(const LookupRequest& request, Clock step) override {
    if (step != -1 && step != 640) return Status(Code::kNotFound, "step 640 answers");
    if (request.table != "deep") return Status(Code::kInvalidArgument, "expected deep");
    LookupAnswer answer;
    answer.step = 640;
    answer.dim = 2;
    for (const Key key : request.keys) {
      answer.rows.push_back(static_cast<float>(key));
      answer.rows.push_back(static_cast<float>(key) * 2);
      answer.has_row.push_back(key < 10);
    }
    if (request.feature.empty()) return answer;
    EXPECT_EQ(request.values->columns()[0].name, request.feature);
    for (uint64_t row = 0; row < request.values->num_rows(); ++row) {
      answer.rows.insert(answer.rows.end(), {static_cast<float>(row), 0.5F});
      answer.has_row.push_back(row == 0);
    }
    return answer;
  }
  Status Use(Clock) override { return {}; }

  bool ready_ = true;
  std::vector<ScoreOutput> asked_;
  std::string id_;

 private:
  ModelNote note_;
  std::vector<std::string> features_;
};

// Runs work on a thread of its own, or keeps it.
class OneThread : public RequestQueue {
 public:
  bool Take(RequestWork work) override { return !full_ && work_.Push(std::move(work)); }
  void Close() override { work_.Close(); }
  std::atomic<bool> full_ = false;

 private:
  BoundedQueue<RequestWork> work_{100};
  std::unique_ptr<Thread> thread_ = StartThread("work", [this] {
    ScoreJoiner joiner(/*joins=*/false);
    while (auto work = work_.Pop()) (*work)(joiner);
  });
};

class LastSeen : public AnswerWatch {
 public:
  void Saw(const Answered& one) override {
    code_ = one.code;
    protocol_ = one.protocol;
    rows_ = one.answer == nullptr ? 0 : one.answer->rows;
  }
  std::atomic<int> code_ = 0;
  std::atomic<ServingProtocol> protocol_ = ServingProtocol::kPredict;
  std::atomic<uint64_t> rows_ = 0;
};

}  // namespace hdps
