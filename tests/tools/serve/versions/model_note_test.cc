// Tests what models of each format and loss take and give.
#include "tools/serve/versions/model_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Job JobOf(const std::string& data, const std::string& model) {
  const Result<Job> job = ParseJob(R"({"data": {"train": ["t"], )" + data + R"(}, "model": {)" +
                                       model + R"(, "device": "cpu"}})",
                                   "job.json", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

std::vector<std::string> TextOf(const std::vector<TensorNote>& tensors) {
  std::vector<std::string> texts;
  for (const TensorNote& tensor : tensors) {
    texts.push_back(tensor.name + " " + tensor.datatype + " " + std::to_string(tensor.width));
  }
  return texts;
}

constexpr const char* kTwoColumns =
    R"("columns": [{"name": "y", "type": "label"}, {"name": "user"}, {"name": "item"}])";
constexpr const char* kLogistic = R"("type": "logistic")";

std::vector<std::string> OutputsOf(const std::string& data, const std::string& model) {
  const Job job = JobOf(data, model);
  return TextOf(NoteOf("m", job, job.data)->outputs);
}

TEST(ModelNoteTest, InputsAreTheCellsOfFeatures) {
  const Job job = JobOf(
      R"("columns": [{"name": "y", "type": "label"}, {"name": "user"},
         {"name": "w", "type": "weight"}, {"name": "age", "type": "numeric"},
         {"name": "tags", "type": "multi"}, {"name": "skipped", "type": "skip"},
         {"name": "age_text", "from": "age"}],
         "features": [{"name": "cross", "from": ["user", "age_text"]}])",
      kLogistic);
  const Result<ModelNote> note = NoteOf("m", job, job.data);
  ASSERT_TRUE(note.ok()) << note.status().message();
  EXPECT_EQ(note->name, "m");
  EXPECT_TRUE(note->has_columns);
  // The cell of age is a number and a text.
  EXPECT_THAT(TextOf(note->inputs), ElementsAre("user BYTES 1", "age BYTES 1", "tags BYTES 1"));
}

TEST(ModelNoteTest, FormatsWithoutColumnsTakeTheirLines) {
  for (const char* const format : {"libsvm", "libffm", "libfm"}) {
    const Job job = JobOf(std::string("\"format\": \"") + format + "\"", kLogistic);
    const Result<ModelNote> note = NoteOf("m", job, job.data);
    ASSERT_TRUE(note.ok()) << note.status().message();
    EXPECT_FALSE(note->has_columns);
    EXPECT_THAT(TextOf(note->inputs), ElementsAre("row BYTES 1"));
  }
  DataSpec images;
  images.format = DataFormat::kIdx;
  EXPECT_THAT(NoteOf("m", JobOf(kTwoColumns, kLogistic), images).status().message(),
              HasSubstr("expected csv, criteo"));
}

TEST(ModelNoteTest, OutputsAreNamedByLossAndTask) {
  EXPECT_THAT(OutputsOf(kTwoColumns, kLogistic), ElementsAre("probability FP32 1", "logit FP32 1"));
  EXPECT_THAT(OutputsOf(kTwoColumns, R"("type": "logistic", "classes": 3)"),
              ElementsAre("probabilities FP32 3", "logit FP32 3"));
  EXPECT_THAT(OutputsOf(kTwoColumns, R"("type": "logistic", "loss": "squared_error")"),
              ElementsAre("score FP32 1", "logit FP32 1"));
  EXPECT_THAT(OutputsOf(R"("columns": [{"name": "click", "type": "label"},
                   {"name": "price", "type": "label"}, {"name": "user"}])",
                        R"("type": "mmoe", "embedding_dim": 4, "tasks": [{"label": "click"},
                   {"label": "price", "loss": "squared_error"}])"),
              ElementsAre("click.probability FP32 1", "price.score FP32 1", "logit FP32 2"));
}

TEST(ModelNoteTest, ColumnsOfTasksAreTakenApart) {
  const Job job = JobOf(R"("columns": [{"name": "click", "type": "label"},
                           {"name": "price", "type": "label"}, {"name": "user"}])",
                        R"("type": "mmoe", "embedding_dim": 4, "tasks": [{"label": "click"},
                           {"label": "price", "loss": "squared_error"}])");
  const ModelNote note = *NoteOf("m", job, job.data);
  ScoredRows scored;
  scored.rows = 2;
  scored.predictions = {1, 2, 3, 4};
  scored.logits = {5, 6, 7, 8};
  const auto outputs =
      OutputColumns(note, job, std::vector{ScoreOutput::kLogit, ScoreOutput::kPrediction}, scored);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  ASSERT_EQ(outputs->size(), 3u);
  EXPECT_EQ((*outputs)[0].name, "logit");
  EXPECT_EQ((*outputs)[0].width, 2u);
  EXPECT_THAT((*outputs)[0].numbers, ElementsAre(5, 6, 7, 8));
  EXPECT_EQ((*outputs)[1].name, "click.probability");
  EXPECT_THAT((*outputs)[1].numbers, ElementsAre(1, 3));
  EXPECT_EQ((*outputs)[2].name, "price.score");
  EXPECT_THAT((*outputs)[2].numbers, ElementsAre(2, 4));
  EXPECT_THAT(
      OutputColumns(note, job, std::vector{ScoreOutput::kUserVector}, scored).status().message(),
      HasSubstr("expected click.probability, price.score, logit"));
}

}  // namespace
}  // namespace hdps
