// Tests vectors and the best items of users as outputs, by a model that was trained here.
#include "tools/serve/versions/tower_outputs.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/tools/predict_fixture.h"
#include "tests/worker/data/columnar/arrow_maker.h"
#include "tools/serve/versions/item_ranking.h"
#include "tools/serve/versions/served_checkpoint.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kColumns =
    R"("columns": [{"name": "y", "type": "label"}, {"name": "user"}, {"name": "item"},
       {"name": "age", "type": "numeric"}, {"name": "title", "type": "skip"}])";
constexpr const char* kModel =
    R"("type": "two_tower", "embedding_dim": 4, "hidden": [8, 6], "user_features": ["user"],
       "item_features": ["item"], "temperature": 0.5)";
constexpr uint32_t kDim = 6;

std::shared_ptr<const ColumnTable> TableOf(std::vector<MadeColumn> columns) {
  ArrowArrayStream stream;
  Export({{std::move(columns)}}, &stream);
  auto table = ColumnTable::FromStream(&stream);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return std::move(*table);
}

class TowerOutputsTest : public PredictTest {
 protected:
  void SetUp() override {
    WriteText(*files_, "t", "1,a,i,1,The I\n0,b,j,2,The J\n1,a,k,3,The K\n0,c,i,4,The I\n");
    Train("run", std::string(R"("train": ["t"], )") + kColumns, kModel);
    auto scorer = RowScorer::Open(*files_, "run", WhichCheckpoint::kNewest, UnknownKeys::kInitial,
                                  *executor_);
    ASSERT_TRUE(scorer.ok()) << scorer.status().message();
    scorer_ = std::move(*scorer);
  }
  std::unique_ptr<TowerOutputs> Open(const ItemsToRank& items = {}) {
    auto towers = TowerOutputs::New(*files_, *scorer_, items, *executor_);
    EXPECT_TRUE(towers.ok()) << towers.status().message();
    return towers.ok() ? std::move(*towers) : nullptr;
  }
  static ScoreRequest Asking(std::vector<MadeColumn> columns, uint32_t top_k = 0) {
    ScoreRequest request;
    request.rows = TableOf(std::move(columns));
    request.top_k = top_k;
    return request;
  }
  static ScoreRequest Users(uint32_t top_k = 0) {
    return Asking({Texts("user", {"a", "b", "nobody"}), Numbers<float>("age", {1, 2.5F, {}})},
                  top_k);
  }

  std::unique_ptr<RowScorer> scorer_;
};

TEST_F(TowerOutputsTest, VectorsNeedTheInputsOfTheirTowerAlone) {
  const auto towers = Open();
  std::vector<OutputColumn> outputs;
  const ScoreRequest items = Asking({Texts("item", {"i", "k", "new"})});
  ASSERT_TRUE(towers->Add(ScoreOutput::kItemVector, items, &outputs).ok());
  ASSERT_TRUE(towers->Add(ScoreOutput::kUserVector, Users(), &outputs).ok());
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[0].name, "item_vector");
  EXPECT_EQ(outputs[1].name, "user_vector");
  for (const auto& [output, tower, rows] :
       {std::tuple(0, Tower::kItem, items.rows), std::tuple(1, Tower::kUser, Users().rows)}) {
    const auto vectors = TableVectors::New(*scorer_, tower, *executor_);
    EXPECT_EQ(outputs[output].width, kDim);
    EXPECT_EQ(outputs[output].numbers, *(*vectors)->Of(rows)) << "the bits of the package";
  }
  const Status missing =
      towers->Add(ScoreOutput::kUserVector, Asking({Texts("user", {"a"})}), &outputs);
  EXPECT_EQ(missing.code(), Code::kInvalidArgument);
  EXPECT_THAT(missing.message(), HasSubstr("age"));
  std::vector<TensorNote> notes;
  towers->AddNotes(&notes);
  EXPECT_EQ(notes.size(), 2U) << "without items there is no top_k";
  const Status none = towers->Add(ScoreOutput::kTopK, Users(2), &outputs);
  EXPECT_THAT(none.message(), HasSubstr("--items=FILE"));
}

// A score is a sum of kDim products over the temperature: each of its roundings is at most half an
// epsilon of the sum of magnitudes, which the lengths of the vectors bound.
TEST_F(TowerOutputsTest, TheBestItemsHaveTheLargestLogits) {
  WriteText(*files_, "items", ",,i,,x\n,,j,,x\n,,k,,x\n,,new,,x\n,,i,,x\n");
  const auto towers = Open({"items", ""});
  ASSERT_NE(towers, nullptr);
  std::vector<OutputColumn> outputs;
  ASSERT_TRUE(towers->Add(ScoreOutput::kTopK, Users(9), &outputs).ok());
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[0].name, "top_k");
  EXPECT_EQ(outputs[1].name, "top_k_score");
  EXPECT_EQ(outputs[0].width, 4U) << "each text is one item";
  ASSERT_EQ(outputs[0].texts.size(), 12U);
  for (size_t row = 0; row < 3; ++row) {
    const Cells users = {"a", "b", "nobody"};
    const std::vector<std::optional<float>> ages = {1, 2.5F, {}};
    const std::vector<std::string> texts(outputs[0].texts.begin() + 4 * row,
                                         outputs[0].texts.begin() + 4 * (row + 1));
    const auto pairs =
        TableOf({Texts("user", Cells(4, users[row])),
                 Numbers<float>("age", std::vector<std::optional<float>>(4, ages[row])),
                 Texts("item", Cells(texts.begin(), texts.end()))});
    const auto logits = scorer_->ScoreTable(pairs, ScoreForm::kLogits);
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    for (size_t i = 0; i < 4; ++i) {
      constexpr double kEpsilon = 0x1p-24, kTemperature = 0.5;
      const float score = outputs[1].numbers[4 * row + i];
      EXPECT_NEAR(score, (*logits)[i], kEpsilon * 2 * (kDim + 3) / kTemperature);
      if (i > 0) {
        EXPECT_LE(score, outputs[1].numbers[4 * row + i - 1]);
      }
    }
  }
  for (const uint32_t k : {0U, 1U << 20}) {
    const Status refused = towers->Add(ScoreOutput::kTopK, Users(k), &outputs);
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("k is " + std::to_string(k)));
  }
}

TEST_F(TowerOutputsTest, SeveralThreadsGetTheSame) {
  WriteText(*files_, "items", ",,i,,x\n,,j,,x\n,,k,,x\n");
  const auto towers = Open({"items", ""});
  ASSERT_NE(towers, nullptr);
  const auto ask = [&] {
    std::vector<OutputColumn> outputs;
    EXPECT_TRUE(towers->Add(ScoreOutput::kUserVector, Users(), &outputs).ok());
    EXPECT_TRUE(towers->Add(ScoreOutput::kTopK, Users(2), &outputs).ok());
    std::vector<float> numbers;
    for (const OutputColumn& output : outputs) {
      numbers.insert(numbers.end(), output.numbers.begin(), output.numbers.end());
    }
    return numbers;
  };
  const std::vector<float> expected = ask();
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(StartThread("asks", [&] {
      for (int turn = 0; turn < 50; ++turn) EXPECT_EQ(ask(), expected);
    }));
  }
}

TEST_F(TowerOutputsTest, WhatIsWrongWithItemsIsTold) {
  const auto refused = [this](const ItemsToRank& items) {
    const Status status = TowerOutputs::New(*files_, *scorer_, items, *executor_).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  EXPECT_THAT(refused({"nowhere", ""}), HasSubstr("--items: there is no file"));
  WriteText(*files_, "items", "");
  EXPECT_THAT(refused({"items", ""}), HasSubstr("no row"));
  EXPECT_THAT(refused({"items", "titel"}), HasSubstr("did you mean \"title\"?"));
}

// ---- Deltas.

constexpr const char* kDeltas =
    R"(}, "checkpoint": {"every_steps": 1000, "delta_every_steps": 2, "keep": 20)";

class TowerDeltasTest : public PredictTest {
 protected:
  void SetUp() override {
    std::string rows;
    for (int i = 0; i < 64; ++i) {
      rows += std::to_string(i % 2) + ",u" + std::to_string(i % 9) + ",i" +
              std::to_string(i * 7 % 20) + "," + std::to_string(i) + ",T\n";
    }
    WriteText(*files_, "t", rows);
    Train("run", std::string(R"("train": ["t"], )") + kColumns + kDeltas, kModel, 2);
    std::string items;
    for (int i = 0; i < 24; ++i) items += ",,i" + std::to_string(i) + ",,x\n";
    WriteText(*files_, "items", items);
    for (Clock clock = 1; clock < 100; ++clock) {
      const std::string folder = JoinPath("run/checkpoint", CheckpointName(clock));
      if (files_->Exists(JoinPath(folder, kManifestName))) clocks_.push_back(clock);
    }
    ASSERT_GE(clocks_.size(), 6u);
    const auto last = ReadManifest(*files_, JoinPath("run/checkpoint", CheckpointName(clocks_[5])));
    ASSERT_TRUE(last.ok() && last->is_delta());
    clocks_.resize(6);
    for (const Clock clock : clocks_) expected_.push_back(Ask(*Open(clock)));
  }
  std::unique_ptr<ServedCheckpoint> Open(Clock clock) {
    ServedOptions options;
    options.folder = "run";
    options.wanted.step = clock;
    options.items = {"items", ""};
    options.look_ms = 0;
    options.threads = 4;
    auto opened = ServedCheckpoint::Open(options, *files_, *clock_);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return *std::move(opened);
  }
  // Everything that an answer has, as text: numbers with all their digits.
  static std::string Ask(ServedCheckpoint& model, Clock* step = nullptr) {
    ScoreRequest request;
    request.rows =
        TableOf({Texts("user", {"u1", "u2", "nobody"}), Numbers<float>("age", {1, 2.5F, {}}),
                 Texts("item", {"i3", "i4", "i99"})});
    request.outputs = {ScoreOutput::kTopK, ScoreOutput::kLogit, ScoreOutput::kUserVector,
                       ScoreOutput::kItemVector};
    request.top_k = 5;
    const auto answer = model.Score(request, kNoClock);
    if (!answer.ok()) return answer.status().message();
    if (step != nullptr) *step = answer->step;
    std::ostringstream text;
    text << answer->step << std::hexfloat;
    for (const OutputColumn& output : answer->outputs) {
      text << " " << output.name;
      for (const float number : output.numbers) text << " " << number;
      for (const std::string& one : output.texts) text << " " << one;
    }
    return text.str();
  }
  void Bring(ServedCheckpoint& model, Clock clock) {
    ASSERT_TRUE(model.Use(clock).ok());
    while (model.step() != clock) model.Look();
  }

  std::vector<Clock> clocks_;
  std::vector<std::string> expected_;  // [clocks]: what a model says that was loaded at this one.
};

TEST_F(TowerDeltasTest, EachDeltaGivesTheBitsOfItsCheckpoint) {
  const auto model = Open(clocks_[0]);
  for (size_t at = 0; at < clocks_.size(); ++at) {
    Bring(*model, clocks_[at]);
    EXPECT_EQ(Ask(*model), expected_[at]);
    EXPECT_TRUE(at == 0 || expected_[at] != expected_[at - 1]);
  }
  EXPECT_EQ(model->facts().whole.count, 1u);
  EXPECT_EQ(model->facts().deltas.count, clocks_.size() - 1);
}

TEST_F(TowerDeltasTest, WithoutItsItemsADeltaChangesNothing) {
  const auto model = Open(clocks_[0]);
  const std::string items = *ReadWholeFile(*files_, "items", 1 << 20);
  ASSERT_TRUE(files_->RemoveAll("items").ok());
  ASSERT_TRUE(model->Use(clocks_[1]).ok());
  model->Look();
  EXPECT_EQ(Ask(*model), expected_[0]);
  EXPECT_EQ(model->facts().refused[static_cast<size_t>(Refusal::kUnfit)], 1u);
  WriteText(*files_, "items", items);
  Bring(*model, clocks_[1]);
  EXPECT_EQ(Ask(*model), expected_[1]);
}

TEST_F(TowerDeltasTest, OutputsOfAnotherStepAreStale) {
  const std::string folder = JoinPath("run/checkpoint", CheckpointName(clocks_[0]));
  const auto found = OpenCheckpoint(*files_, folder, WhichCheckpoint::kNewest);
  ASSERT_TRUE(found.ok()) << found.status().message();
  const auto scorer =
      RowScorer::Open(*files_, *found, UnknownKeys::kInitial, RowForm::kFlat, *executor_);
  ASSERT_TRUE(scorer.ok()) << scorer.status().message();
  const auto before = TowerOutputs::New(*files_, **scorer, {"items", ""}, *executor_);
  ASSERT_TRUE(before.ok()) << before.status().message();
  ScoreRequest users;
  users.rows = TableOf({Texts("user", {"u1"}), Numbers<float>("age", {1})});
  users.top_k = 2;
  std::vector<OutputColumn> outputs;
  ASSERT_TRUE((*before)->Add(ScoreOutput::kTopK, users, &outputs).ok());
  CheckpointPart delta{JoinPath("run/checkpoint", CheckpointName(clocks_[1])), {}};
  delta.manifest = *ReadManifest(*files_, delta.folder);
  ASSERT_TRUE((*scorer)->Apply(delta).ok());
  // By a tower that was there, and by one that is made now.
  EXPECT_EQ((*before)->Add(ScoreOutput::kTopK, users, &outputs).code(), Code::kStaleView);
  ScoreRequest item;
  item.rows = TableOf({Texts("item", {"i1"})});
  EXPECT_EQ((*before)->Add(ScoreOutput::kItemVector, item, &outputs).code(), Code::kStaleView);
}

TEST_F(TowerDeltasTest, NoAnswerMixesTwoSteps) {
  const auto model = Open(clocks_[0]);
  std::map<Clock, std::string> expected;
  for (size_t at = 0; at < clocks_.size(); ++at) expected[clocks_[at]] = expected_[at];
  std::atomic<bool> stops = false;
  std::atomic<uint64_t> answers = 0, wrong = 0;
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < 3; ++t) {
    threads.push_back(StartThread("asks", [&] {
      while (!stops) {
        Clock step = clocks_[0];
        const std::string answer = Ask(*model, &step);
        wrong += answer != expected.at(step) ? 1 : 0;
        ++answers;
      }
    }));
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (const Clock clock : clocks_) {
      Bring(*model, clock);
      const uint64_t before = answers;
      while (answers < before + 20) std::this_thread::yield();
    }
  }
  stops = true;
  threads.clear();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(model->facts().deltas.count, 3 * (clocks_.size() - 1));
}

// ---- Ranking.

TEST(ItemRanking, EqualsASortOfAllItems) {
  std::mt19937 chance(3);
  for (const uint32_t items : {1U, 15U, 16U, 17U, 200U}) {
    const uint32_t dim = 5;
    std::vector<float> vectors(items * dim), user(dim);
    // Few values, so that many scores are equal.
    for (float& value : vectors) value = static_cast<float>(chance() % 3) - 1;
    for (float& value : user) value = static_cast<float>(chance() % 3) - 1;
    std::vector<std::string> texts;
    for (uint32_t i = 0; i < items; ++i) texts.push_back(std::to_string(i));
    const ItemRanking ranking(texts, vectors, dim, 0.25F);
    std::vector<std::pair<float, uint32_t>> all;
    for (uint32_t i = 0; i < items; ++i) {
      float sum = 0;
      for (uint32_t d = 0; d < dim; ++d) sum += user[d] * vectors[i * dim + d];
      all.emplace_back(-(sum + 0.25F), i);
    }
    std::ranges::sort(all);
    for (const uint32_t k : {1U, 3U, items, items + 5}) {
      const auto best = ranking.Best(user, k);
      ASSERT_EQ(best.size(), std::min(k, items));
      for (size_t i = 0; i < best.size(); ++i) {
        EXPECT_EQ(best[i].item, all[i].second);
        EXPECT_EQ(best[i].score, -all[i].first);
      }
    }
  }
}

TEST(ItemRanking, WhatIsNoNumberComesLast) {
  const std::vector<float> vectors = {1, NAN, 3};
  const ItemRanking ranking({"a", "b", "c"}, vectors, 1, 0);
  std::vector<std::string> texts;
  for (const auto& ranked : ranking.Best(std::vector<float>{1}, 3)) {
    texts.push_back(ranking.text(ranked.item));
  }
  EXPECT_THAT(texts, ElementsAre("c", "a", "b"));
  EXPECT_TRUE(ranking.Best(std::vector<float>{1}, 0).empty());
}

}  // namespace
}  // namespace hdps
