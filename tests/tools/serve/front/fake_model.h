// A served model of tests without a checkpoint, whose answers are known, and a caller of its paths.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/http/http_server.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/manifest.h"
#include "tools/serve/front/serving_front.h"

namespace hdps {

// Takes the column "age" and answers with the step for each row.
class FakeModel : public ServedModel {
 public:
  explicit FakeModel(const std::string& name) {
    note_.name = name;
    note_.inputs = {{"age", "FP32", 1}, {"user", "BYTES", 1}};
    note_.outputs = {{"probability", "FP32", 1}, {"probabilities", "FP32", 3}};
  }

  bool ready() const override { return ready_; }
  Clock step() const override { return step_; }
  std::vector<Clock> steps() const override { return {64, 128, 192}; }
  const ModelNote& note() const override { return note_; }
  const std::vector<std::string>& features() const override { return features_; }
  Result<ScoreAnswer> Score(const ScoreRequest& request, Clock step) override {
    if (step != kNoClock && step != step_) return Other(step);
    if (refuses_ != Code::kOk) return Status(refuses_, "input 'age': refused");
    {
      const MutexLock lock(mutex_);
      ids_.push_back(request.id);
    }
    ScoreAnswer answer;
    answer.step = step_;
    answer.rows = request.rows->num_rows();
    const std::vector<float> scores(answer.rows, static_cast<float>(step_));
    answer.outputs.push_back({"probability", 1, scores, {}});
    return answer;
  }
  std::vector<Result<ScoreAnswer>> ScoreTogether(std::span<const ScoreRequest* const> requests,
                                                 Clock step) override {
    {
      const MutexLock lock(mutex_);
      together_.push_back(requests.size());
    }
    return ServedModel::ScoreTogether(requests, step);
  }
  Result<LookupAnswer> Lookup(const LookupRequest& request, Clock step) override {
    if (step != kNoClock && step != step_) return Other(step);
    LookupAnswer answer;
    answer.step = step_;
    answer.dim = 1;
    answer.rows.assign(request.keys.size(), 0.5F);
    answer.has_row.assign(request.keys.size(), true);
    return answer;
  }
  Status Use(Clock step) override {
    if (step == 7) return Status(Code::kNotFound, "there is no step 7; there are 64, 128, 192");
    used_ = step;
    return {};
  }

  std::atomic<bool> ready_ = true;
  std::atomic<Clock> step_ = 128;
  std::atomic<Clock> used_ = 0;
  std::atomic<Code> refuses_ = Code::kOk;

  // Returns the ids of the requests that were scored.
  std::vector<std::string> ids() const {
    const MutexLock lock(mutex_);
    return ids_;
  }
  // Returns the number of requests of each call of ScoreTogether().
  std::vector<size_t> together() const {
    const MutexLock lock(mutex_);
    return together_;
  }

 private:
  static Status Other(Clock step) {
    return Status(Code::kNotFound, "version " + std::to_string(step) + " does not answer");
  }

  ModelNote note_;
  std::vector<std::string> features_ = {"user"};
  mutable Mutex mutex_;
  std::vector<std::string> ids_ HDPS_GUARDED_BY(mutex_);
  std::vector<size_t> together_ HDPS_GUARDED_BY(mutex_);
};

// Runs its work when it is told to.
class HeldQueue : public RequestQueue {
 public:
  bool Take(RequestWork work) override {
    if (full_) return false;
    work_.push_back(std::move(work));
    return true;
  }
  void Close() override { full_ = true; }
  void Run() {
    ScoreJoiner joiner(joins_);
    for (const RequestWork& work : std::exchange(work_, {})) work(joiner);
    joiner.Finish();
  }
  bool full_ = false;
  bool joins_ = false;
  std::vector<RequestWork> work_;
};

// Keeps what it is told.
class KeptWatch : public AnswerWatch {
 public:
  struct Kept {
    ServingProtocol protocol;
    int code;
    int64_t time_ns;
    uint64_t rows;  // Of the answer; 0 without one.
  };
  void Saw(const Answered& one) override {
    seen_.push_back({one.protocol, one.code, one.time_ns, one.answer ? one.answer->rows : 0});
  }
  std::vector<Kept> seen_;
};

}  // namespace hdps
