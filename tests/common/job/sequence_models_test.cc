// Tests recipes and layers for sequences, attention, two towers and several tasks: the graphs they
// are expanded to, and messages for mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> LayerNames(const Job& job) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : job.model.layers) names.push_back(layer.name);
  return names;
}

std::string Recipe(const std::string& settings) { return "model={" + settings + "}"; }

TEST(SequenceModelsTest, AutoIntStacksAttentions) {
  const Job job = Good({Recipe(R"("type":"autoint","attention_layers":2,"attention_heads":4,)"
                               R"("attention_units":8,"hidden":[16])")});
  EXPECT_THAT(LayerNames(job),
              ElementsAre("embedding", "attention1", "attention2", "attention_logit", "numeric",
                          "deep_input", "deep1", "deep_logit", "logit"));
  EXPECT_EQ(job.model.layers[1].units, 32u);
  EXPECT_EQ(job.model.layers[1].numbers.at("heads"), 4);
  EXPECT_THAT(LayerNames(Good({Recipe(R"("type":"autoint","attention_layers":1,"hidden":[])")})),
              ElementsAre("embedding", "attention1", "attention_logit"));
}

TEST(SequenceModelsTest, DinReadsItsHistoryUnpooled) {
  const Job job = Good({"data.columns.4.type=multi",
                        Recipe(R"("type":"din","history":"e","target":"d","history_length":20,)"
                               R"("attention_scores":"softmax","hidden":[8])")});
  EXPECT_THAT(LayerNames(job), ElementsAre("history", "target", "interest", "others", "numeric",
                                           "all", "deep1", "logit"));
  EXPECT_EQ(job.model.layers[0].features, std::vector<std::string>{"e"});
  EXPECT_EQ(job.model.layers[0].numbers.at("length"), 20);
  EXPECT_EQ(job.model.layers[2].words.at("scores"), "softmax");
  EXPECT_THAT(job.model.layers[3].features, ElementsAre("c", "range", "cross", "pair"));
}

TEST(SequenceModelsTest, BstPutsTheTargetBehindItsHistory) {
  const std::string pair = R"("type":"bst","history":"e","target":"d",)";
  const Job job = Good({Recipe(pair + R"("blocks":2,"attention_heads":4,"feed_forward":24,)"
                                      R"("embedding_dropout":0.1,"hidden":[8])")});
  EXPECT_THAT(LayerNames(job),
              ElementsAre("history", "target", "positions", "positions_dropout", "block1", "block2",
                          "interest", "others", "numeric", "all", "deep1", "logit"));
  EXPECT_THAT(job.model.layers[2].inputs, ElementsAre("history", "target"));
  EXPECT_EQ(job.model.layers[5].numbers.at("heads"), 4);
  EXPECT_EQ(job.model.layers[5].units, 24u);
  EXPECT_THAT(job.model.layers[7].features, ElementsAre("c", "range", "cross", "pair"));
  EXPECT_EQ(Good({Recipe(pair + R"("classes":3)")}).model.layers.back().units, 3u);
}

TEST(SequenceModelsTest, DienHasTwoUnitsAndALossBetween) {
  const std::string pair = R"("type":"dien","history":"e","target":"d","hidden":[8])";
  const Job job = Good({Recipe(pair + R"(,"auxiliary_weight":0.5)")});
  EXPECT_THAT(LayerNames(job),
              ElementsAre("history", "target", "interests", "next_item", "evolution", "interest",
                          "others", "numeric", "all", "deep1", "logit"));
  EXPECT_EQ(job.model.layers[3].numbers.at("loss_weight"), 0.5);
  EXPECT_THAT(job.model.layers[4].inputs, ElementsAre("next_item", "target"));
  const Job without = Good({Recipe(pair + R"(,"auxiliary_weight":0)")});
  EXPECT_THAT(without.model.layers[3].inputs, ElementsAre("interests", "target"));
}

TEST(SequenceModelsTest, SasRecComparesItsLastStateWithTheTarget) {
  const Job job = Good({Recipe(R"("type":"sasrec","history":"e","target":"d")")});
  EXPECT_THAT(LayerNames(job),
              ElementsAre("history", "target", "positions", "block1", "interest", "user", "product",
                          "wide", "numeric", "wide_numeric", "wide_sum", "wide_bias", "logit"));
  EXPECT_THAT(job.model.layers[2].inputs, ElementsAre("history"));
  EXPECT_EQ(job.model.layers[3].words.at("sees"), "earlier");
  EXPECT_EQ(job.model.layers[3].words.at("norm"), "before");
  EXPECT_STREQ(OptimizerName(job.tables.back().optimizer), "adam");
}

TEST(SequenceModelsTest, TowersEndInTheirCosine) {
  const Job job = Good({Recipe(R"("type":"two_tower","user_features":["c","d"],)"
                               R"("item_features":["e"],"hidden":[16,8],"temperature":0.05)")});
  EXPECT_THAT(LayerNames(job),
              ElementsAre("user_rows", "numeric", "user_input", "item_rows", "user1", "user_vector",
                          "user", "item1", "item_vector", "item", "cosine", "logit"));
  EXPECT_EQ(job.model.layers[6].numbers.at("temperature"), 0.05);
  EXPECT_EQ(job.model.layers[9].numbers.at("temperature"), 1);
}

TEST(SequenceModelsTest, ExpertsAreMixedByGates) {
  EXPECT_THAT(LayerNames(Good({Recipe(R"("type":"mmoe","hidden":[8])")})),
              ElementsAre("embedding", "numeric", "deep_input", "experts", "task1_gate",
                          "task1_mixture", "task1_deep1", "task1_logit"));
  EXPECT_THAT(
      LayerNames(Good({Recipe(R"("type":"ple","levels":2,"hidden":[])")})),
      ElementsAre("embedding", "numeric", "deep_input", "level1_shared_experts",
                  "level1_task1_experts", "level1_task1_all", "level1_task1_gate",
                  "level1_task1_mixture", "level1_shared_all", "level1_shared_gate",
                  "level1_shared_mixture", "level2_shared_experts", "level2_task1_experts",
                  "level2_task1_all", "level2_task1_gate", "level2_task1_mixture", "task1_logit"));
}

TEST(SequenceModelsTest, ArePrintedAsTheyAre) {
  for (const std::string recipe :
       {R"("type":"autoint")", R"("type":"din","history":"c","target":"d")",
        R"("type":"dien","history":"c","target":"d")", R"("type":"bst","history":"c","target":"d")",
        R"("type":"sasrec","history":"c","target":"d","blocks":2)",
        R"("type":"two_tower","user_features":["c"],"item_features":["d"])", R"("type":"mmoe")",
        R"("type":"ple")"}) {
    SCOPED_TRACE(recipe);
    const Job job = Good({Recipe(recipe)});
    const Job again = Good({}, PrintJob(job));
    EXPECT_EQ(PrintJob(again), PrintJob(job));
    EXPECT_EQ(JobDigest(again), JobDigest(job));
  }
}

TEST(SequenceModelsTest, MistakesInRecipesNameTheSetting) {
  struct Mistake {
    std::string settings;
    std::vector<std::string> needles;
  };
  const Mistake mistakes[] = {
      {R"("type":"din","target":"d")", {"model.history", "din needs it", "sparse feature"}},
      {R"("type":"din","history":"c")", {"model.target", "din needs it"}},
      {R"("type":"din","history":"rnge","target":"d")",
       {"model.history", "\"rnge\"", "did you mean \"range\"?"}},
      {R"("type":"din","history":"c","target":"c")", {"model.target", "the history itself"}},
      {R"("type":"din","history":"c","target":"d","history_length":0)",
       {"model.history_length", "0", "from 1 to 4096"}},
      {R"("type":"din","history":"c","target":"d","attention_scores":"sofmax")",
       {"model.attention_scores", "\"sofmax\"", "did you mean \"softmax\"?"}},
      {R"("type":"dien","history":"c")", {"model.target", "dien needs it"}},
      {R"("type":"dien","history":"c","target":"d","auxiliary_weight":-1)",
       {"model.auxiliary_weight", "-1"}},
      {R"("type":"bst","history":"c")", {"model.target", "bst needs it"}},
      {R"("type":"bst","history":"c","target":"c")", {"model.target", "the history itself"}},
      {R"("type":"bst","history":"c","target":"d","attention_heads":3)",
       {"model.attention_heads", "3 heads", "16 columns", "divisor"}},
      {R"("type":"bst","history":"c","target":"d","blocks":0)", {"model.blocks", "from 1 to 16"}},
      {R"("type":"sasrec","target":"d")", {"model.history", "sasrec needs it"}},
      {R"("type":"sasrec","history":"c","target":"d","feed_forward":0)",
       {"model.feed_forward", "from 1 to 65536"}},
      {R"("type":"sasrec","history":"c","target":"d","deep_features":["e"])",
       {"model.deep_features", "history and the target alone", "bst"}},
      {R"("type":"autoint","attention_heads":65)", {"model.attention_heads", "65", "from 1 to 64"}},
      {R"("type":"autoint","attention_layers":0)", {"model.attention_layers", "from 1 to 16"}},
      {R"("type":"two_tower","user_features":["c"])",
       {"model.item_features", "two_tower needs it"}},
      {R"("type":"two_tower","user_features":["c","q"],"item_features":["d"])",
       {"model.user_features", "\"q\" is no sparse feature"}},
      {R"("type":"two_tower","user_features":["c"],"item_features":["d"],"hidden":[])",
       {"model.hidden", "width of both vectors"}},
      {R"("type":"two_tower","user_features":["c"],"item_features":["d"],"temperature":0)",
       {"model.temperature", "0"}},
      {R"("type":"mmoe","experts":0)", {"model.experts", "from 1 to 256"}},
      {R"("type":"ple","levels":9)", {"model.levels", "9", "from 1 to 8"}},
      {R"("type":"esmm")", {"model.tasks", "esmm learns two"}},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.settings);
    const std::string message = Bad({Recipe(mistake.settings)});
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
}

std::string Graph(const std::string& layers) {
  return R"(model={"type":"graph","tables":[{"name":"t","dim":4}],"layers":[)"
         R"({"name":"e","kind":"embedding","table":"t"},)"
         R"({"name":"s","kind":"sequence","table":"t","features":["c"],"length":3},)" +
         layers +
         R"(,{"name":"all","kind":"concat","inputs":["e","s","x"]},)"
         R"({"name":"out","inputs":["all"],"units":1}]})";
}

TEST(SequenceModelsTest, MistakesInLayersNameTheInput) {
  struct Mistake {
    std::string layer;
    std::vector<std::string> needles;
  };
  const std::string n = R"({"name":"n","kind":"numeric"},)";
  const Mistake mistakes[] = {
      {R"({"name":"x","kind":"sequence","table":"t"})", {"layers.2.features", "of one feature"}},
      {R"({"name":"x","kind":"sequence","table":"t","features":["c"],"length":2.5})",
       {"layers.2.length", "whole number"}},
      {R"({"name":"x","kind":"sequence","table":"q","features":["c"]})",
       {"layers.2.table", "\"q\" is none of model.tables"}},
      {R"({"name":"x","kind":"sequence","table":"t","features":["c"],"length":5000})",
       {"layers.2.length", "5000", "from 1 to 4096"}},
      {R"({"name":"x","kind":"din","inputs":["e","s"],"units":4})",
       {"layers.2.inputs", "\"e\"", "no layer of kind sequence"}},
      {R"({"name":"x","kind":"din","inputs":["s","e"],"units":4})",
       {"layers.2.inputs", "\"e\"", "as wide as a vector of \"s\", 4"}},
      {R"({"name":"x","kind":"din","inputs":["s"],"units":4})", {"1 inputs", "take 2"}},
      {R"({"name":"x","kind":"positions","inputs":["e"]})",
       {"layers.2.inputs", "\"e\"", "no sequence"}},
      {R"({"name":"x","kind":"positions","inputs":["s","e"]})",
       {"layers.2.inputs", "\"e\"", "as wide as a vector of \"s\", 4"}},
      {R"({"name":"x","kind":"transformer","inputs":["e"],"units":4})",
       {"layers.2.inputs", "\"e\"", "no sequence"}},
      {R"({"name":"x","kind":"transformer","inputs":["s"],"units":4,"heads":3})",
       {"layers.2.heads", "3 heads", "4 columns", "divisor"}},
      {R"({"name":"x","kind":"transformer","inputs":["s"],"units":4,"sees":"later"})",
       {"layers.2.sees", "\"later\"", "earlier"}},
      {R"({"name":"x","kind":"gru","inputs":["e"],"units":4})",
       {"layers.2.inputs", "\"e\"", "no sequence"}},
      {R"({"name":"g","kind":"gru","inputs":["s"],"units":5},)"
       R"({"name":"x","kind":"next_item","inputs":["g","s"]})",
       {"layers.3.inputs", "\"g\" (width 15)", "\"s\" (width 12)", "of one dim"}},
      {R"({"name":"x","kind":"last_vector","inputs":["e"]})",
       {"layers.2.inputs", "\"e\"", "no sequence"}},
      {n + R"({"name":"x","kind":"attention","inputs":["n"],"units":4})",
       {"layers.3.inputs", "\"n\"", "vectors of one dim"}},
      {R"({"name":"x","kind":"attention","inputs":["e"],"units":4,"heads":3})",
       {"layers.2.units", "4 columns", "3 heads"}},
      {R"({"name":"x","kind":"attention","inputs":["e"],"units":4,"heads":1.5})",
       {"layers.2.heads", "whole number"}},
      {n + R"({"name":"g","inputs":["n"],"units":5},)"
           R"({"name":"x","kind":"mixture","inputs":["e","g"]})",
       {"layers.4.inputs", "as many experts as \"g\" (width 5)"}},
      {R"({"name":"x","kind":"inner","inputs":["e","s"]})", {"layers.2.inputs", "one width"}},
      {R"({"name":"x","kind":"towers","inputs":["e","s"]})", {"layers.2.inputs", "one width"}},
      {R"({"name":"x","kind":"joint","inputs":["e","s"]})", {"layers.2.inputs", "one width"}},
      {R"({"name":"x","kind":"normalize","inputs":["e"],"temperature":0})",
       {"layers.2.temperature", "0"}},
      {R"({"name":"x","kind":"embedding","table":"t","pooling":"maximum"})",
       {"layers.2.pooling", "\"maximum\"", "max"}},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.layer);
    const std::string message = Bad({Graph(mistake.layer)});
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
}

}  // namespace
}  // namespace hdps
