// Tests the defaults of every recipe on small data: never worse than a constant, and near the best
// where a linear model is the truth.
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/recipes/recipe_record.h"
#include "common/platform/monotonic_clock.h"
#include "tests/share.h"
#include "tests/tools/planted_sets.h"
#include "tools/local_cluster.h"

namespace hdps {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kEvalRows = 4000;
constexpr int kSeeds = 3;
constexpr double kBehindConstantMax = 0.02;  // Most by which a model may be behind, in logloss.
constexpr double kBehindBestMax = 0.05;      // Most by which a model may be behind, in AUC.

// Returns one seed for each change, and all for the full tests: docs/records/night.md.
int Seeds() { return AllTestsAreAsked() ? kSeeds : 1; }

// Returns the short form of a recipe, with only what it requires.
Json ModelOf(const RecipeRecord& recipe) {
  Json model = {{"type", recipe.word}};
  if (recipe.Find("history") != nullptr) model["history"] = "m";
  if (recipe.Find("target") != nullptr) model["target"] = "a";
  if (recipe.Find("user_features") != nullptr) {
    model["user_features"] = {"m", "b"};
    model["item_features"] = {"a"};
  }
  if (recipe.word == "esmm") model["tasks"] = {{{"label", "y"}}, {{"label", "z"}}};
  return model;
}

// Results of training and evaluation on the rows of one seed.
struct Outcome {
  double behind_constant = 0;  // Logloss; below 0: the model has learned.
  double behind_best = 0;      // Difference in AUC.
};

// Figures that are known to be worse than the others, with their values: docs/models.md.
struct KnownFigure {
  const char *recipe, *set;
  double behind_constant = kBehindConstantMax, behind_best = kBehindBestMax;
};
constexpr KnownFigure kKnown[] = {
    // Only products: a category acts only through its product with the vector of the numbers.
    {.recipe = "dlrm", .set = "categories", .behind_best = 0.12},
    // A cosine over 0.1 begins anywhere in +-2, and no term depends on one feature alone.
    {.recipe = "two_tower", .set = "categories", .behind_best = 0.09},
    {.recipe = "two_tower", .set = "amounts", .behind_best = 0.08},
    {.recipe = "two_tower", .set = "rare_ids", .behind_constant = 0.12, .behind_best = 0.08},
    {.recipe = "two_tower", .set = "noise", .behind_constant = 0.12},
    {.recipe = "two_tower", .set = "one_number", .behind_constant = 0.05},
    // Numbers act through weights of the wide part alone, which learn at the rate of the blocks.
    {.recipe = "sasrec", .set = "one_number", .behind_best = 0.17},
    {.recipe = "sasrec", .set = "skewed", .behind_best = 0.12},
    {.recipe = "sasrec", .set = "amounts", .behind_best = 0.12},
};

KnownFigure LimitsOf(const RecipeRecord& recipe, const PlantedSet& set) {
  for (const KnownFigure& known : kKnown) {
    if (known.recipe == recipe.word && known.set == set.name) return known;
  }
  return {"", ""};
}

// Returns whether the recipe sees the decisive columns: an mlp sees only numbers.
bool SeesAll(const RecipeRecord& recipe, const PlantedSet& set) {
  return recipe.sparse() || set.numbers_alone;
}

class DefaultsTest : public testing::TestWithParam<std::string> {
 protected:
  Outcome Train(const RecipeRecord& recipe, const PlantedSet& set, uint64_t seed) {
    const PlantedRows train = DrawRows(set, set.rows, 2 * seed);
    const PlantedRows eval = DrawRows(set, kEvalRows, 2 * seed + 1);
    const bool tasks = recipe.word == "esmm";
    const Json job = {
        {"name", "defaults"},
        {"seed", seed},
        {"data",
         {{"train", {"train.csv"}}, {"eval", {"eval.csv"}}, {"columns", ColumnsOf(set, tasks)}}},
        {"model", ModelOf(recipe)},
        {"train", {{"batch_size", 32}, {"epochs", 3}, {"eval_each_epoch", false}}},
        {"cluster", {{"shards", 2}}}};
    const auto files = NewMemoryFileSystem();
    EXPECT_TRUE(WriteFileAtomically(*files, "train.csv", train.csv).ok());
    EXPECT_TRUE(WriteFileAtomically(*files, "eval.csv", eval.csv).ok());
    const Result<Job> parsed = ParseJob(job.dump(), "job.json", {});
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    if (!parsed.ok()) return {};
    LocalClusterOptions options;
    options.job = std::make_shared<const Job>(*parsed);
    options.out = "out";
    options.threads = 1;
    options.voice.notice = [](const std::string&) {};
    const auto clock = NewSystemClock();
    const Result<ProcessEnd> end = RunLocalCluster(options, *files, *clock);
    EXPECT_TRUE(end.ok() && end->status == 0) << recipe.word << " on " << set.name;
    const Result<std::string> text = ReadWholeFile(*files, "out/summary.json", 1 << 20);
    if (!text.ok()) return {1, 1};
    const Json summary = Json::parse(*text);
    if (!summary["eval_auc"].is_number()) return {1, 1};
    return {summary["eval_logloss"].get<double>() - eval.ConstantLogloss(train.mean_label),
            eval.best_auc - summary["eval_auc"].get<double>()};
  }
};

TEST_P(DefaultsTest, AreNowhereBehindAConstant) {
  FLAGS_minloglevel = google::GLOG_ERROR;
  const auto recipe = std::ranges::find(Recipes(), GetParam(), &RecipeRecord::word);
  if (!AllTestsAreAsked()) std::printf("left out: %d of %d seeds\n", kSeeds - 1, kSeeds);
  for (const PlantedSet& set : ThirdOf(PlantedSets(), "planted sets")) {
    Outcome worst = {-1, -1};
    for (int seed = 1; seed <= Seeds(); ++seed) {
      const Outcome outcome = Train(*recipe, set, static_cast<uint64_t>(seed));
      worst.behind_constant = std::max(worst.behind_constant, outcome.behind_constant);
      worst.behind_best = std::max(worst.behind_best, outcome.behind_best);
    }
    std::printf("%-10s %-13s logloss - constant's %+.4f   best AUC - AUC %+.4f\n",
                recipe->word.c_str(), set.name.c_str(), worst.behind_constant, worst.behind_best);
    const KnownFigure limits = LimitsOf(*recipe, set);
    EXPECT_LE(worst.behind_constant, limits.behind_constant) << recipe->word << " on " << set.name;
    if (set.linear && SeesAll(*recipe, set)) {
      EXPECT_LE(worst.behind_best, limits.behind_best) << recipe->word << " on " << set.name;
    }
  }
}

std::vector<std::string> RecipeWords() {
  std::vector<std::string> words;
  for (const RecipeRecord& recipe : Recipes()) words.push_back(recipe.word);
  return words;
}

INSTANTIATE_TEST_SUITE_P(Recipes, DefaultsTest, testing::ValuesIn(RecipeWords()),
                         [](const auto& word) { return word.param; });

}  // namespace
}  // namespace hdps
