// Keeps small requests until they are scored by one call a model and version.
#include "tools/serve/front/score_joiner.h"

#include <algorithm>
#include <utility>

namespace hdps {

void ScoreJoiner::Score(ReadScore read) {
  const uint64_t rows = read.request.rows->num_rows();
  if (!joins_ || rows > kSmallRequestRows) {
    Finish();  // What came before is not kept waiting.
    return read.finish(read.request, read.model->Score(read.request, read.step));
  }
  rows_ += rows;
  waiting_.push_back(std::move(read));
}

void ScoreJoiner::Finish() {
  rows_ = 0;
  std::vector<ReadScore> left = std::exchange(waiting_, {});
  while (!left.empty()) {
    ServedModel& model = *left.front().model;
    const Clock step = left.front().step;
    const auto others = std::ranges::stable_partition(
        left, [&](const ReadScore& one) { return one.model == &model && one.step == step; });
    std::vector<const ScoreRequest*> requests;
    for (auto one = left.begin(); one != others.begin(); ++one) requests.push_back(&one->request);
    const std::vector<Result<ScoreAnswer>> answers = model.ScoreTogether(requests, step);
    for (size_t i = 0; i < answers.size(); ++i) left[i].finish(left[i].request, answers[i]);
    left.erase(left.begin(), others.begin());
  }
}

}  // namespace hdps
