// Turns the scores of a model into what its job predicts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hdps {

struct Job;

// Knows which scores of a row are logits of probabilities: those of tasks under logloss.
class Predictions {
 public:
  explicit Predictions(const Job& job);

  // Replaces logits of probabilities by these; other scores are predictions as they are. `scores`
  // are those of whole rows, one behind the other, as Model::Predict writes them. A probability is
  // computed in double and rounded once.
  void Convert(std::span<float> scores) const;

 private:
  std::vector<bool> logits_;  // [tasks]: the scores are logits of probabilities.
};

// Says that the score of row `row` of the data is not a number, and what is expected.
std::string ScoreNotANumber(uint64_t row);

}  // namespace hdps
