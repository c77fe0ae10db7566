// Tests settings without effect: each has a condition in its record, a rule that warns of it, or
// counts in every job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/job/job_registry.h"
#include "common/job/text/job_sections.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Lists all settings by their paths in docs/job_file.md, "model.tables[].dim".
void ListPaths(const Section& section, const std::string& path,
               std::map<std::string, const Setting*>* paths) {
  for (const Setting& setting : section.settings) {
    const std::string place = PathBelow(path, setting.key);
    (*paths)[place] = &setting;
    if (setting.section == nullptr) continue;
    ListPaths(*setting.section, place + ItemMark(setting), paths);
  }
}

// A model that sums one weight per key has no dense layer.
constexpr const char* kNoDense =
    R"(model={"type":"graph","tables":[{"name":"t","dim":1}],"layers":[)"
    R"({"name":"e","kind":"embedding","table":"t","combine":"sum"}]})";

// Jobs in which the setting of each rule is idle.
const std::map<std::string, std::vector<std::string>> kIdle = {
    {"model.policy.admit_sketch_bytes", {"model.policy.admit_sketch_bytes=8192"}},
    {"model.policy.evict_by", {"model.policy.evict_by=norm"}},
    {"model.tables[].policy.admit_sketch_bytes",
     {kGraph, "model.tables.0.policy.admit_sketch_bytes=8192"}},
    {"model.tables[].policy.evict_by", {kGraph, "model.tables.0.policy.evict_by=use"}},
    {"model.manual_shapes", {"model.manual_shapes=[1,2]"}},
    {"model.column_slices", {"model.column_slices=4"}},
    {"model.batch_norm_over", {"model.batch_norm_over=batch"}},
    {"model.dense_loss_l1", {kNoDense, "model.dense_loss_l1=0.5"}},
    {"model.dense_loss_l2", {kNoDense, "model.dense_loss_l2=0.5"}},
    {"cluster.join_tables", {"model.policy.admit_after=2", "cluster.join_tables=false"}},
    {"data.validation_block_lines", {"data.validation_block_lines=1000"}},
    {"data.cache", {"data.cache=memory", "train.epochs=1"}},
    {"data.cache_path", {"data.cache=none", "data.cache_path=rows"}},
    {"data.cache_share", {"data.cache=none", "data.cache_share=0.5"}},
    {"train.eval_every_steps", {"train.eval_every_steps=5"}},
    {"train.evals_per_epoch", {"train.evals_per_epoch=4"}},
    {"train.delay_compensation",
     {"train.mode=async", "train.delay_compensation=0.5", "model.wide_optimizer.kind=ftrl",
      "model.deep_optimizer.kind=ftrl", "model.dense_optimizer.kind=rmsprop"}},
    {"train.delay_compensation",
     {"train.mode=async", "train.delay_compensation=0.5", "model.wide_optimizer.kind=ftrl",
      "model.deep_optimizer.kind=ftrl", "parallel.dense_exchange=allreduce"}},
    {"train.eval_each_epoch", {"train.eval_each_epoch=false"}},
    {"checkpoint.copy_wait_s", {"checkpoint.copy_wait_s=5"}},
    {"checkpoint.delta_every_steps",
     {"checkpoint.every_steps=20", "checkpoint.delta_every_steps=40"}},
    {"cluster.balance", {"cluster.balance=auto", "cluster.memory_limit=1GiB"}},
    {"cluster.balance_after_s", {"cluster.balance_after_s=30", "cluster.memory_limit=1GiB"}},
    {"cluster.spill_path", {"cluster.spill_path=/var/tmp/rows"}},
    {"checkpoint.delta_every_seconds",
     {"checkpoint.every_seconds=5", "checkpoint.delta_every_seconds=5"}},
    {"checkpoint.keep_best", {"checkpoint.keep_best=false"}},
    {"train.early_stop.metric", {"train.early_stop.metric=logloss"}},
    {"train.early_stop.set", {"train.early_stop.set=eval"}},
    {"train.early_stop.min_delta", {"train.early_stop.min_delta=0.5"}},
    {"train.plateau.metric", {"train.plateau.metric=logloss"}},
    {"train.plateau.set", {"train.plateau.set=eval"}},
    {"train.plateau.min_delta", {"train.plateau.min_delta=0.5"}},
    {"train.plateau.factor", {"train.plateau.factor=0.5"}},
    {"train.plateau.least", {"train.plateau.least=0.5"}},
    {"train.cache_refresh_steps", {"train.cache_refresh_steps=7"}},
    {"parallel.dataset_strategy",
     {"data.columns=[{\"name\":\"y\",\"type\":\"label\"},{\"name\":\"x\",\"type\":\"numeric\"}]",
      "data.features=[]", "model.type=mlp", "parallel.parallel_mode=hybrid_parallel",
      "parallel.dense_exchange=allreduce", "parallel.dataset_strategy=[[2, 1]]"}},
    {"parallel.parallel_optimizer_config",
     {"parallel.dense_exchange=allreduce",
      R"(parallel.parallel_optimizer_config={"optimizer_level":"level2"})"}},
    {"parallel.parallel_optimizer_config.optimizer_level",
     {"parallel.dense_exchange=allreduce", "parallel.enable_parallel_optimizer=true",
      R"(parallel.parallel_optimizer_config={"optimizer_level":"level2"})"}},
    {"parallel.parallel_optimizer_config.gradient_accumulation_shard",
     {"parallel.dense_exchange=allreduce", "parallel.enable_parallel_optimizer=true",
      R"(parallel.parallel_optimizer_config={"gradient_accumulation_shard":true})"}},
    {"parallel.loss_sum", {"parallel.loss_sum=true"}},
    {"train.loss_scale", {"train.loss_scale=1024"}},
    {"parallel.comm_fusion.allreduce",
     {"parallel.dense_exchange=allreduce",
      R"(parallel.comm_fusion={"openstate":false,"allreduce":{"mode":"size","config":4}})"}},
    {"parallel.comm_fusion.allgather",
     {"parallel.dense_exchange=allreduce",
      R"(parallel.comm_fusion={"allgather":{"mode":"size","config":4}})"}},
    {"parallel.comm_fusion.reducescatter",
     {"parallel.dense_exchange=allreduce",
      R"(parallel.comm_fusion={"reducescatter":{"mode":"size","config":4}})"}},
    {"model.layer_settings{}.fusion", {"model.layer_settings.deep1.fusion=3"}},
    {"model.layers[].fusion", {kGraph, "model.layers.1.fusion=3"}},
    {"model.layer_settings{}.dense_exchange",
     {"model.layer_settings.deep1.dense_exchange=servers"}},
    {"model.layers[].dense_exchange", {kGraph, "model.layers.1.dense_exchange=servers"}},
    {"model.layer_settings{}.dense_target", {"model.layer_settings.deep1.dense_target=cpu"}},
    {"model.layers[].dense_target", {kGraph, "model.layers.1.dense_target=cpu"}}};

TEST(IdleSettingsTest, EachRuleNamesItsSettingOnce) {
  std::map<std::string, const Setting*> paths;
  ListPaths(JobSection(BuiltInRegistry()), "", &paths);
  std::set<std::string> ruled;
  for (const IdleRule& rule : IdleRules()) {
    SCOPED_TRACE(rule.path);
    EXPECT_TRUE(paths.contains(rule.path)) << "there is no such setting";
    EXPECT_TRUE(ruled.insert(rule.path).second) << "there is a rule already";
    ASSERT_TRUE(kIdle.contains(rule.path)) << "no job shows it";
    const std::vector<std::string> warnings = Good(kIdle.at(rule.path)).warnings;
    EXPECT_THAT(warnings, Contains(rule.path + " is ignored: " + rule.why));
    EXPECT_EQ(std::ranges::count_if(
                  warnings, [&](const std::string& line) { return line.starts_with(rule.path); }),
              1);
  }
  EXPECT_EQ(ruled.size(), kIdle.size());
}

TEST(IdleSettingsTest, AJobAsItIsPrintedGivesNothingThatCountsForNothing) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{}, {kGraph}, {"model.type=mlp"}, {"model.policy.max_rows=9"}}) {
    const Job job = Good(overrides);
    EXPECT_EQ(Good({}, PrintJob(job)).warnings, job.warnings);
  }
}

TEST(IdleSettingsTest, BesideWhatTheyNeedTheyAreNotWarnedOf) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{"model.policy.evict_by=norm", "model.policy.max_rows=9"},
        {"model.policy.admit_sketch_bytes=8192", "model.policy.admit_after=2"},
        {"parallel.loss_sum=true", "parallel.interleave_num=2"},
        {"data.validation_block_lines=1000", "data.validation_share=0.1"},
        {"train.loss_scale=1024", "parallel.wire=fp16"},
        {"train.loss_scale=dynamic", "parallel.dense_exchange=allreduce",
         "parallel.gradient_fp32_sync=false"},
        {"data.eval=[\"e.csv\"]", "train.eval_each_epoch=false", "checkpoint.keep_best=false"},
        {"train.metrics=[\"auc\"]"},  // hdps evaluate --data reports them.
        {"train.cache_refresh_steps=7", "model.vocab_cache_size=9"},
        {"checkpoint.every_steps=20", "checkpoint.delta_every_steps=30"},  // Saves at 30, 90, ...
        {"checkpoint.delta_every_steps=30"},
        {"cluster.memory_limit=1GiB", "cluster.spill_path=/var/tmp/rows"},
        {"cluster.memory_limit=1GiB", "cluster.balance=off"},
        {"cluster.balance=auto", "cluster.balance_after_s=30"},
        {kGraph, "model.layers.1.fusion=3", "parallel.dense_exchange=allreduce"},
        {"model.layer_settings.deep1.fusion=3", "parallel.dense_exchange=allreduce"},
        {"model.layer_settings.deep1.dense_exchange=servers", "parallel.dense_exchange=allreduce",
         "model.layer_settings.deep2.dense_target=cpu"},
        {"parallel.dense_exchange=allreduce", "parallel.enable_parallel_optimizer=true",
         R"(parallel.parallel_optimizer_config={"parallel_optimizer_threshold":5})"}}) {
    for (const std::string& warning : Good(overrides).warnings) {
      EXPECT_THAT(warning, Not(HasSubstr("is ignored"))) << testing::PrintToString(overrides);
    }
  }
}

// Settings that count in every job, or are refused or warned of by the rules of their section.
const char* const kAlways[] = {"name",
                               "seed",
                               "data",
                               "data.format",
                               "data.train",
                               "data.eval",
                               "data.eval_sets",
                               "data.eval_sets[].name",
                               "data.eval_sets[].files",
                               "data.validation_share",
                               "data.distinct",
                               "data.distinct_half",
                               "data.columns[].name",
                               "data.columns[].type",
                               "data.columns[].repeat",
                               "data.features[].name",
                               "data.features[].kind",
                               "data.features[].from",
                               "data.item_features",
                               "data.vocabulary.file",
                               "data.vocabulary.checksum",
                               "data.parts",
                               "data.negatives",
                               "data.negatives.per_positive",
                               "data.negatives.by",
                               "data.shuffle_rows",
                               "data.max_bad_rows",
                               "model",
                               "model.type",
                               "model.tables",
                               "model.layers",
                               "model.dense_schedule",
                               "model.dense_optimizer",
                               "model.loss",
                               "model.positive_weight",
                               "model.tasks",
                               "model.tasks[].label",
                               "model.tasks[].loss",
                               "model.tasks[].weight",
                               "model.device",
                               "model.dense_target",
                               "model.precision",
                               "model.first_layer",
                               "train",
                               "train.mode",
                               "train.batch_size",
                               "train.last_batch",
                               "train.log_every_steps",
                               "train.epochs",
                               "train.max_steps",
                               "train.micro_batches",
                               "train.lookahead",
                               "train.metrics",
                               "train.schedule",
                               "train.clip_value",
                               "train.clip_norm",
                               "train.progressive",
                               "train.progressive.window",
                               "train.early_stop",
                               "train.early_stop.patience",
                               "train.plateau",
                               "train.plateau.patience",
                               "parallel",
                               "parallel.parallel_mode",
                               "parallel.device_num",
                               "parallel.global_rank",
                               "parallel.gradients_mean",
                               "parallel.full_batch",
                               "parallel.dense_exchange",
                               "parallel.enable_parallel_optimizer",
                               "parallel.wire",
                               "parallel.interleave_num",
                               "parallel.grad_accumulation_step",
                               "parallel.blocks",
                               "model.layer_settings{}.device",
                               "model.layer_settings{}.layerwise_parallel",
                               "model.layer_settings{}.shard",
                               "model.layers[].name",
                               "model.layers[].kind",
                               "model.layers[].device",
                               "model.layers[].layerwise_parallel",
                               "model.layers[].shard",
                               "model.tables[].name",
                               "data.follow",
                               "data.follow_until",
                               "model.tables[].dim",
                               "model.tables[].loss_l1",
                               "model.tables[].loss_l2",
                               "model.tables[].weights",
                               "model.tables[].vocab_cache_size",
                               "model.tables[].slice_mode"};
// Sections whose settings all belong to these.
const char* const kAlwaysBelow[] = {"checkpoint",           "cluster",
                                    "data.kafka",           "parallel.blocks[]",
                                    "parallel.comm_fusion", "parallel.parallel_optimizer_config."};

TEST(IdleSettingsTest, EachSettingHasACondition_ARule_OrAlwaysCounts) {
  std::map<std::string, const Setting*> paths;
  const Section job = JobSection(BuiltInRegistry());
  ListPaths(job, "", &paths);
  const std::set<std::string> always(std::begin(kAlways), std::end(kAlways));
  for (const std::string& path : always) EXPECT_TRUE(paths.contains(path)) << path;
  // An object that occurs in several places is checked at the first.
  const auto is_part = [](const std::string& path) {
    for (const char* object : {"optimizer.", "schedule.", "init.", "policy.", "optimizer", "init",
                               "schedule", "policy"}) {
      if (path.find(object) != std::string::npos) return true;
    }
    return false;
  };
  int ruled = 0;
  for (const auto& [path, setting] : paths) {
    if (setting->only_where.has_value() || always.contains(path)) continue;
    if (kIdle.contains(path)) {
      ++ruled;
      continue;
    }
    if (is_part(path) && !path.starts_with("parallel.")) continue;
    const bool below = std::ranges::any_of(
        kAlwaysBelow, [&path = path](const char* object) { return path.starts_with(object); });
    EXPECT_TRUE(below) << path << ": where has it no effect? Give it a condition, a rule in "
                       << "idle_settings.cc, or a place in the list of this test";
  }
  EXPECT_GT(ruled, 15);
}

}  // namespace
}  // namespace hdps
