// Tests schedules, penalties and clipping against PyTorch: 50 steps of the same parameters and
// targets.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "embedding/table.h"

namespace hdps {
namespace {

using nlohmann::json;

constexpr double kE2 = 1e-5;  // The documented tolerance over 50 steps.

ScheduleSpec ScheduleOf(const json& text) {
  ScheduleSpec spec;
  for (const auto& word : WordsOf(ScheduleKind())) {
    if (word.word == text["kind"]) spec.kind = word.value;
  }
  spec.warmup_steps = text.value("warmup_steps", uint64_t{0});
  spec.decay_steps = text.value("decay_steps", uint64_t{0});
  spec.decay = text.value("decay", spec.decay);
  spec.power = text.value("power", spec.power);
  spec.least = text.value("least", spec.least);
  return spec;
}

TableSpec TableOf(const json& test_case, uint32_t dim) {
  TableSpec table;
  table.name = "t" + std::to_string(dim);
  table.dim = dim;
  const json& optimizer = test_case["optimizer"];
  for (const OptimizerRecord& record : kOptimizers) {
    if (record.name == optimizer["kind"]) table.optimizer = DefaultsOf(record.kind);
  }
  table.optimizer.learning_rate = optimizer["learning_rate"];
  table.optimizer.weight_decay = optimizer.value("weight_decay", 0.0f);
  if (test_case.contains("schedule")) table.schedule = ScheduleOf(test_case["schedule"]);
  table.loss_l1 = test_case.value("loss_l1", 0.0f);
  table.loss_l2 = test_case.value("loss_l2", 0.0f);
  return table;
}

// The parameters of record.py: each tensor is a table with rows spread over two slices.
class Parameters {
 public:
  explicit Parameters(const json& whole, const json& test_case)
      : clip_norm_(test_case.value("clip_norm", 0.0)),
        clip_value_(test_case.value("clip_value", 0.0f)) {
    size_t first = 0;
    for (const json& shape : whole["shapes"]) {
      const size_t rows = shape[0], dim = shape[1];
      const TableSpec spec = TableOf(test_case, static_cast<uint32_t>(dim));
      for (const size_t parity : {0u, 1u}) {
        Piece& piece = pieces_.emplace_back(Piece{TableSlice(spec, TableId{0}, 1), {}, {}});
        std::vector<float> begin;
        for (size_t row = parity; row < rows; row += 2) {
          piece.keys.push_back(row);
          for (size_t d = 0; d < dim; ++d) {
            const size_t i = first + row * dim + d;
            piece.numbers.push_back(i);
            begin.push_back(static_cast<float>(static_cast<int>((7 * i + 3) % 13) - 6) / 10);
          }
        }
        piece.table.Store(piece.keys, spec.dim, begin);
      }
      first += rows * dim;
    }
    size_ = first;
  }

  std::vector<float> Weights() {
    std::vector<float> weights(size_);
    for (Piece& piece : pieces_) {
      const std::vector<float> own = Read(piece);
      for (size_t i = 0; i < own.size(); ++i) weights[piece.numbers[i]] = own[i];
    }
    return weights;
  }

  // The gradients are sums over ten examples.
  void Step(int64_t step) {
    constexpr float kExamples = 10;
    SquareSum squares;
    std::vector<std::vector<float>> gradients;
    for (Piece& piece : pieces_) {
      std::vector<float>& gradient = gradients.emplace_back(Read(piece));
      for (size_t k = 0; k < gradient.size(); ++k) {
        const size_t i = piece.numbers[k];
        const float curvature = 0.5f + static_cast<float>(5 * i % 7) / 7;
        const size_t target = (3 * i + 5 * static_cast<size_t>(step)) % 17;
        gradient[k] = curvature * (gradient[k] - (static_cast<float>(target) - 8) / 8) * kExamples;
      }
      const TableSlice::Gradients part = {piece.keys, gradient, 1};
      squares.Add(piece.table.Squares({&part, 1}, 1 / kExamples));
    }
    const UpdateTerms terms = {.shrink = ShrinkTo(clip_norm_, squares), .clip_value = clip_value_};
    for (size_t p = 0; p < pieces_.size(); ++p) {
      const TableSlice::Gradients part = {pieces_[p].keys, gradients[p], 1};
      pieces_[p].table.Apply({&part, 1}, 1 / kExamples, step, terms);
    }
  }

 private:
  struct Piece {
    TableSlice table;
    std::vector<Key> keys;
    std::vector<size_t> numbers;  // Index of its elements, in all parameters.
  };
  static std::vector<float> Read(Piece& piece) {
    std::vector<float> rows(piece.numbers.size());
    piece.table.Read(piece.keys, piece.table.dim(), rows);
    return rows;
  }

  const double clip_norm_;
  const float clip_value_;
  size_t size_ = 0;
  std::vector<Piece> pieces_;
};

// Returns the largest difference to the record, over all steps.
double Difference(const json& whole, const json& test_case) {
  Parameters parameters(whole, test_case);
  double worst = 0;
  int64_t step = 0;
  for (size_t r = 0; r < whole["steps"].size(); ++r) {
    while (step < whole["steps"][r]) parameters.Step(++step);
    const std::vector<float> weights = parameters.Weights();
    const std::vector<double> wanted = test_case["weights"][r];
    EXPECT_EQ(weights.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      worst = std::max(worst, std::abs(weights[i] - wanted[i]));
    }
  }
  return worst;
}

json Recorded() {
  std::ifstream file(HDPS_SOURCE_DIR "/tests/references/optimization/optimization.json");
  return json::parse(file);
}

TEST(OptimizationReferenceTest, EqualsPyTorchOver50Steps) {
  const json whole = Recorded();
  ASSERT_EQ(whole["steps"].back(), 50);
  ASSERT_EQ(whole["cases"].size(), 16u);
  for (const json& test_case : whole["cases"]) {
    EXPECT_LT(Difference(whole, test_case), kE2) << test_case["name"];
  }
}

// The comparison notices each setting that is missing or has another value.
TEST(OptimizationReferenceTest, SeesWhatIsMissing) {
  const json whole = Recorded();
  for (const json& test_case : whole["cases"]) {
    for (const char* key : {"schedule", "loss_l1", "loss_l2", "clip_value", "clip_norm"}) {
      if (!test_case.contains(key)) continue;
      json without = test_case;
      without.erase(key);
      EXPECT_GT(Difference(whole, without), 10 * kE2) << test_case["name"] << " without " << key;
    }
    if (!test_case.contains("schedule")) continue;
    for (const char* key : {"warmup_steps", "decay_steps"}) {
      if (!test_case["schedule"].contains(key)) continue;
      json other = test_case;
      other["schedule"][key] = test_case["schedule"][key].get<int>() + 1;
      EXPECT_GT(Difference(whole, other), kE2) << test_case["name"] << ", other " << key;
    }
  }
}

}  // namespace
}  // namespace hdps
