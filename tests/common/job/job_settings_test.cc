// Tests every setting of the job file by its descriptor: default, type, range, words,
// documentation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/layers/layer_record.h"
#include "common/job/model_graph.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/text/job_sections.h"
#include "tests/common/job/job_samples.h"
#include "tests/common/job/setting_places.h"
#include "tests/common/job/setting_reference.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobSettingsTest : public ::testing::Test {
 protected:
  const Section whole_ = JobSection(BuiltInRegistry());
  const std::vector<SettingPlace> places_ = PlacesOf(whole_);
};

TEST_F(JobSettingsTest, DefaultsThatAreShownHold) {
  // The job needs another value there, or the place has its own default.
  const std::set<std::string> other = {
      "name",          "data.train",   "data.columns",        "data.features",      "model.tables",
      "model.history", "model.target", "model.user_features", "model.item_features"};
  int compared = 0;
  for (SettingPlace place : places_) {
    const std::string& part = place.section->name;
    if (!place.setting->shows_default || other.contains(place.path)) continue;
    if (part == "feature" || part == "layer" || place.path.starts_with("model.wide_o")) continue;
    SCOPED_TRACE(place.path);
    const JsonValue standard = place.setting->print(place.section->defaults.get(), Form::kWhole);
    const Job without = Good(place.overrides);
    place.overrides.push_back(place.path + "=" + PrintJsonLine(standard));
    const Job with = Good(place.overrides);
    EXPECT_EQ(PrintJob(with), PrintJob(without));
    EXPECT_EQ(with.warnings, without.warnings);
    ++compared;
  }
  EXPECT_GT(compared, 80);
}

TEST_F(JobSettingsTest, EveryOneRefusesAnotherTypeAndSaysWhereAndWhat) {
  for (const SettingPlace& place : places_) {
    SCOPED_TRACE(place.path);
    for (const char* wrong : {"null", "{\"odd\": 1}", "[[]]"}) {
      std::vector<std::string> overrides = place.overrides;
      overrides.push_back(place.path + "=" + wrong);
      const bool none_fits = place.setting->fits && place.setting->fits(JsonValue());
      if (none_fits && wrong == std::string("null")) continue;
      // A count for a feature that the data lacks is only warned of.
      if (place.path == "data.distinct" && wrong[0] == '{') continue;
      EXPECT_THAT(Bad(overrides), HasSubstr("--set: " + place.path));
    }
  }
}

TEST_F(JobSettingsTest, EveryRangeIsChecked) {
  int ranges = 0;
  for (const SettingPlace& place : places_) {
    const Setting& setting = *place.setting;
    const bool whole = setting.kind == ValueKind::kInteger;
    if (setting.is_list || setting.fits || (!whole && setting.kind != ValueKind::kNumber)) continue;
    SCOPED_TRACE(place.path);
    std::vector<std::string> outside = {"-1", "1.5", "\"7\"", "true"};
    if (!whole) outside = {"-1e+301", "1e+301", "\"7\"", "true"};
    if (setting.min == 1) outside.push_back("0");
    if (setting.max < 9e15 && whole) {
      outside.push_back(std::to_string(static_cast<int64_t>(setting.max) + 1));
    }
    for (const std::string& value : outside) {
      std::vector<std::string> overrides = place.overrides;
      overrides.push_back(place.path + "=" + value);
      EXPECT_THAT(Bad(overrides), HasSubstr("--set: " + place.path + ": " + value));
    }
    ++ranges;
  }
  EXPECT_GT(ranges, 50);
}

TEST_F(JobSettingsTest, EveryWordIsReadAndPrintedAgain) {
  int words = 0;
  for (const SettingPlace& place : places_) {
    if (!place.setting->print) continue;  // An alias of another setting.
    void* const object = const_cast<void*>(place.section->defaults.get());
    std::vector<std::string> warnings;
    const JsonValue standard = place.setting->print(object, Form::kWhole);
    for (const std::string& word : place.setting->words) {
      // Fan-based inits are printed as the resulting distribution.
      const bool by_fan = std::ranges::find(FanInits(), word) != FanInits().end();
      if (by_fan && place.section->name == "init") continue;
      SCOPED_TRACE(place.path + "=" + word);
      place.setting->read(JsonValue::Text(word), object, {"", &warnings});
      EXPECT_EQ(place.setting->print(object, Form::kWhole).text, word);
      ++words;
    }
    if (place.setting->words.empty()) continue;
    // Other tests of this process begin with these defaults too.
    place.setting->read(standard, object, {"", &warnings});
    EXPECT_EQ(PrintJsonLine(place.setting->print(object, Form::kWhole)), PrintJsonLine(standard))
        << place.path;
  }
  EXPECT_GT(words, 80);
}

TEST_F(JobSettingsTest, WhatIsDoneAboutOldRowsIsIgnoredInSync) {
  const std::vector<std::string> all = {"train.max_staleness=3", "train.delay_compensation=0.5",
                                        "train.staleness_rate=true"};
  const std::string why = " is ignored: it counts only where mode is async or ssp";
  const Job sync = Good(all);
  EXPECT_THAT(sync.warnings,
              ElementsAre("train.max_staleness" + why, "train.delay_compensation" + why,
                          "train.staleness_rate" + why));
  EXPECT_EQ(PrintJob(sync), PrintJob(Good({})));
  for (const char* mode : {"train.mode=async", "train.mode=ssp"}) {
    std::vector<std::string> with = all;
    with.insert(with.end(), {mode, "train.staleness_bound=4"});
    const Job job = Good(with);
    EXPECT_EQ(job.train.max_staleness, 3u);
    EXPECT_EQ(job.train.delay_compensation, 0.5);
    EXPECT_TRUE(job.train.staleness_rate);
    EXPECT_THAT(
        job.warnings,
        testing::Each(testing::AnyOf(
            HasSubstr("staleness_bound"),
            HasSubstr("train.staleness_rate does not move the learning rate of \"wide\""))));
  }
}

TEST_F(JobSettingsTest, RowsThatAreOldBecauseTheyAreAskedForAheadAreSaid) {
  const std::vector<std::string> ahead = {"train.mode=async", "train.lookahead=4",
                                          "model.wide_optimizer.kind=adagrad"};
  const auto warnings = [&](const std::string& more) {
    std::vector<std::string> with = ahead;
    with.push_back(more);
    return Good(with).warnings;
  };
  EXPECT_THAT(warnings("train.max_staleness=4"), ElementsAre());
  EXPECT_THAT(warnings("train.max_staleness=3"),
              ElementsAre(AllOf(HasSubstr("train.max_staleness = 3 leaves out many gradients"),
                                HasSubstr("train.lookahead is 4"))));
  EXPECT_THAT(warnings("train.staleness_rate=true"),
              ElementsAre(HasSubstr("train.staleness_rate lowers the rate in every step")));
}

TEST_F(JobSettingsTest, WhatIsDoneAboutOldRowsHasRanges) {
  const std::string async = "train.mode=async";
  EXPECT_THAT(Bad({async, "train.max_staleness=-1"}),
              AllOf(HasSubstr("train.max_staleness"), HasSubstr("-1")));
  EXPECT_THAT(Bad({async, "train.max_staleness=1.5"}),
              AllOf(HasSubstr("train.max_staleness"), HasSubstr("1.5")));
  EXPECT_THAT(Bad({async, "train.delay_compensation=-0.5"}),
              AllOf(HasSubstr("train.delay_compensation"), HasSubstr("-0.5")));
  EXPECT_THAT(Bad({async, "train.staleness_rate=2"}),
              AllOf(HasSubstr("train.staleness_rate"), HasSubstr("2")));
}

TEST_F(JobSettingsTest, WithoutEffectTheyWarnAndLeaveNoTrace) {
  const Job job = Good({"train.staleness_bound=3", "parallel.collective=gloo",
                        "model.cross_layers=2", "model.deep_optimizer.l1=0.5"});
  EXPECT_THAT(job.warnings,
              ElementsAre(testing::StartsWith(
                              "model.cross_layers is ignored: it counts only where type is dcn_v2"),
                          "model.deep_optimizer.l1 is ignored: it counts only where kind is ftrl",
                          "train.staleness_bound is ignored: it counts only where mode is ssp",
                          "parallel.collective is ignored: it counts only where dense_exchange is "
                          "allreduce"));
  EXPECT_EQ(PrintJob(job), PrintJob(Good({})));
  EXPECT_EQ(PrintJob(Good({"model.deep_optimizer={}"})), PrintJob(Good({})));
  EXPECT_THAT(Good({kGraph, "model.hidden=[3]"}).warnings,
              ElementsAre(testing::StartsWith(
                  "model.hidden is ignored: it counts only where type is wide_deep or ")));
  EXPECT_THAT(Good({"model.layers=[{\"name\": \"e\", \"kind\": \"embedding\", \"table\": \"t\"},"
                    "{\"name\": \"out\", \"inputs\": [\"e\"], \"units\": 1}]",
                    "model.tables=[{\"name\": \"t\"}]", "model.hidden=[3]"})
                  .warnings,
              ElementsAre("model.hidden is ignored: model.layers spells the model out"));
}

TEST_F(JobSettingsTest, OnesThatDependOnWhatHasNoEffectHaveNone) {
  const Job job = Good({"data.columns.4.transform=standardize", "data.columns.4.mean=3"});
  EXPECT_THAT(
      job.warnings,
      ElementsAre("data.columns.4.transform is ignored: it counts only where type is numeric",
                  "data.columns.4.mean is ignored: it counts only where transform is standardize"));
  EXPECT_EQ(job.data.columns[4].mean, 0);
}

TEST_F(JobSettingsTest, RequiredOnesAreMissed) {
  int required = 0;
  for (const SettingPlace& place : places_) {
    if (!place.setting->required || place.path.find('.') == place.path.npos) continue;
    const std::string object = place.path.substr(0, place.path.rfind('.'));
    std::vector<std::string> overrides = place.overrides;
    overrides.push_back(object + "={}");
    EXPECT_THAT(Bad(overrides), HasSubstr("--set: " + object)) << place.path;
    EXPECT_THAT(Bad(overrides), HasSubstr("it is missing"));
    ++required;
  }
  EXPECT_EQ(required, 10) << "names of columns, features, evaluation sets, tables, layers, labels; "
                             "a vocabulary's file and checksum; and where from";
}

TEST_F(JobSettingsTest, ConditionsNameASettingAndItsValues) {
  for (const SettingPlace& place : places_) {
    if (!place.setting->only_where.has_value()) continue;
    SCOPED_TRACE(place.path);
    const Setting* on = place.section->Find(place.setting->only_where->key);
    ASSERT_NE(on, nullptr);
    EXPECT_LT(on, place.setting) << "it is read first";
    for (const std::string& value : place.setting->only_where->values) {
      if (on->kind == ValueKind::kBool) continue;
      EXPECT_THAT(on->words, Contains(value));
    }
  }
}

TEST_F(JobSettingsTest, OneScheduleForAllStandsInEveryTableThatHasNoneOfItsOwn) {
  const std::string all =
      R"(train.schedule={"kind": "cosine", "warmup_steps": 5, "decay_steps": 80, "least": 0.1})";
  const Job job = Good({all, R"(model.deep_schedule={"kind": "constant"})"});
  const ScheduleSpec cosine = {
      .kind = ScheduleKind::kCosine, .warmup_steps = 5, .decay_steps = 80, .least = 0.1};
  ASSERT_EQ(job.tables.size(), 3u);
  EXPECT_EQ(job.tables[0].schedule, cosine);  // The tables are wide, deep and dense.
  EXPECT_EQ(job.tables[1].schedule, ScheduleSpec());
  EXPECT_EQ(job.tables[2].schedule, cosine);
  EXPECT_THAT(job.warnings, ElementsAre(HasSubstr("train.schedule does not move the learning rate "
                                                  "of \"wide\": weights of ftrl")));
  const Job again = Good({}, PrintJob(job));
  EXPECT_EQ(PrintJob(again), PrintJob(job));
  EXPECT_EQ(JobDigest(again), JobDigest(job));
  EXPECT_EQ(again.tables[1].schedule, ScheduleSpec());
  EXPECT_NE(JobDigest(job), JobDigest(Good({})));
  const Job graph = Good(
      {kGraph, "model.tables.0.schedule.kind=step", "model.tables.0.schedule.decay_steps=7", all});
  EXPECT_EQ(graph.tables[0].schedule.decay_steps, 7u);
  EXPECT_EQ(graph.tables[1].schedule, cosine);
}

TEST_F(JobSettingsTest, WhatFtrlDoesNotFollowIsSaid) {
  const Job job = Good({"model.wide_schedule.warmup_steps=9"});
  EXPECT_THAT(job.warnings, ElementsAre("model.wide_schedule is ignored: the learning rate of "
                                        "ftrl follows no schedule"));
  const std::vector<std::string> watched = {"data.validation_share=0.1", "train.epochs=3",
                                            "train.plateau.patience=2"};
  EXPECT_THAT(Good(watched).warnings,
              ElementsAre(HasSubstr("train.plateau does not move the learning rate of \"wide\"")));
  std::vector<std::string> linear = watched;
  linear.push_back("model.type=logistic");
  EXPECT_THAT(Good(linear).warnings, Contains(HasSubstr("rate of \"wide\", \"dense\":")));
  std::vector<std::string> other = watched;
  other.push_back("model.wide_optimizer.kind=adagrad");
  EXPECT_THAT(Good(other).warnings, ElementsAre());
}

TEST_F(JobSettingsTest, PenaltiesAndClippingArePrintedOnlyWhereTheyAre) {
  const Job plain = Good({});
  for (const char* key : {"loss_l1", "loss_l2", "schedule\"", "clip_", "dense_init"}) {
    EXPECT_THAT(PrintJob(plain), testing::Not(HasSubstr(key)));
  }
  const Job job = Good({"model.wide_loss_l1=0.5", "model.deep_loss_l2=0.25",
                        "model.dense_loss_l2=0.125", "train.clip_norm=3", "train.clip_value=2"});
  EXPECT_EQ(job.tables[0].loss_l1, 0.5f);
  EXPECT_EQ(job.tables[1].loss_l2, 0.25f);
  EXPECT_EQ(job.tables[2].loss_l2, 0.125f);
  EXPECT_EQ(job.tables[2].loss_l1, 0);
  const Job again = Good({}, PrintJob(job));
  EXPECT_EQ(PrintJob(again), PrintJob(job));
  EXPECT_EQ(JobDigest(again), JobDigest(job));
}

TEST_F(JobSettingsTest, ALossScaleIsAPowerOfTwoOrChosen) {
  for (const auto& [text, scale] : {std::pair("1024", 1024.0), std::pair("dynamic", 0.0)}) {
    const Job scaled = Good({"parallel.wire=fp16", std::string("train.loss_scale=") + text});
    EXPECT_EQ(scaled.train.loss_scale, scale);
    EXPECT_EQ(Good({}, PrintJob(scaled)).train.loss_scale, scale);
    EXPECT_NE(JobDigest(scaled), JobDigest(Good({"parallel.wire=fp16"})));
  }
  for (const char* text : {"1000", "0.5", "0", "-2", "33554432", "auto", "true"}) {
    const std::string message = Bad({std::string("train.loss_scale=") + text});
    EXPECT_THAT(message, AllOf(HasSubstr("train.loss_scale"), HasSubstr(text),
                               HasSubstr("a power of two from 1 to 16777216, or dynamic")));
  }
}

TEST_F(JobSettingsTest, InitsByFanAreTheUniformOrNormalThatTheyComeTo) {
  const struct {
    const char* word;
    InitKind kind;
    double scale;  // For 8 inputs and 8 outputs.
  } fans[] = {{"xavier_uniform", InitKind::kUniform, std::sqrt(6.0 / 16)},
              {"xavier_normal", InitKind::kNormal, std::sqrt(2.0 / 16)},
              {"he_uniform", InitKind::kUniform, std::sqrt(6.0 / 8)},
              {"he_normal", InitKind::kNormal, std::sqrt(2.0 / 8)}};
  for (const auto& fan : fans) {
    const InitSpec wanted = {fan.kind, static_cast<float>(fan.scale)};
    const std::string kind = std::string("init.kind=") + fan.word;
    const Job job = Good({"model.embedding_dim=8", "model.embedding_" + kind});
    EXPECT_EQ(job.tables[1].init, wanted) << fan.word;
    EXPECT_EQ(Good({}, PrintJob(job)).tables[1].init, wanted);
    EXPECT_EQ(Good({kGraph, "model.tables.0.dim=8", "model.tables.0." + kind}).tables[0].init,
              wanted);
    EXPECT_EQ(FanInit(fan.word, 8, 8), wanted);
  }
  EXPECT_EQ(FanInit("he_normal", 50, 3), FanInit("he_normal", 50, 9));
  EXPECT_THAT(Good({R"(model.embedding_init={"kind": "he_normal", "scale": 2})"}).warnings,
              ElementsAre("model.embedding_init.scale is ignored: that of he_normal follows from "
                          "the dim"));
  EXPECT_EQ(FanInit("normal", 50, 3), (InitSpec{InitKind::kNormal, 0.01f}));
  EXPECT_EQ(FanInit("uniform", 50, 3), (InitSpec{InitKind::kUniform, 0.07f}));
  EXPECT_EQ(FanInit("ones", 50, 3), (InitSpec{InitKind::kConstant, 1.0f}));
  EXPECT_EQ(FanInit("zeros", 50, 3), (InitSpec{InitKind::kZeros, 0.0f}));
  // Applies to dense layers: one layer of a graph, or all of a recipe.
  const Job job = Good({"model.dense_init=he_normal"});
  EXPECT_THAT(PrintJob(job), HasSubstr("\"init\": \"he_normal\""));
  EXPECT_EQ(JobDigest(Good({}, PrintJob(job))), JobDigest(job));
  EXPECT_NE(JobDigest(job), JobDigest(Good({})));
  EXPECT_EQ(JobDigest(Good({"model.dense_init=xavier_uniform"})), JobDigest(Good({})));
  // A layer has its own, of its weights and of its bias.
  const std::string out = "model.layers.1.";
  const Job both = Good({kGraph, out + "weight_init=Normal", out + "bias_init=normal"});
  EXPECT_EQ(JobDigest(Good({}, PrintJob(both))), JobDigest(both));
  EXPECT_EQ(JobDigest(both),
            JobDigest(Good({kGraph, out + "init=normal", out + "bias_init=normal"})));
  EXPECT_NE(JobDigest(both), JobDigest(Good({kGraph, out + "init=normal"})));
  EXPECT_EQ(JobDigest(Good({kGraph, out + "bias_init=zeros"})), JobDigest(Good({kGraph})));
  GraphShape shape;
  MeasureGraph(both.model, both.tables, FeaturesOf(both.data), &shape);
  ASSERT_EQ(shape.nodes[1].shape.tensors.size(), 2u);
  for (const auto& tensor : shape.nodes[1].shape.tensors) {
    EXPECT_EQ(tensor.init, (InitSpec{InitKind::kNormal, 0.01f})) << tensor.part;
  }
}

// Returns the text between two marks of a page.
std::string InDocs(const std::string& mark, const std::string& page = "docs/job_file.md") {
  const std::string doc = ReadText(page);
  const std::string begin = "<!-- " + mark + " -->\n";
  const size_t from = doc.find(begin), to = doc.find("<!-- end of " + mark + " -->");
  if (from == doc.npos || to == doc.npos) return "no marks";
  return doc.substr(from + begin.size(), to - from - begin.size());
}

TEST_F(JobSettingsTest, TheReferenceIsUpToDate) {
  EXPECT_EQ(InDocs("keys"), PrintSettingReference(whole_)) << "run scripts/dev/job_file_docs.sh";
  EXPECT_EQ(InDocs("layers"), PrintLayerReference(BuiltInLayers()));
  EXPECT_EQ(InDocs("recipes"), PrintRecipeReference());
  EXPECT_EQ(InDocs("mindspore", "docs/how_to/coming_from.md"), PrintMindSporeWords());
}

TEST_F(JobSettingsTest, EveryRecipeHasASectionInTheDocs) {
  const std::string doc = ReadText("docs/models.md");
  for (const RecipeRecord& recipe : Recipes()) {
    SCOPED_TRACE(recipe.word);
    const size_t from = doc.find("\n## " + recipe.word + "\n");
    ASSERT_NE(from, doc.npos) << "docs/models.md has no section for it";
    const std::string section = doc.substr(from, doc.find("\n## ", from + 1) - from);
    EXPECT_THAT(section, HasSubstr("\n    logit")) << "its formula";
    for (const RecipeSetting& setting : recipe.settings) {
      EXPECT_THAT(section, HasSubstr("`" + setting.name + "`"));
    }
    if (recipe.paper.empty()) continue;
    const std::string author = recipe.paper.substr(0, recipe.paper.find(' '));
    EXPECT_THAT(section, HasSubstr(author)) << "its source";
  }
}

}  // namespace
}  // namespace hdps
