// Tests columns that share keys, and features with a dim of their own: the jobs they are parsed to,
// and messages for mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SharedKeysTest, AVocabularyIsPrintedWhereItIsGiven) {
  EXPECT_EQ(PrintJob(Good({})).find("vocabulary"), std::string::npos);
  const Job job = Good({"data.columns.2.vocabulary=items", "data.columns.3.vocabulary=items"});
  EXPECT_EQ(job.data.columns[2].key_space(), "items");
  EXPECT_EQ(job.data.columns[4].key_space(), "e");
  EXPECT_NE(JobDigest(job), JobDigest(Good({})));
  EXPECT_EQ(JobDigest(Good({}, PrintJob(job))), JobDigest(job));
  // The rows are the same: tables do not depend on columns.
  EXPECT_EQ(TablesDigest(job), TablesDigest(Good({})));
  EXPECT_THAT(job.warnings, ElementsAre());
}

TEST(SharedKeysTest, AVocabularyOfOneColumnIsWarnedOf) {
  // The name of another column is a vocabulary.
  EXPECT_THAT(Good({"data.columns.2.vocabulary=d"}).warnings, ElementsAre());
  EXPECT_THAT(
      Good({"data.columns.2.vocabulary=items", "data.columns.3.vocabulary=itemz"}).warnings,
      ElementsAre("no column shares the vocabulary \"items\" of \"c\"; did you mean \"itemz\"?",
                  "no column shares the vocabulary \"itemz\" of \"d\"; did you mean \"items\"?"));
  EXPECT_THAT(Good({"data.columns.1.vocabulary=d"}).warnings,
              ElementsAre(HasSubstr("data.columns.1.vocabulary is ignored")));
}

TEST(SharedKeysTest, AColumnMayHaveIds) {
  EXPECT_EQ(PrintJob(Good({})).find("vocab_size"), std::string::npos);
  EXPECT_EQ(JobDigest(Good({"data.columns.2.vocab_size=0"})), JobDigest(Good({})));
  const Job job = Good({"data.columns.2.vocab_size=100"});
  EXPECT_EQ(job.data.columns[2].vocab_size, 100u);
  EXPECT_NE(JobDigest(job), JobDigest(Good({})));
  EXPECT_EQ(JobDigest(Good({}, PrintJob(job))), JobDigest(job));
  EXPECT_EQ(TablesDigest(job), TablesDigest(Good({})));
  EXPECT_THAT(Good({"data.columns.1.vocab_size=9"}).warnings,
              ElementsAre(HasSubstr("data.columns.1.vocab_size is ignored")));
  EXPECT_THAT(Bad({"data.columns.2.vocab_size=-1"}), HasSubstr("data.columns.2.vocab_size"));
}

TEST(SharedKeysTest, ColumnsOfOneVocabularyHaveTheSameIds) {
  EXPECT_THAT(Good({"data.columns.2.vocabulary=d", "data.columns.2.vocab_size=5",
                    "data.columns.3.vocab_size=5"})
                  .warnings,
              ElementsAre());
  EXPECT_THAT(Bad({"data.columns.2.vocabulary=d", "data.columns.2.vocab_size=5"}),
              HasSubstr("data.columns: \"d\" has vocab_size 0, and \"c\", which is of the same "
                        "vocabulary, has 5; give both the same"));
}

const LayerSpec& LayerOf(const Job& job, const std::string& name) {
  for (const LayerSpec& layer : job.model.layers) {
    if (layer.name == name) return layer;
  }
  ADD_FAILURE() << "no layer " << name;
  return job.model.layers[0];
}

TEST(FeatureDimsTest, FeaturesOfOneDimHaveATableTogether) {
  const Job job = Good({R"(model.feature_dims={"c": 4, "d": 32, "cross": 4, "pair": 16})",
                        R"(model.deep_schedule={"kind": "cosine", "decay_steps": 9})"});
  std::vector<std::string> tables;
  for (const TableSpec& table : job.tables) {
    tables.push_back(table.name + " " + std::to_string(table.dim));
    EXPECT_EQ(table.schedule.decay_steps, table.name.starts_with("deep") ? 9u : 0u) << table.name;
  }
  EXPECT_THAT(tables, ElementsAre("wide 1", "deep 16", "deep_4 4", "deep_32 32", "dense 1024"));
  // 16 is the default embedding_dim.
  EXPECT_THAT(LayerOf(job, "embedding").features, ElementsAre("e", "range", "pair"));
  EXPECT_THAT(LayerOf(job, "embedding_4").features, ElementsAre("c", "cross"));
  EXPECT_EQ(LayerOf(job, "embedding_4").table, "deep_4");
  EXPECT_THAT(LayerOf(job, "embedding_all").inputs,
              ElementsAre("embedding", "embedding_4", "embedding_32"));
  EXPECT_EQ(JobDigest(Good({}, PrintJob(job))), JobDigest(job));
  // If all features have another dim, no table is left without rows.
  const Job only = Good({"model.deep_features=[\"c\"]", R"(model.feature_dims={"c": 4})"});
  EXPECT_EQ(only.tables[1].name, "deep_4");
  EXPECT_EQ(only.tables.size(), 3u);
  EXPECT_EQ(JobDigest(Good({"model.feature_dims={}"})), JobDigest(Good({})));
}

TEST(FeatureDimsTest, RecipesTakeThemWhereVectorsStandSideBySide) {
  const std::string dims = R"("feature_dims":{"c":4})";
  for (const std::string type :
       {R"("type":"dcn_v2")", R"("type":"dcn_mix")", R"("type":"mmoe")", R"("type":"ple")",
        R"("type":"din","history":"d","target":"e")", R"("type":"bst","history":"d","target":"e")",
        R"("type":"dien","history":"d","target":"e")",
        R"("type":"two_tower","user_features":["c","d"],"item_features":["e"])"}) {
    SCOPED_TRACE(type);
    const Job job = Good({"model={" + type + "," + dims + "}"});
    EXPECT_EQ(job.tables.size(), 3u);
  }
  for (const std::string type :
       {"fm", "deepfm", "nfm", "pnn", "xdeepfm", "fibinet", "dlrm", "autoint"}) {
    SCOPED_TRACE(type);
    EXPECT_THAT(Bad({"model={\"type\":\"" + type + "\"," + dims + "}"}),
                HasSubstr("model.feature_dims: " + type +
                          " computes with the vectors of features as such"));
  }
}

TEST(FeatureDimsTest, MistakesAreAnswered) {
  EXPECT_THAT(Bad({R"(model.feature_dims={"crosss": 4})"}),
              HasSubstr("model.feature_dims: \"crosss\" is no sparse feature of the data; did you "
                        "mean \"cross\"?"));
  EXPECT_THAT(Bad({R"(model.feature_dims={"c": 4})", "model.deep_features=[\"d\"]"}),
              HasSubstr("no embedding of this model reads \"c\""));
  for (const std::string value : {R"({"c": 0})", R"({"c": 5000})", R"({"c": "4"})", "[4]", "4"}) {
    EXPECT_THAT(Bad({"model.feature_dims=" + value}),
                HasSubstr("is not an object of names, each with a whole number from 1 to 4096"));
  }
  EXPECT_THAT(Bad({R"(model={"type":"din","history":"c","target":"d","feature_dims":{"d":4}})"}),
              HasSubstr("\"d\" is compared with the other of history and target"));
  EXPECT_THAT(Good({R"(model={"type":"logistic","feature_dims":{"c":4}})"}).warnings[0],
              HasSubstr("model.feature_dims is ignored"));
}

}  // namespace
}  // namespace hdps
