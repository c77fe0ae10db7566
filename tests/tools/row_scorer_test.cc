// Tests that rows in memory score as hdps predict scores them in files, from several threads too.
#include "tools/scoring/row_scorer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "common/base/hash.h"
#include "common/job/spec/table_spec.h"
#include "common/metrics/probability.h"
#include "common/protocol/manifest.h"
#include "tests/tools/predict_fixture.h"
#include "tests/tools/text_columns.h"
#include "worker/step/evaluation.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

constexpr const char* kColumns =
    R"("train": ["t"], "columns": [{"name": "y", "type": "label"}, {"name": "user"},
       {"name": "age", "type": "numeric", "transform": "log1p"}, {"name": "tags", "type": "multi"}],
       "features": [{"name": "range", "kind": "bucketized", "from": ["age"], "boundaries": [5, 50]},
                    {"name": "cross", "from": ["user", "range"]}])";

class RowScorerTest : public PredictTest {
 protected:
  // Writes the training data, and returns rows to score, [rows, cells].
  std::vector<std::vector<std::string>> MakeRows(int rows) {
    std::string train;
    for (int i = 0; i < 64; ++i) {
      train += std::to_string(i % 2) + ",u" + std::to_string(i % 5) + "," + std::to_string(i) +
               ",a|b" + std::to_string(i % 3) + "\n";
    }
    WriteText(*files_, "t", train);
    std::vector<std::vector<std::string>> cells;
    for (int i = 0; i < rows; ++i) {
      cells.push_back({"u" + std::to_string(i % 9), i % 4 == 0 ? "" : std::to_string(0.5 * i),
                       i % 6 == 0 ? "" : "a|b" + std::to_string(i % 4)});
    }
    return cells;
  }
  static std::string TextOf(const std::vector<std::vector<std::string>>& rows) {
    std::string text;
    for (const auto& row : rows) text += "0," + row[0] + "," + row[1] + "," + row[2] + "\n";
    return text;
  }
  static TextColumns ColumnsOf(const std::vector<std::vector<std::string>>& rows) {
    TextColumns columns;
    const char* const names[] = {"user", "age", "tags"};
    for (size_t c = 0; c < 3; ++c) {
      std::vector<std::string> cells;
      for (const auto& row : rows) cells.push_back(row[c]);
      columns.Add(names[c], cells);
    }
    return columns;
  }
  std::unique_ptr<RowScorer> Open(const std::string& run, Executor& executor,
                                  UnknownKeys unknown = UnknownKeys::kInitial) {
    auto opened = RowScorer::Open(*files_, run, WhichCheckpoint::kBest, unknown, executor);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return *std::move(opened);
  }
  // Returns the lines that hdps predict would print, of several scores a row.
  static std::string Lines(const std::vector<float>& scores, size_t a_row) {
    std::string text;
    for (size_t i = 0; i < scores.size(); ++i) {
      char number[32];
      std::snprintf(number, sizeof(number), "%.9g", static_cast<double>(scores[i]));
      text += number + std::string(i % a_row + 1 == a_row ? "\n" : " ");
    }
    return text;
  }
};

TEST_F(RowScorerTest, FilesAndTablesScoreAsPredictDoes) {
  const auto rows = MakeRows(5000);  // More than one batch.
  Train("run", kColumns, R"("type": "wide_deep", "embedding_dim": 4, "hidden": [8])");
  const std::string lines = *Predict("run", TextOf(rows));
  const auto scorer = Open("run", *executor_);
  const auto of_files = scorer->ScoreFiles({"q"}, ScoreForm::kPredictions);
  ASSERT_TRUE(of_files.ok()) << of_files.status().message();
  EXPECT_EQ(Lines(*of_files, 1), lines);
  const TextColumns columns = ColumnsOf(rows);
  const auto of_table = scorer->ScoreTable(columns.Table(), ScoreForm::kPredictions);
  ASSERT_TRUE(of_table.ok()) << of_table.status().message();
  EXPECT_EQ(*of_table, *of_files);
  const auto logits = scorer->ScoreTable(columns.Table(), ScoreForm::kLogits);
  for (size_t i = 0; i < of_table->size(); ++i) {
    EXPECT_EQ((*of_table)[i], static_cast<float>(ProbabilityOf(static_cast<double>((*logits)[i]))));
  }
}

// A score has the same bits in a batch of 1, of 7, of 32 and of 4096 rows, in tables and in files.
TEST_F(RowScorerTest, RowsBesideARowChangeNothing) {
  const auto rows = MakeRows(kEvaluationExamples);
  const TextColumns all = ColumnsOf(rows);
  int run = 0;
  for (const char* const model :
       {R"("type": "wide_deep", "embedding_dim": 16, "hidden": [32, 8])",
        R"("type": "wide_deep", "embedding_dim": 4, "hidden": [8])",
        R"("type": "deepfm", "embedding_dim": 16, "hidden": [8], "first_layer": "plain")",
        R"("type": "deepfm", "embedding_dim": 4, "hidden": [24], "first_layer": "unique_rows")",
        R"("type": "mlp", "embedding_dim": 130, "hidden": [16], "first_layer": "unique_rows")",
        R"("type": "dcn_v2", "embedding_dim": 4, "hidden": [8])",
        R"("type": "dcn_mix", "embedding_dim": 4, "hidden": [8])",
        R"("type": "xdeepfm", "embedding_dim": 4, "hidden": [8])",
        R"("type": "autoint", "embedding_dim": 4)", R"("type": "fibinet", "embedding_dim": 4)",
        R"("type": "fibinet", "embedding_dim": 16)",
        R"("type": "din", "history": "tags", "target": "user", "embedding_dim": 4, "hidden": [8])",
        R"("type": "mlp", "embedding_dim": 4, "hidden": [4], "classes": 3)"}) {
    const std::string out = "run" + std::to_string(run++);
    Train(out, kColumns, model);
    const auto scorer = Open(out, *executor_);
    const auto together = scorer->ScoreTable(all.Table(), ScoreForm::kLogits);
    ASSERT_TRUE(together.ok()) << together.status().message();
    const size_t a_row = scorer->scores_a_row();
    for (const size_t beside : {1u, 7u, 32u}) {
      for (size_t first = 0; first + beside <= 20 * beside; first += beside) {
        const auto begin = rows.begin() + static_cast<ptrdiff_t>(first);
        const std::vector some(begin, begin + static_cast<ptrdiff_t>(beside));
        const TextColumns columns = ColumnsOf(some);
        const auto expected = std::span(*together).subspan(first * a_row, beside * a_row);
        const auto of_table = scorer->ScoreTable(columns.Table(), ScoreForm::kLogits);
        ASSERT_TRUE(std::ranges::equal(*of_table, expected)) << model << beside << " " << first;
        if (first > 0) continue;
        WriteText(*files_, "some", TextOf(some));
        const auto of_file = scorer->ScoreFiles({"some"}, ScoreForm::kLogits);
        ASSERT_TRUE(std::ranges::equal(*of_file, expected)) << model << beside;
      }
    }
  }
}

TEST_F(RowScorerTest, ThreadsScoreAtOnce) {
  const auto rows = MakeRows(4000);
  Train("run", kColumns, R"("type": "deepfm", "embedding_dim": 4, "hidden": [8])");
  const auto executor = NewTbbExecutor(2);
  const auto scorer = Open("run", *executor);
  const TextColumns columns = ColumnsOf(rows);
  const auto alone = *scorer->ScoreTable(columns.Table(), ScoreForm::kPredictions);
  constexpr int kCalls = 8;
  std::vector<std::vector<float>> found(4 * kCalls);
  std::vector<std::unique_ptr<Thread>> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.push_back(StartThread("caller", [&, t] {
      for (size_t call = 0; call < kCalls; ++call) {
        found[t * kCalls + call] = *scorer->ScoreTable(columns.Table(), ScoreForm::kPredictions);
      }
    }));
  }
  for (const auto& thread : threads) thread->Join();
  for (const std::vector<float>& scores : found) EXPECT_EQ(scores, alone);
}

TEST_F(RowScorerTest, ClassesHaveLogits) {
  const auto rows = MakeRows(10);
  Train("run", kColumns, R"("type": "mlp", "embedding_dim": 4, "hidden": [4], "classes": 3)");
  const std::string lines = *Predict("run", TextOf(rows));
  const auto scorer = Open("run", *executor_);
  const auto probabilities = *scorer->ScoreFiles({"q"}, ScoreForm::kPredictions);
  EXPECT_EQ(Lines(probabilities, 3), lines);
  const auto logits = *scorer->ScoreFiles({"q"}, ScoreForm::kLogits);
  ASSERT_EQ(logits.size(), 30u);
  for (size_t row = 0; row < 10; ++row) {
    double sum = 0;
    for (size_t c = 0; c < 3; ++c) sum += std::exp(static_cast<double>(logits[3 * row + c]));
    for (size_t c = 0; c < 3; ++c) {
      // exp() and a division of floats, each within some units of the last place.
      EXPECT_NEAR(std::exp(static_cast<double>(logits[3 * row + c])) / sum,
                  static_cast<double>(probabilities[3 * row + c]), 1e-6);
    }
  }
}

TEST_F(RowScorerTest, RowsOfTablesByKeyAndByValue) {
  MakeRows(0);
  for (const char* const cut : {"batch_slice", "field_slice", "table_column_slice"}) {
    Train(cut, kColumns,
          std::string(R"("type": "dcn_v2", "embedding_dim": 4, "hidden": [4], "slice_mode": ")") +
              cut + "\"",
          /*shards=*/4);
    const auto scorer = Open(cut, *executor_);
    const auto& tables = scorer->job().tables;
    const auto deep = std::ranges::find(tables, "deep", &TableSpec::name);
    ASSERT_NE(deep, tables.end());
    const TableId table{static_cast<uint32_t>(deep - tables.begin())};
    TextColumns values;
    values.Add("user", {"u1", "stranger"});
    const auto keys = scorer->KeysOf("user", values.Table());
    ASSERT_TRUE(keys.ok()) << keys.status().message();
    EXPECT_EQ(*keys, (std::vector<Key>{FeatureKey(HashString("user"), "u1"),
                                       FeatureKey(HashString("user"), "stranger")}));
    EXPECT_EQ(scorer->Contains(table, *keys), (std::vector<bool>{true, false})) << cut;
    std::vector<float> rows(8), zeros(8, -1.0f);
    scorer->Lookup(table, *keys, rows);
    Open(cut, *executor_, UnknownKeys::kZero)->Lookup(table, *keys, zeros);
    EXPECT_NE(rows[4], 0.0f);
    std::fill(rows.begin() + 4, rows.end(), 0.0f);
    EXPECT_EQ(zeros, rows) << cut;
    EXPECT_THAT(scorer->KeysOf("cross", values.Table()).status().message(),
                HasSubstr("made of other columns"));
    EXPECT_THAT(scorer->KeysOf("usr", values.Table()).status().message(),
                HasSubstr("did you mean \"user\""));
  }
}

}  // namespace
}  // namespace hdps
