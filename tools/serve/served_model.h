// A named model that answers while newer versions of it come.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tools/serve/requests/score_request.h"

namespace hdps {

// What can be asked of a model by any number of threads at once, whatever protocol they serve. A
// test may implement it without a checkpoint.
//
// Invariant: each answer is of one version, which it names, and never waits for a version that is
// being loaded.
class ServedModel {
 public:
  virtual ~ServedModel() = default;

  virtual bool ready() const = 0;  // A version is there.
  // The version that answers now, and all that could be used, ascending.
  virtual Clock step() const = 0;
  virtual std::vector<Clock> steps() const = 0;
  virtual const ModelNote& note() const = 0;                     // Stays as it is.
  virtual const std::vector<std::string>& features() const = 0;  // The sparse ones.

  // Errors: kInvalidArgument names the input, the row, the value and what would be right;
  // kNotFound if `step` is not kNoClock and not the version that answers.
  virtual Result<ScoreAnswer> Score(const ScoreRequest& request, Clock step) = 0;
  // Answers several requests, each with the bits and the error of Score() alone. Those that fit
  // together are one batch.
  virtual std::vector<Result<ScoreAnswer>> ScoreTogether(
      std::span<const ScoreRequest* const> requests, Clock step) {
    std::vector<Result<ScoreAnswer>> answers;
    for (const ScoreRequest* const request : requests) answers.push_back(Score(*request, step));
    return answers;
  }
  virtual Result<LookupAnswer> Lookup(const LookupRequest& request, Clock step) = 0;

  // Pins the version `step`, or follows the newest again with kNoClock. Returns at once: a thread
  // loads it, and the version at hand answers meanwhile. Errors: kNotFound lists steps().
  virtual Status Use(Clock step) = 0;
};

}  // namespace hdps
