// Tests what a job takes of another job's rows and dense weights.
#include "common/job/tables/init_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string ResultOf(const InitMatch& match, const std::string& name) {
  for (const TakenLine& line : match.lines) {
    if (line.name == name) return line.result;
  }
  return "no line";
}

TEST(InitMatchTest, AJobTakesEverythingOfItself) {
  const Job job = Good({});
  const InitMatch match = MatchInit(job, job);
  ASSERT_EQ(match.tables.size(), job.tables.size());
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    EXPECT_EQ(match.tables[t].to.value, t);
    EXPECT_EQ(match.tables[t].from.value, t);
    EXPECT_TRUE(match.tables[t].state);
  }
  EXPECT_EQ(match.TakenTensors().size(), match.tensors.size());
  for (const auto& [from, to] : match.tensors) EXPECT_EQ(from, to);
  for (const TakenLine& line : match.lines) EXPECT_TRUE(line.taken) << line.name;
  EXPECT_EQ(ResultOf(match, "wide"), "taken with its state of ftrl");
}

TEST(InitMatchTest, DimsShapesAndRulesDecide) {
  const Job job = Good({});
  const InitMatch dims = MatchInit(job, Good({"model.embedding_dim=3"}));
  EXPECT_EQ(ResultOf(dims, "deep"), "begins anew: another dim");
  EXPECT_EQ(ResultOf(dims, "wide"), "taken with its state of ftrl");
  const InitMatch rules = MatchInit(job, Good({"model.wide_optimizer.kind=sgd"}));
  EXPECT_EQ(ResultOf(rules, "wide"), "taken; state begins anew: ftrl here, sgd there");
  EXPECT_EQ(ResultOf(MatchInit(Good({"model.wide_optimizer.kind=sgd"}), job), "wide"),
            "taken; state begins anew: sgd here, ftrl there");
  EXPECT_EQ(ResultOf(MatchInit(Good({"model.wide_optimizer.kind=sgd"}),
                               Good({"model.wide_optimizer.kind=sgd"})),
                     "wide"),
            "taken");
  // Settings of a rule are no part of the state.
  EXPECT_TRUE(MatchInit(job, Good({"model.wide_optimizer.learning_rate=0.5"})).tables[0].state);
}

// Tensors keep their names where another one comes before them, and get its place.
TEST(InitMatchTest, TensorsAreFoundByTheirNames) {
  const std::string one = R"(model={"type": "graph", "tables": [{"name": "t"}], "layers": [)"
                          R"({"name": "e", "kind": "embedding", "table": "t"},)"
                          R"({"name": "out", "inputs": ["e"], "units": 1}]})";
  const std::string two = R"(model={"type": "graph", "tables": [{"name": "t"}], "layers": [)"
                          R"({"name": "e", "kind": "embedding", "table": "t"},)"
                          R"({"name": "new", "inputs": ["e"], "units": 1},)"
                          R"({"name": "old", "inputs": ["e"], "units": 1},)"
                          R"({"name": "out", "kind": "sum", "inputs": ["new", "old"]}]})";
  std::string renamed = one;
  renamed.replace(renamed.find("\"out\""), 5, "\"old\"");
  const InitMatch match = MatchInit(Good({two}), Good({renamed}));
  EXPECT_THAT(match.tensors, ElementsAre(std::pair(0u, 2u), std::pair(1u, 3u)));
  EXPECT_THAT(match.TakenTensors(), ElementsAre(2u, 3u));
  EXPECT_EQ(ResultOf(match, "new.weight"), "not there: begins anew");
  EXPECT_EQ(ResultOf(MatchInit(Good({renamed}), Good({two})), "new.weight"),
            "nothing of the job has this name");
}

TEST(InitMatchTest, FieldSliceTakesOnlyWhatStaysInItsShard) {
  const Job fields = Good({"model.slice_mode=field_slice"});
  EXPECT_TRUE(MatchInit(fields, fields).any());
  const std::string why =
      "begins anew: field_slice places a row by its feature, and features are others there";
  EXPECT_EQ(ResultOf(MatchInit(fields, Good({})), "deep"), why);
  EXPECT_EQ(ResultOf(MatchInit(fields, Good({"model.slice_mode=field_slice", "cluster.shards=8"})),
                     "deep"),
            why);
  EXPECT_EQ(ResultOf(MatchInit(Good({}), fields), "wide"), "taken with its state of ftrl");
}

TEST(InitMatchTest, JobsWithoutACommonNameTakeNothing) {
  const InitMatch match = MatchInit(Good({"model.type=logistic"}), Good({kGraph}));
  EXPECT_FALSE(match.any());
  EXPECT_THAT(match.tensors, IsEmpty());
  EXPECT_EQ(ResultOf(match, "t"), "nothing of the job has this name");
}

TEST(InitMatchTest, TheTableOfLinesHasColumns) {
  const std::vector<TakenLine> lines = {{"wide", "dim 1", "-", "not there: begins anew"},
                                        {"deep\n", "dim 16", "dim 16", "taken", true}};
  EXPECT_THAT(TakenText(lines), ElementsAre("wide      dim 1   -       not there: begins anew",
                                            "deep\\x0a  dim 16  dim 16  taken"));
}

}  // namespace
}  // namespace hdps
