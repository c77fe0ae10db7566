// Scores requests one by one, or several small ones together.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tools/serve/requests/score_request.h"
#include "tools/serve/served_model.h"

namespace hdps {

// A request waits for others if it has at most so many rows; beyond, a batch of its own costs no
// more a row. Requests that wait together have at most so many rows and those of one more.
inline constexpr uint64_t kSmallRequestRows = 64, kJoinedRows = 256;

// A request that was read, and who takes its answer.
struct ReadScore {
  ServedModel* model = nullptr;
  Clock step = -1;  // As for ServedModel::Score().
  ScoreRequest request = {};
  std::function<void(const ScoreRequest&, const Result<ScoreAnswer>&)> finish = nullptr;
};

// What one thread has read and not yet scored. For use by that thread alone.
//
// Invariant: each request is finished once. None waits but between Score() and the next Finish().
class ScoreJoiner {
 public:
  // Without `joins` each request is scored at once.
  explicit ScoreJoiner(bool joins) : joins_(joins) {}

  // Scores a request, or keeps a small one until Finish().
  void Score(ReadScore read);
  // Is true if requests wait, and others may join them.
  bool wants_more() const { return !waiting_.empty() && rows_ < kJoinedRows; }
  // Scores all that wait, those of the same model and version together.
  void Finish();

 private:
  const bool joins_;
  std::vector<ReadScore> waiting_;
  uint64_t rows_ = 0;  // Of all that wait.
};

}  // namespace hdps
