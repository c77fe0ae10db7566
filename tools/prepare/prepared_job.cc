// Chooses settings for the size and kind of the data, and leaves out those whose default fits.
#include "tools/prepare/prepared_job.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/optimizers/ftrl.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/model_spec.h"
#include "worker/data/data_description.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kDim = 8;
constexpr double kKeyBytes = 24;   // Bytes of a row for its key and index, with spare places.
constexpr double kFtrlFloats = 3;  // A weight with its state.
constexpr double kAdamFloats = 3;
// Rows that make batches large enough for normalization.
constexpr uint64_t kNormRowsMin = 10000;

const RecipeRecord& RecipeOf(const DataPlan& plan, const JobWish& wish) {
  return *std::ranges::find(Recipes(), ModelOf(plan, wish), &RecipeRecord::word);
}

// Is true for positive rows alone with an item tower, which learns to tell a row's item from all
// items of the batch.
bool MeetsItemsOfTheBatch(const DataPlan& plan, const JobWish& wish) {
  return plan.task == TaskKind::kPositivesOnly &&
         RecipeOf(plan, wish).Find("user_features") != nullptr;
}

std::string BucketName(const ColumnPlan& column) { return column.spec.name + "_range"; }
Json ColumnJson(const ColumnSpec& spec) {
  Json column = {{"name", spec.name}};
  if (spec.type != ColumnType::kCategorical) column["type"] = WordOf(spec.type);
  if (spec.type == ColumnType::kMulti) column["separator"] = spec.separator;
  if (!spec.vocabulary.empty()) column["vocabulary"] = spec.vocabulary;
  if (spec.type == ColumnType::kLabel && !spec.positive.empty()) column["positive"] = spec.positive;
  if (!spec.classes.empty()) column["classes"] = spec.classes;
  if (spec.transform != Transform::kNone) column["transform"] = WordOf(spec.transform);
  if (spec.transform == Transform::kStandardize) {
    column["mean"] = spec.mean;
    column["scale"] = spec.scale;
  }
  return column;
}

bool IsSplitInBlocks(const JobWish& wish) {
  return wish.validation_share > 0 && wish.validation_block_lines > 0;
}

// Counts the values of each sparse column that have keys of their own, and those of them that half
// of the rows have: auto_parallel places tables by them.
void AddDistinct(const DataProfile& profile, const DataPlan& plan, const JobWish& wish,
                 Json* data) {
  for (size_t i = 0; i < plan.columns.size(); ++i) {
    const ColumnSpec& spec = plan.columns[i].spec;
    const bool multi = spec.type == ColumnType::kMulti;
    if (!multi && spec.type != ColumnType::kCategorical) continue;
    const ColumnProfile& column = profile.columns[i];
    const auto parts = multi ? column.parts.find(spec.separator[0]) : column.parts.end();
    const DistinctValues& values =
        parts == column.parts.end() ? column.distinct : parts->second.distinct;
    auto distinct = static_cast<uint64_t>(std::max(values.distinct(), 1.0));
    if (wish.vocabulary != nullptr) {
      const std::vector<ValuesOfSpace>& spaces = wish.vocabulary->spaces;
      const auto of = std::ranges::find(spaces, spec.key_space(), &ValuesOfSpace::space);
      constexpr uint64_t kOthers = 1;  // The key of values that come seldom.
      if (of != spaces.end()) distinct = of->frequent + kOthers;
    }
    (*data)["distinct"][spec.name] = distinct;
    (*data)["distinct_half"][spec.name] =
        std::min(distinct, static_cast<uint64_t>(values.HalfOfTimes()));
  }
}

Json DataJson(const DataProfile& profile, const DataPlan& plan, const JobWish& wish) {
  const DataLayout& layout = profile.layout;
  Json data = {{"format", WordOf(layout.format)}, {"train", wish.train}};
  if (!wish.eval.empty()) data["eval"] = wish.eval;
  if (wish.validation_share > 0) data["validation_share"] = wish.validation_share;
  if (IsSplitInBlocks(wish)) data["validation_block_lines"] = wish.validation_block_lines;
  if (layout.header) data["header"] = true;
  const bool csv = layout.format == DataFormat::kCsv;
  if (csv && layout.delimiter != ",") data["delimiter"] = layout.delimiter;
  if (csv && layout.quote != "\"") data["quote"] = layout.quote;
  if (csv && layout.decimal != ".") data["decimal"] = layout.decimal;
  const bool by_name = HasNamedColumns(layout.format);
  if (by_name && !plan.missing.empty()) data["missing"] = plan.missing;
  if (csv && !layout.comment.empty()) data["comment"] = layout.comment;
  if (layout.format == DataFormat::kLibffm || layout.format == DataFormat::kLibfm) {
    data["num_fields"] = profile.columns.size() - 1;
  }
  const uint64_t bad_rows = std::max(plan.bad_rows, plan.eval_bad_rows);
  if (bad_rows > 0) data["max_bad_rows"] = bad_rows;
  Json features = Json::array();
  for (const ColumnPlan& column : plan.columns) {
    if (by_name) data["columns"].push_back(ColumnJson(column.spec));
    if (column.boundaries.empty()) continue;
    features.push_back({{"name", BucketName(column)},
                        {"kind", "bucketized"},
                        {"from", Json::array({column.spec.name})},
                        {"boundaries", column.boundaries}});
  }
  if (!features.empty()) data["features"] = features;
  if (!plan.item_features.empty()) data["item_features"] = plan.item_features;
  if (plan.negatives > 0 && !MeetsItemsOfTheBatch(plan, wish)) {
    // Draws all items alike: drawing by frequency would make popular items count as bad.
    data["negatives"] = {{"per_positive", plan.negatives}, {"by", "uniform"}};
  }
  if (wish.vocabulary != nullptr) {
    data["vocabulary"] = {{"file", kVocabularyName},
                          {"checksum", wish.vocabulary->vocabulary.Checksum()}};
  }
  if (layout.format != DataFormat::kLibsvm) AddDistinct(profile, plan, wish, &data);
  if (wish.keeps_rows) data["cache_path"] = kRowsFolder;
  return data;
}

// Is true if there are rows of both labels to evaluate while the job trains.
bool IsWatched(const DataPlan& plan, const JobWish& wish) {
  return plan.task != TaskKind::kPositivesOnly && (!wish.eval.empty() || wish.validation_share > 0);
}

// Returns the names of the plan's columns of this type.
std::vector<std::string> ColumnsOfType(const DataPlan& plan, ColumnType type) {
  std::vector<std::string> names;
  for (const ColumnPlan& column : plan.columns) {
    if (column.spec.type == type) names.push_back(column.spec.name);
  }
  return names;
}

std::vector<std::string> SparseFeatures(const DataPlan& plan) {
  std::vector<std::string> names;
  for (const ColumnPlan& column : plan.columns) {
    const ColumnType type = column.spec.type;
    const bool keys = type == ColumnType::kCategorical || type == ColumnType::kMulti;
    if (keys) names.push_back(column.spec.name);
    if (!column.boundaries.empty()) names.push_back(BucketName(column));
  }
  return names;
}

bool HasKeys(const DataPlan& plan) { return !SparseFeatures(plan).empty(); }

// Is true if ids are many compared with the rows about each, so that a model memorizes them.
bool IsSparse(const DataProfile& profile, const DataPlan& plan) {
  return plan.keys > 0.1 * static_cast<double>(profile.rows);
}

bool IsNormalized(const DataProfile& profile, const DataPlan& plan, const JobWish& wish) {
  return RecipeOf(plan, wish).fields.hidden && profile.rows >= kNormRowsMin;
}

Json Ftrl() {
  return {{"kind", "ftrl"},
          {"learning_rate", 0.1},
          {"l1", 0.0001},
          {"l2", 0.0001},
          {"initial_accumulator", 0.1}};
}

// Adds settings that the recipe requires.
void AddOwn(const DataPlan& plan, const RecipeRecord& recipe, Json* model) {
  const auto name = [&plan](size_t column) { return plan.columns[column].spec.name; };
  if (recipe.Find("history") != nullptr) {
    (*model)["history"] = ColumnsOfType(plan, ColumnType::kMulti)[0];
    (*model)["target"] = name(plan.item);
  }
  if (recipe.Find("user_features") != nullptr) {
    std::vector<std::string> users, items = plan.item_features;
    if (items.empty()) items = {name(plan.item)};
    for (const std::string& feature : SparseFeatures(plan)) {
      if (std::ranges::find(items, feature) == items.end()) users.push_back(feature);
    }
    (*model)["user_features"] = users;
    (*model)["item_features"] = items;
  }
  if (plan.task == TaskKind::kClasses) (*model)["classes"] = plan.num_classes;
}

Json ModelJson(const DataProfile& profile, const DataPlan& plan, const JobWish& wish) {
  const RecipeRecord& recipe = RecipeOf(plan, wish);
  Json model = {{"type", recipe.word}};
  AddOwn(plan, recipe, &model);
  if (plan.task == TaskKind::kRating) model["loss"] = "squared_error";
  if (MeetsItemsOfTheBatch(plan, wish)) model["loss"] = "sampled_softmax";
  if (recipe.fields.embedding) model["embedding_dim"] = kDim;
  if (recipe.fields.hidden) model["hidden"] = {64, 32};
  if (IsNormalized(profile, plan, wish)) {
    model["batch_norm"] = true;
    model["dropout"] = 0.2;
    if (recipe.fields.embedding && IsSparse(profile, plan)) model["embedding_dropout"] = 0.5;
  }
  if (recipe.fields.wide) model["wide_optimizer"] = Ftrl();
  if (recipe.fields.embedding) {
    // Users and items with a few rows each have to move far in a few updates.
    const double rate = plan.task == TaskKind::kPositivesOnly ? 0.01 : 0.001;
    model["deep_optimizer"] = {{"kind", "lazy_adam"}, {"learning_rate", rate}};
    model["embedding_init"] = {{"kind", "normal"}, {"scale", 0.05}};
  }
  model["dense_optimizer"] =
      recipe.fields.hidden ? Json{{"kind", "adam"}, {"learning_rate", 0.001}} : Ftrl();
  if (plan.admit_twice) model["policy"] = {{"admit_after", 2}};
  return model;
}

// Plans some hundred steps at least. With evaluations it plans more epochs than needed, otherwise
// no more than small data can bear.
Json TrainJson(const DataProfile& profile, const DataPlan& plan, const JobWish& wish) {
  struct Size {
    uint64_t rows_below;
    uint32_t batch_size, epochs_watched, epochs, evals_per_epoch;
  };
  constexpr Size kSizes[] = {{2000, 32, 30, 8, 1},      {10000, 64, 30, 8, 1},
                             {100000, 256, 20, 4, 1},   {1000000, 256, 10, 2, 4},
                             {10000000, 1024, 4, 1, 8}, {UINT64_MAX, 4096, 2, 1, 16}};
  const auto size = std::ranges::find_if(
      kSizes, [&profile](const Size& s) { return profile.rows < s.rows_below; });
  Json train = {{"batch_size", size->batch_size}};
  if (!IsWatched(plan, wish)) {
    // Negative examples differ in each epoch.
    train["epochs"] =
        plan.task == TaskKind::kPositivesOnly ? std::min(20u, 5 * size->epochs) : size->epochs;
    return train;
  }
  train["epochs"] = size->epochs_watched;
  if (size->evals_per_epoch > 1) train["evals_per_epoch"] = size->evals_per_epoch;
  train["early_stop"] = {{"patience", std::max(3u, size->evals_per_epoch + 1)}};
  return train;
}

Status Unfit(const RecipeRecord& recipe, const std::string& why) {
  return {Code::kInvalidArgument, "--model=" + recipe.word + ": " + why};
}

std::string WordsWhere(bool (*holds)(const RecipeRecord&)) {
  std::string words;
  for (const RecipeRecord& recipe : Recipes()) {
    if (holds(recipe)) words += (words.empty() ? "" : ", ") + recipe.word;
  }
  return words;
}

}  // namespace

std::string ModelOf(const DataPlan& plan, const JobWish& wish) {
  if (!wish.model.empty()) return wish.model;
  if (!HasKeys(plan)) return "mlp";
  return plan.task == TaskKind::kPositivesOnly ? "fm" : "wide_deep";
}

Status CheckModel(const DataPlan& plan, const JobWish& wish) {
  const RecipeRecord& recipe = RecipeOf(plan, wish);
  if (recipe.word == "esmm") {
    return Unfit(recipe,
                 "it learns of two labels, a click and what follows it, and prepare takes "
                 "one; write model.tasks into the job by hand");
  }
  if (plan.task == TaskKind::kClasses && recipe.Find("classes") == nullptr) {
    return Unfit(recipe, "it has one logit, and the label has " + std::to_string(plan.num_classes) +
                             " classes; use one of " + WordsWhere([](const RecipeRecord& r) {
                               return r.Find("classes") != nullptr;
                             }));
  }
  const bool pair = plan.item != kNoColumn;
  if (recipe.Find("history") != nullptr &&
      (!pair || ColumnsOfType(plan, ColumnType::kMulti).empty())) {
    return Unfit(recipe,
                 "it compares a history, a column with several values a cell, with an "
                 "item, and the data has no " +
                     std::string(pair ? "history" : "column that is an item by its name") +
                     "; use --multi=NAME, or another model");
  }
  if (recipe.Find("user_features") != nullptr && (!pair || plan.user == kNoColumn)) {
    return Unfit(recipe,
                 "it compares a user with an item, and no column is one by its name; use "
                 "another model");
  }
  return {};
}

std::string PreparedJob(const DataProfile& profile, const DataPlan& plan, const JobWish& wish) {
  Json job = {{"name", wish.name}};
  if (IsSplitInBlocks(wish)) job["seed"] = kBlocksSeed;
  job["data"] = DataJson(profile, plan, wish);
  job["model"] = ModelJson(profile, plan, wish);
  job["train"] = TrainJson(profile, plan, wish);
  job["parallel"] = {{"gradients_mean", true}};
  return job.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::pair<std::string, std::string>> JobReasons(const DataProfile& profile,
                                                            const DataPlan& plan,
                                                            const JobWish& wish) {
  std::string model = ModelOf(plan, wish);
  if (IsNormalized(profile, plan, wish)) model += ", batch normalization, dropout 0.2";
  const Json train = TrainJson(profile, plan, wish);
  std::string training = "up to " + Counted(train["epochs"].get<uint64_t>(), "epoch") +
                         " of batches of " + Whole(train["batch_size"].get<uint64_t>());
  if (IsWatched(plan, wish)) {
    training += "; ends where " + Whole(train["early_stop"]["patience"].get<uint64_t>()) +
                " evaluations in a row are no better, and the best is kept: its figures are a "
                "little too good, since it was chosen by them";
  } else if (plan.task == TaskKind::kPositivesOnly) {
    training += "; rows of label 1 alone tell nothing of how good it is, so nothing is watched";
  }
  return {{"model", model}, {"training", training}};
}

namespace {

// Returns the keys that get a row: those frequent enough among the training rows, if each row is a
// training row with the same probability, independently of the others.
double KeysWithRow(const DataPlan& plan, double validation_share) {
  double keys = 0;
  for (size_t i = 0; i < plan.keys_by_times.size(); ++i) {
    const auto times = static_cast<double>(i + 1);
    const double none = std::pow(validation_share, times);
    const double once = times * (1 - validation_share) * std::pow(validation_share, times - 1);
    keys += plan.keys_by_times[i] * (1 - none - (plan.admit_twice ? once : 0));
  }
  return keys;
}

}  // namespace

TableEstimate EstimateTables(const DataPlan& plan, const JobWish& wish) {
  const RecipeRecord& recipe = RecipeOf(plan, wish);
  const double rows = KeysWithRow(plan, wish.validation_share);
  TableEstimate estimate;
  if (recipe.fields.wide) {
    const double dim = plan.task == TaskKind::kClasses ? plan.num_classes : 1;
    estimate.rows += rows;
    estimate.bytes += rows * (kKeyBytes + sizeof(float) * kFtrlFloats * dim);
  }
  if (recipe.fields.embedding) {
    estimate.rows += rows;
    estimate.bytes += rows * (kKeyBytes + sizeof(float) * kAdamFloats * kDim);
  }
  return estimate;
}

}  // namespace hdps
