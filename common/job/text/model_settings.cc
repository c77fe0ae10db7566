// The settings of "model": a recipe, or listed tables and layers.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/layers/layer_record.h"
#include "common/job/optimizers/optimizer_registry.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/job_text.h"
#include "common/job/text/setting_table.h"

namespace hdps {

namespace {

using enum Note;
using enum OnResume;

// Returns the condition for the recipes for which `counts` holds.
template <typename Counts>
Where<std::string, ModelSpec> RecipesWhere(const Counts& counts) {
  std::vector<std::string> words;
  for (const RecipeRecord& recipe : Recipes()) {
    if (counts(recipe)) words.push_back(recipe.word);
  }
  return Where(&ModelSpec::type, std::move(words));
}

// Gives access to a setting that only some recipes have, like a member of ModelRecipe.
template <typename Value>
struct OwnIn {
  RecipeSetting setting;
  Value& operator()(ModelRecipe& recipe) const {
    return std::get<Value>(recipe.own.try_emplace(setting.name, setting.standard).first->second);
  }
  Value operator()(const ModelRecipe& recipe) const {
    return std::get<Value>(ValueOf(recipe, setting));
  }
};

void AddOwn(const RecipeSetting& setting, SettingTable<ModelText>* model) {
  const auto has = RecipesWhere([&](const auto& r) { return r.Find(setting.name) != nullptr; });
  const auto add = [&](auto... options) {
    std::visit(
        [&]<typename Value>(const Value&) {
          model->Add(setting.name, OwnIn<Value>{setting}, setting.doc, options..., has);
        },
        setting.standard);
  };
  if (!setting.words.empty()) {
    add(OneOf{setting.words});
  } else if (setting.min < setting.max) {
    add(Range{setting.min, setting.max});
  } else {
    add();
  }
}

// Adds the recipes' own settings, each name once.
void AddOwn(SettingTable<ModelText>* model) {
  std::set<std::string> added;
  for (const RecipeRecord& recipe : Recipes()) {
    for (const RecipeSetting& setting : recipe.settings) {
      if (added.insert(setting.name).second) AddOwn(setting, model);
    }
  }
}

Section TaskSection() {
  SettingTable<TaskSpec> task("task", "model.tasks[]");
  task.Add("label", &TaskSpec::label, "The name of a label column.", kRequired);
  task.Add("loss", &TaskSpec::loss, "As `model.loss`.", OneOf{{"logloss", "squared_error"}});
  task.Add("weight", &TaskSpec::weight, "Of this loss in the sum.", Range{0, 1e6}, kMayChange);
  task.Add("positive_weight", &TaskSpec::positive_weight, "As `model.positive_weight`.",
           Range{1e-6, 1e6}, kMayChange, Where(&TaskSpec::loss, {LossKind::kLogloss}));
  return task.Done();
}

// Adds the settings that cut the tables of a recipe over the servers.
void AddSlices(const Where<std::string, ModelSpec>& sparse, SettingTable<ModelText>* model) {
  model->Add(
      "slice_mode", &ModelText::slice_mode,
      "How each table is cut over the servers (MindSpore's words). batch_slice: every key by its "
      "hash; workers look up their own part of the batch. table_row_slice: by ranges of keys. "
      "field_slice: all rows of a feature at one server. The results of these three are the same. "
      "table_column_slice: the columns of every row in `column_slices` parts, each with its own "
      "state at its own servers; tables of dim 1 stay whole.",
      sparse, kMayChange);
  model->Add("manual_shapes", &ModelText::manual_shapes,
             "field_slice: features in each slice, which is what a server has where there are as "
             "many servers; empty: all features dealt out evenly.",
             sparse, kMayChange);
  model->Add("column_slices", &ModelText::column_slices,
             "table_column_slice: parts of a row; a power of two that divides the dim.",
             Range{2, 4096}, sparse, kMayChange);
}

// Returns the inits for all dense layers of a recipe. Layers that begin alike, as with zeros, would
// stay alike.
std::vector<std::string> DenseInits() {
  std::vector<std::string> words = FanInits();
  words.insert(words.end(), {"normal", "uniform"});
  return words;
}

// Adds the settings of recipes, each with the recipes that it affects.
void AddRecipe(const OptimizerRegistry& optimizers, SettingTable<ModelText>* model) {
  const auto deep = RecipesWhere([](const auto& r) { return r.fields.hidden; });
  const auto embeds = RecipesWhere([](const auto& r) { return r.fields.embedding; });
  const auto wide = RecipesWhere([](const auto& r) { return r.fields.wide; });
  const auto sparse = RecipesWhere([](const auto& r) { return r.sparse(); });
  model->Add("embedding_dim", &ModelText::embedding_dim, "Floats of one row of the table `deep`.",
             Range{1, 4096}, embeds);
  model->Add(
      "feature_dims", &ModelText::feature_dims,
      "Features whose vectors have another dim, as {\"user\": 32, \"weekday\": 4}; those of one "
      "dim have a table `deep_DIM` together. Only under types that put vectors side by side.",
      Range{1, 4096}, embeds);
  model->Add("hidden", &ModelText::hidden,
             "Hidden layers of the MLP, each with relu. For dlrm the top one.", Range{1, 65536},
             deep);
  model->Add("batch_norm", &ModelText::batch_norm,
             "Hidden layers are normalized over the batch before their relu; see the layer "
             "`batch_norm`.",
             deep);
  model->Add("batch_norm_over", &ModelText::batch_norm_over,
             "With batch_norm: part, each worker's own rows, or batch, those of all workers; see "
             "`over` there.",
             OneOf{{"part", "batch"}}, deep);
  model->Add("dropout", &ModelText::dropout,
             "Outputs of hidden layers left out in training; see the layer `dropout`.",
             Range{0, 0.999}, deep, kMayChange);
  model->Add("embedding_dropout", &ModelText::embedding_dropout,
             "Weights of the rows of `deep` left out in training.", Range{0, 0.999}, embeds,
             kMayChange);
  AddOwn(model);
  model->Add("wide_features", &ModelText::wide_features, "Empty: all sparse features.", wide);
  model->Add("deep_features", &ModelText::deep_features, "Empty: all sparse features.", embeds);
  model->Add("numeric", &ModelText::numeric, "The numeric columns take part.", sparse);
  model->AddObject("wide_optimizer", &ModelText::wide_optimizer, OptimizerSection(optimizers),
                   "Default: ftrl 0.05, l1 = l2 = 1e-8, initial accumulator 1e-6.", wide);
  model->AddObject("deep_optimizer", &ModelText::deep_optimizer, OptimizerSection(optimizers),
                   "Default: lazy_adam 0.001.", embeds);
  model->AddObject("wide_schedule", &ModelText::wide_schedule, ScheduleSection(),
                   "As `model.tables[].schedule`.", wide, kMayChange);
  model->AddObject("deep_schedule", &ModelText::deep_schedule, ScheduleSection(),
                   "As `model.tables[].schedule`.", embeds, kMayChange);
  const std::string penalty_doc = "As of `model.tables[]`.";
  model->Add("wide_loss_l1", &ModelText::wide_loss_l1, penalty_doc, kPenalty, wide, kMayChange);
  model->Add("wide_loss_l2", &ModelText::wide_loss_l2, penalty_doc, kPenalty, wide, kMayChange);
  model->Add("deep_loss_l1", &ModelText::deep_loss_l1, penalty_doc, kPenalty, embeds, kMayChange);
  model->Add("deep_loss_l2", &ModelText::deep_loss_l2, penalty_doc, kPenalty, embeds, kMayChange);
  model->AddObject("wide_init", &ModelText::wide_init, InitSection(), "Default: zeros.", wide);
  model->AddObject("embedding_init", &ModelText::embedding_init, InitSection(),
                   "Default: normal, scale 0.01.", embeds);
  model->Add("dense_init", &ModelText::dense_init,
             "How the weights of dense layers begin, as `init` of a layer.", OneOf{DenseInits()},
             RecipesWhere([](const auto&) { return true; }));
  model->AddObject("policy", &ModelText::policy, PolicySection(),
                   "Which keys get rows and which rows leave, in each table of the recipe.",
                   sparse);
  model->Add(
      "weights", &ModelText::weights,
      "How the servers keep the weights of rows, in each table of the recipe with a dim above 1. "
      "In 16 bits updates are rounded up or down at random, from seed, table, key and step, so "
      "that small ones are not lost; the optimizer's state stays in 32 bits.",
      sparse);
  model->Add(
      "vocab_cache_size", &ModelText::vocab_cache_size,
      "Rows of each table that are seen most, kept with their optimizer state at every worker, on "
      "its device (MindSpore's name); 0: none. Only in sync mode, where it changes no result.",
      Range{0, 1e9}, sparse);
  AddSlices(sparse, model);
}

// Is true if the text of a model names a recipe whose dense weights all lead directly from features
// to the logit.
bool IsLinear(const JsonValue& model) {
  const JsonValue *type = model.Find("type"), *layers = model.Find("layers");
  if (type == nullptr || layers != nullptr) return false;
  return std::ranges::any_of(Recipes(), [type](const RecipeRecord& recipe) {
    return recipe.word == type->text && recipe.fields.linear;
  });
}

// Adds the settings for the weights of all dense layers.
void AddDense(const OptimizerRegistry& optimizers, SettingTable<ModelText>* model) {
  model->AddObject("dense_optimizer", &ModelText::dense_optimizer, OptimizerSection(optimizers),
                   "Of the weights of all dense layers. Default: adam 0.002; of a recipe that is "
                   "linear in them (logistic, fm), `wide_optimizer`'s default at rate 0.2.");
  model->AddObject("dense_schedule", &ModelText::dense_schedule, ScheduleSection(),
                   "Of their learning rate. Default: `train.schedule`.", kPrintedUnlessDefault,
                   kMayChange);
  model->Add("dense_loss_l1", &ModelText::dense_loss_l1,
             "In the loss: dense_loss_l1 times the sum of |w| over the weights and biases of all "
             "dense layers.",
             kPenalty, kPrintedUnlessDefault, kMayChange);
  model->Add("dense_loss_l2", &ModelText::dense_loss_l2,
             "Likewise: dense_loss_l2 / 2 times the sum of w^2, which is PyTorch's weight_decay of "
             "sgd and adam.",
             kPenalty, kPrintedUnlessDefault, kMayChange);
}

// Returns the section with what of a model is printed: it is printed as a graph, without the
// settings of recipes. Without layers only the tables count.
Section PrintAsGraph(Section section) {
  for (Setting& setting : section.settings) {
    if (setting.key == "type" || setting.key == "tables") continue;
    const bool of_recipes = setting.only_where.has_value();
    setting.printed_if = [of_recipes, printed_if = setting.printed_if](const void* object) {
      const auto& text = *static_cast<const ModelText*>(object);
      return !of_recipes && text.type != kTablesType && (!printed_if || printed_if(object));
    };
  }
  return section;
}

}  // namespace

Section ScheduleSection() {
  using enum ScheduleKind;
  SettingTable<ScheduleSpec> schedule("schedule", "A schedule of learning rates");
  schedule.Add("kind", &ScheduleSpec::kind,
               "step: times `decay` after every `decay_steps`. exponential: the same, smoothly. "
               "cosine: half a wave from 1 to `least` in `decay_steps`. polynomial: 1 - t / "
               "decay_steps to the power of `power`, from 1 to `least`.");
  schedule.Add("warmup_steps", &ScheduleSpec::warmup_steps,
               "First so many steps in which the rate rises linearly, step / warmup_steps, to the "
               "whole; the other steps count from there.",
               Range{0, 9e15});
  schedule.Add("decay_steps", &ScheduleSpec::decay_steps, "Has to be given.", Range{1, 9e15},
               kNoDefault, Where(&ScheduleSpec::kind, {kStep, kExponential, kCosine, kPolynomial}));
  schedule.Add("decay", &ScheduleSpec::decay, "What `decay_steps` multiply the rate with.",
               Range{1e-9, 1}, Where(&ScheduleSpec::kind, {kStep, kExponential}));
  schedule.Add("power", &ScheduleSpec::power, "1: a straight line.", Range{0.001, 1000},
               Where(&ScheduleSpec::kind, {kPolynomial}));
  schedule.Add("least", &ScheduleSpec::least,
               "Part of the learning rate that is left after `decay_steps`, and from then on.",
               Range{0, 1}, Where(&ScheduleSpec::kind, {kCosine, kPolynomial}));
  schedule.Appendix(
      "\nSteps are counted over the whole job, so a run that is resumed goes on where it was. The "
      "learning rate of ftrl follows no schedule: its weights are a quotient by it, and would "
      "shrink with it.\n");
  return schedule.Done();
}

Section ModelSection(const JobRegistry& registry) {
  std::vector<std::string> types;
  for (const RecipeRecord& recipe : Recipes()) types.push_back(recipe.word);
  types.insert(types.end(), {"graph", kTablesType});
  SettingTable<ModelText> model("model", "model");
  model.BeforeReading([](const JsonValue& value, ModelText* text) {
    // The dense weights of a recipe without hidden layers are its linear part.
    if (IsLinear(value)) text->dense_optimizer = ModelRecipe::LinearOptimizer();
  });
  model.Add("type", &ModelText::type,
            "The recipe `layers` are made from; graph: they are spelled out. A recipe with "
            "`layers` is taken as spelled out too. tables: `tables` alone, for a model of another "
            "program ([models.md](models.md#tables-for-a-model-of-your-own)).",
            OneOf{types});
  AddRecipe(registry.optimizers, &model);
  model.AddObject("tables", &ModelText::tables, TableSection(registry.optimizers),
                  "With `layers`: the tables they use. Under type tables: those of the program.");
  model.AddObject("layers", &ModelText::layers, LayerSection(registry.layers),
                  "The graph, inputs before users; the last layer gives the logits.");
  model.AddObject("layer_settings", &ModelText::layer_settings, PlacementSection(),
                  "Where layers of a recipe are computed and how they lie over the workers, by "
                  "their names: {\"deep1\": {\"shard\": [1, 2]}}. `--print_config` shows them.",
                  RecipesWhere([](const auto&) { return true; }));
  AddDense(registry.optimizers, &model);
  model.Add("loss", &ModelText::loss,
            "Default: softmax where there are several `classes`, else logloss. "
            "squared_error: the square of the difference, labels are any numbers. bpr: of pairs of "
            "a positive and a negative example of one group. sampled_softmax: the item of an "
            "example among those of its part of the batch; the last layer is one of towers.",
            kNoDefault);
  model.Add("positive_weight", &ModelText::positive_weight,
            "Under logloss: how much an example with label 1 counts, beside 1 for label 0.",
            Range{1e-6, 1e6}, kPrintedUnlessDefault, kMayChange);
  model.AddObject("tasks", &ModelText::tasks, TaskSection(),
                  "Several things learned at once: one entry a label column, in the order of the "
                  "logits of the last layer. Their losses are summed by weight.",
                  kPrintedUnlessDefault);
  model.Add("device", &ModelText::device,
            "Where the dense layers are computed; auto: cuda if there is one.",
            OneOf{{"auto", "cpu", "cuda"}}, Hashed::kDefault);
  model.Add("dense_target", &ModelText::dense_target,
            "Where the weights of dense layers are kept and updated, with their optimizer's state, "
            "by a worker that computes on a GPU: there (cuda), or in the host's memory (cpu). cuda "
            "needs parallel.dense_exchange = allreduce; auto: there, if it can be. The result is "
            "the same.",
            OneOf{{"auto", "cpu", "cuda"}}, Hashed::kNothing);
  model.Add(
      "precision", &ModelText::precision,
      "Of the numbers that layers multiply; sums, weights, their gradients and optimizers stay in "
      "fp32. On a GPU of all products: tf32 rounds to 10 bits behind the point, bf16 to 7. On a "
      "CPU bf16 is of dense layers of 16 units or more, where the CPU multiplies 16 bits faster "
      "(AMX or AVX512-BF16; elsewhere fp32 is used, and the log says so), and tf32 is fp32.",
      kPrintedUnlessDefault, kMayChange);
  model.Add(
      "first_layer", &ModelText::first_layer,
      "Of a dense layer on an embedding on the CPU: multiply every example's rows, or each "
      "distinct row of the batch once; auto: what is cheaper for a batch of training, and one "
      "of both for all scores, by the rows' dim.",
      kExpert, kMayChange);
  return PrintAsGraph(model.Done());
}

}  // namespace hdps
