// Tests that requests which are scored together have the answers of requests alone, bit for bit.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/tools/predict_fixture.h"
#include "tests/worker/data/columnar/arrow_maker.h"
#include "tools/serve/versions/served_checkpoint.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kColumns =
    R"("train": ["t"], "columns": [{"name": "y", "type": "label"}, {"name": "user"},
       {"name": "age", "type": "numeric", "transform": "log1p"}, {"name": "tags", "type": "multi"}],
       "features": [{"name": "range", "kind": "bucketized", "from": ["age"], "boundaries": [5, 50]},
                    {"name": "cross", "from": ["user", "range"]}])";

std::shared_ptr<const ColumnTable> TableOf(std::vector<MadeColumn> columns) {
  ArrowArrayStream stream;
  Export({{std::move(columns)}}, &stream);
  auto table = ColumnTable::FromStream(&stream);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return std::move(*table);
}

std::vector<uint32_t> BitsOf(const std::vector<float>& numbers) {
  std::vector<uint32_t> bits(numbers.size());
  std::memcpy(bits.data(), numbers.data(), numbers.size() * sizeof(float));
  return bits;
}

class JoinedAnswersTest : public PredictTest {
 protected:
  void Open(const std::string& model) {
    std::string train;
    for (int i = 0; i < 96; ++i) {
      train += std::to_string(i % 2) + ",u" + std::to_string(i % 5) + "," + std::to_string(i) +
               ",a|b" + std::to_string(i % 3) + "\n";
    }
    WriteText(*files_, "t", train);
    Train("run", kColumns, model);
    ServedOptions options;
    options.folder = "run";
    options.look_ms = 0;
    auto opened = ServedCheckpoint::Open(options, *files_, *clock_);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    model_ = *std::move(opened);
  }
  // Rows with missing cells and values that were never seen.
  static ScoreRequest Rows(int rows, int first, std::vector<ScoreOutput> outputs = {}) {
    std::vector<std::string> users, tags;
    std::vector<std::optional<float>> ages;
    for (int i = first; i < first + rows; ++i) {
      users.push_back("u" + std::to_string(i % 9));
      tags.push_back(i % 6 == 0 ? "" : "a|b" + std::to_string(i % 4));
      ages.push_back(i % 4 == 0 ? std::nullopt : std::optional(0.5F * static_cast<float>(i)));
    }
    ScoreRequest request;
    request.rows =
        TableOf({Texts("user", Cells(users.begin(), users.end())), Numbers<float>("age", ages),
                 Texts("tags", Cells(tags.begin(), tags.end()))});
    request.outputs = std::move(outputs);
    return request;
  }
  std::vector<Result<ScoreAnswer>> Together(const std::vector<ScoreRequest>& requests,
                                            Clock step = kNoClock) {
    std::vector<const ScoreRequest*> pointers;
    for (const ScoreRequest& request : requests) pointers.push_back(&request);
    return model_->ScoreTogether(pointers, step);
  }
  // Returns the numbers of requests in each batch; the answers must be those of requests alone.
  std::vector<int> BatchesOf(const std::vector<ScoreRequest>& requests) {
    const std::vector<Result<ScoreAnswer>> together = Together(requests);
    EXPECT_EQ(together.size(), requests.size());
    std::vector<int> batches;
    for (size_t i = 0; i < requests.size(); ++i) {
      const Result<ScoreAnswer> alone = model_->Score(requests[i], kNoClock);
      EXPECT_TRUE(alone.ok() && together[i].ok());
      if (!alone.ok() || !together[i].ok()) return {};
      EXPECT_EQ(together[i]->step, alone->step);
      EXPECT_EQ(together[i]->rows, alone->rows);
      EXPECT_EQ(together[i]->keys, alone->keys) << i;
      EXPECT_EQ(together[i]->unknown_keys, alone->unknown_keys) << i;
      EXPECT_EQ(together[i]->outputs.size(), alone->outputs.size());
      for (size_t o = 0; o < alone->outputs.size(); ++o) {
        EXPECT_EQ(together[i]->outputs[o].name, alone->outputs[o].name);
        EXPECT_EQ(BitsOf(together[i]->outputs[o].numbers), BitsOf(alone->outputs[o].numbers)) << i;
      }
      if (together[i]->begins_batch) batches.push_back(0);
      ++batches.back();
    }
    return batches;
  }

  std::unique_ptr<ServedCheckpoint> model_;
};

TEST_F(JoinedAnswersTest, HaveTheBitsOfRequestsAloneForEveryRecipe) {
  const std::string sizes = R"(, "embedding_dim": 4)", hidden = sizes + R"(, "hidden": [8, 5])";
  for (const std::string& recipe : {std::string(R"("type": "logistic")"), R"("type": "fm")" + sizes,
                                    R"("type": "mlp")" + hidden, R"("type": "wide_deep")" + hidden,
                                    R"("type": "deepfm")" + hidden, R"("type": "dcn_v2")" + hidden,
                                    R"("type": "xdeepfm")" + hidden, R"("type": "autoint")" + sizes,
                                    R"("type": "fibinet")" + hidden}) {
    for (const std::string first_layer : {"auto", "plain", "unique_rows"}) {
      SCOPED_TRACE(recipe + " " + first_layer);
      files_ = NewMemoryFileSystem();
      ASSERT_NO_FATAL_FAILURE(Open(recipe + R"(, "first_layer": ")" + first_layer + "\""));
      const std::vector<ScoreOutput> both = {ScoreOutput::kLogit, ScoreOutput::kPrediction};
      EXPECT_THAT(BatchesOf({Rows(1, 3, both), Rows(7, 11, both), Rows(1, 0, both),
                             Rows(32, 5, both), Rows(2, 40, both)}),
                  ElementsAre(5));
      EXPECT_THAT(BatchesOf({Rows(1, 3), Rows(1, 4)}), ElementsAre(2));
    }
  }
}

TEST_F(JoinedAnswersTest, OnlyRequestsThatAreAlikeShareABatch) {
  Open(R"("type": "wide_deep", "embedding_dim": 4, "hidden": [8])");
  ScoreRequest other_type = Rows(1, 0), more = Rows(1, 0);
  const std::vector<MadeColumn> columns = {Texts("user", {"u1"}), Numbers<double>("age", {2.5}),
                                           Texts("tags", {"a"})};
  other_type.rows = TableOf(columns);
  std::vector<MadeColumn> and_more = columns;
  and_more.push_back(Texts("more", {"x"}));
  more.rows = TableOf(and_more);
  // The batches of the first, the second, the third and the fifth request.
  EXPECT_THAT(BatchesOf({Rows(2, 0), Rows(3, 1, {ScoreOutput::kLogit}), other_type}),
              ElementsAre(1, 1, 1));
  EXPECT_THAT(BatchesOf({Rows(2, 0), Rows(3, 1), more, more, Rows(1, 1, {ScoreOutput::kLogit})}),
              ElementsAre(2, 2, 1));
}

TEST_F(JoinedAnswersTest, AMistakeIsToldToItsOwnRequestAlone) {
  Open(R"("type": "wide_deep", "embedding_dim": 4, "hidden": [8])");
  const auto asking = [](const Cells& ages) {
    ScoreRequest request;
    request.rows =
        TableOf({Texts("user", Cells(ages.size(), "u1")), Texts("age", ages), Texts("tags", ages)});
    return request;
  };
  const ScoreRequest first = asking({"1", "2"}), wrong = asking({"1", "old", ""}),
                     last = asking({"", "0.5"});
  EXPECT_THAT(BatchesOf({first, last}), ElementsAre(2));
  const auto alone = model_->Score(wrong, kNoClock);
  ASSERT_FALSE(alone.ok());
  EXPECT_THAT(alone.status().message(), HasSubstr("old"));
  const auto answers = Together({first, wrong, last});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[1].status().message(), alone.status().message()) << "the row has its number";
  for (const size_t right : {0, 2}) {
    ASSERT_TRUE(answers[right].ok());
    EXPECT_TRUE(answers[right]->begins_batch);
    const auto expected = model_->Score(right == 0 ? first : last, kNoClock);
    EXPECT_EQ(BitsOf(answers[right]->outputs[0].numbers), BitsOf(expected->outputs[0].numbers));
  }
  const auto other = Together({Rows(1, 0), Rows(1, 1)}, model_->step() + 1);
  for (const auto& answer : other) {
    EXPECT_EQ(answer.status().code(), Code::kNotFound);
    EXPECT_THAT(answer.status().message(), HasSubstr("does not answer"));
  }
}

TEST_F(JoinedAnswersTest, LinesAreNeverJoined) {
  WriteText(*files_, "t", "1 1:0.5 7:1\n0 2:1\n1 1:0.25\n0 3:1 7:2\n");
  Train("run", R"("train": ["t"], "format": "libsvm")", R"("type": "logistic")");
  ServedOptions options;
  options.folder = "run";
  options.look_ms = 0;
  auto opened = ServedCheckpoint::Open(options, *files_, *clock_);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  model_ = *std::move(opened);
  ScoreRequest with_label, without;
  with_label.rows = TableOf({Texts("row", {"1 1:0.5 7:1"})});
  without.rows = TableOf({Texts("row", {"1:0.5 7:1"})});
  EXPECT_THAT(BatchesOf({with_label, without, with_label}), ElementsAre(1, 1, 1));
}

}  // namespace
}  // namespace hdps
