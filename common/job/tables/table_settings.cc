// The settings of a table: how its rows begin, which keys get one, and how it lies over the
// servers.
#include <string>
#include <vector>

#include "common/job/layers/layer_record.h"
#include "common/job/optimizers/optimizer_registry.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/setting_table.h"

namespace hdps {

using enum Note;
using enum OnResume;

Section InitSection() {
  SettingTable<InitSpec> init("init", "An init");
  std::vector<std::string> kinds;
  for (const auto& word : WordsOf(InitKind())) kinds.emplace_back(word.word);
  kinds.insert(kinds.end(), FanInits().begin(), FanInits().end());
  init.Add("kind", &InitSpec::kind,
           "uniform: in [-scale, scale). normal: scale is the deviation. xavier_..., he_...: as of "
           "a dense layer with dim inputs and dim outputs, so xavier_normal has the deviation "
           "1 / sqrt(dim); printed as the uniform or normal that it comes to.",
           OneOf{kinds});
  init.Add("scale", &InitSpec::scale, "The constant, the half width or the deviation.",
           Range{-1e6, 1e6},
           Where(&InitSpec::kind, {InitKind::kConstant, InitKind::kUniform, InitKind::kNormal}));
  // Values that are not given must not come from the default of the place, which may be of another
  // kind.
  init.BeforeReading([](const JsonValue&, InitSpec* spec) { *spec = InitSpec(); });
  init.AfterReading([](const JsonValue&, InitSpec* spec) {
    if (spec->kind == InitKind::kZeros) spec->scale = 0;
  });
  return init.Done();
}

Section PolicySection() {
  SettingTable<PolicySpec> policy("policy", "A policy");
  policy.Add(
      "admit_after", &PolicySpec::admit_after,
      "A key gets a row with its n-th update of the first epoch; until then it reads as its "
      "initial "
      "row and its gradients are dropped. Later epochs, which bring the same keys again, make rows "
      "for no others. 1: at once.",
      Range{1, 65535});
  policy.Add(
      "admit_probability", &PolicySpec::admit_probability,
      "Once a key may have a row, each update gives it one with this probability, drawn from seed, "
      "table, key and step.",
      Range{1e-9, 1}, kExpert);
  policy.Add("admit_sketch_bytes", &PolicySpec::admit_sketch_bytes,
             "With admit_after above 1: memory that counts the keys without a row, over all "
             "shards. Four bytes a key hold one wrong admission in fifty; keys that come no more "
             "are forgotten, later where admit_after is above 15.",
             Bytes{4096, 1e15}, kExpert);
  policy.Add("evict_after_steps", &PolicySpec::evict_after_steps,
             "A row that no update has changed for more steps than this leaves; 0: none does.",
             Range{0, 4e9});
  policy.Add("evict_after_seconds", &PolicySpec::evict_after_seconds,
             "A row that no update has changed for more seconds of training than this leaves; at "
             "most an eighth of them later. The scheduler tells at which step; the digest then "
             "depends on how fast the steps were. Time in which the job stands or does not run "
             "counts nothing. 0: none does.",
             Range{0, 4e9}, kPrintedUnlessDefault);
  policy.Add("max_rows", &PolicySpec::max_rows,
             "More rows than this in the table, and some leave; 0: any number. Split evenly over "
             "shards.",
             Range{0, 9e15});
  policy.Add("max_bytes", &PolicySpec::max_bytes, "The same, in bytes of rows with their state.",
             Bytes{0, 9e15});
  policy.Add("evict_by", &PolicySpec::evict_by,
             "Which rows leave a table that has more than max_rows or max_bytes: those whose last "
             "update is the oldest, those with the fewest updates, or those whose weights are the "
             "smallest.",
             kExpert);
  return policy.Done();
}

Section TableSection(const OptimizerRegistry& optimizers) {
  TableSpec defaults;
  defaults.optimizer = ModelRecipe::DeepOptimizer();
  SettingTable<TableSpec> table("table", "model.tables[]", defaults);
  table.Add("name", &TableSpec::name, "\"dense\" is taken.", kRequired);
  table.Add("dim", &TableSpec::dim, "Weights of one row.", Range{1, 65536});
  table.AddObject("optimizer", &TableSpec::optimizer, OptimizerSection(optimizers),
                  "Default: lazy_adam 0.001.");
  table.AddObject("init", &TableSpec::init, InitSection(), "How a row begins.");
  table.AddObject("policy", &TableSpec::policy, PolicySection(),
                  "Which keys get rows and which rows leave.", kPrintedUnlessDefault);
  table.AddObject("schedule", &TableSpec::schedule, ScheduleSection(),
                  "Of the learning rate. Default: `train.schedule`.", kPrintedUnlessDefault,
                  kMayChange);
  table.Add("loss_l1", &TableSpec::loss_l1,
            "In the loss: loss_l1 times the sum of |w| over the weights of the rows that a step "
            "meets, each once.",
            kPenalty, kPrintedUnlessDefault, kMayChange);
  table.Add("loss_l2", &TableSpec::loss_l2,
            "Likewise: loss_l2 / 2 times the sum of w^2. PyTorch's weight_decay, but only of the "
            "rows that a step meets; half of it is DeepCTR's l2_reg.",
            kPenalty, kPrintedUnlessDefault, kMayChange);
  table.Add("weights", &TableSpec::weights, "As `model.weights`.", kPrintedUnlessDefault);
  table.Add("vocab_cache_size", &TableSpec::vocab_cache_size, "As `model.vocab_cache_size`.",
            Range{0, 1e9}, Hashed::kDefault);
  table.Add("slice_mode", &TableSpec::slice_mode, "As `model.slice_mode`.", kPrintedUnlessDefault,
            kMayChange);
  table.Add("manual_shapes", &TableSpec::manual_shapes, "As `model.manual_shapes`.",
            Where(&TableSpec::slice_mode, {SliceMode::kField}), kPrintedUnlessDefault, kMayChange);
  table.Add("column_slices", &TableSpec::column_slices, "As `model.column_slices`.", Range{2, 4096},
            Where(&TableSpec::slice_mode, {SliceMode::kColumn}), kMayChange);
  return table.Done();
}

}  // namespace hdps
