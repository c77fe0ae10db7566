// Walks all settings through jobs of every mode: no value is without an effect in silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/text/job_sections.h"
#include "tests/common/job/job_samples.h"
#include "tests/common/job/setting_places.h"

namespace hdps {
namespace {

struct JobMode {
  const char* name;
  std::vector<std::string> overrides;
};

// The model is another program's.
constexpr const char* kTablesAlone = R"(model={"type": "tables", "tables": [{"name": "t"}]})";

std::vector<JobMode> Modes() {
  const std::string all = "parallel.dense_exchange=allreduce", mode = "parallel.parallel_mode=";
  return {{"sync", {}},
          {"sync without evaluation", {"data.eval=[]"}},
          {"tables", {kTablesAlone}},
          {"tables without data", {"data={}", kTablesAlone, "train.eval_every_steps=5"}},
          {"async", {"train.mode=async"}},
          {"ssp", {"train.mode=ssp", "train.staleness_bound=2"}},
          {"stand_alone", {mode + "stand_alone"}},
          {"allreduce", {all}},
          {"async allreduce", {all, "train.mode=async"}},
          {"hybrid_parallel", {all, mode + "hybrid_parallel"}},
          {"semi_auto_parallel", {all, mode + "semi_auto_parallel"}},
          {"auto_parallel", {all, mode + "auto_parallel"}}};
}

using Counts = bool (*)(const Job& job);
bool Always(const Job&) { return true; }
bool Evaluates(const Job& job) { return IsTablesJob(job) || !EvalSetsOf(job.data).empty(); }
bool Allreduces(const Job& job) { return job.parallel.dense_exchange == DenseExchange::kAllreduce; }
bool SplitsOptimizer(const Job& job) { return job.parallel.optimizer.enabled; }
bool HasCopies(const Job& job) { return job.parallel.interleave_num > 1; }
bool Searches(const Job& job) { return job.parallel.parallel_mode == ParallelMode::kAuto; }
bool Copies(const Job& job) { return !job.checkpoint.copy_to.empty(); }
bool Cuts(const Job& job) {
  return job.parallel.parallel_mode != ParallelMode::kData &&
         job.parallel.parallel_mode != ParallelMode::kStandAlone;
}

// Settings that leave the digest of the job as it is: where they count, and the figure or line that
// tells of them there. A path that ends in "." stands for all below it.
struct Told {
  const char* figure;
  Counts counts = Always;
};
const std::map<std::string, Told> kTold = {
    {"name", {"job in summary.json"}},
    {"data.train", {"the digest of the rows"}},
    {"data.follow", {"the job waits for rows at the end of the files"}},
    {"data.follow_until", {"the end of the job"}},
    {"data.kafka.", {"the offsets in the manifest"}},
    {"data.eval", {"eval_... in summary.json"}},
    {"data.eval_sets[].", {"eval_sets in summary.json"}},
    {"data.vocabulary.file", {"the line of the data at the start"}},
    {"data.distinct", {"rows of hdps plan, the line of the strategy"}},
    {"data.distinct_half", {"places of hdps plan --placement, the line of the strategy"}},
    {"data.max_bad_rows", {"the end of the job, bad_rows"}},
    {"data.cache", {"the lines data.cache in the log"}},
    {"data.cache_path", {"the lines data.cache in the log"}},
    {"data.cache_share", {"the lines data.cache in the log"}},
    {"train.epochs", {"steps in summary.json"}},
    {"train.max_steps", {"steps in summary.json"}},
    {"train.eval_each_epoch", {"evaluations in metrics.jsonl", Evaluates}},
    {"train.eval_every_steps", {"evaluations in metrics.jsonl", Evaluates}},
    {"train.log_every_steps", {"lines of loss by worker 0"}},
    {"train.evals_per_epoch", {"evaluations in metrics.jsonl", Evaluates}},
    {"train.progressive.window", {"progressive in summary.json"}},
    {"train.metrics", {"eval_metrics in summary.json, or of hdps evaluate"}},
    {"train.early_stop.", {"stopped_early in summary.json", Evaluates}},
    {"train.lookahead", {"waits in the worker's log"}},
    {"model.device", {"the line of the worker's arithmetic"}},
    {"model.dense_target", {"the warning of a worker without a GPU"}},
    {"model.vocab_cache_size", {"cache in summary.json"}},
    {"model.tables[].vocab_cache_size", {"cache in summary.json"}},
    {"model.layer_settings{}.device", {"the line of the model in the worker's log"}},
    {"model.layer_settings{}.dense_target", {"the worker's line of its optimizer state"}},
    {"model.layer_settings{}.fusion", {"collectives in summary.json", Allreduces}},
    {"model.layer_settings{}.shard", {"the line of the strategy", Cuts}},
    {"model.layers[].device", {"the line of the model in the worker's log"}},
    {"model.layers[].dense_target", {"the worker's line of its optimizer state"}},
    {"model.layers[].fusion", {"collectives in summary.json", Allreduces}},
    {"model.layers[].init", {"the digest of the rows; zeros are hashed as in the first version"}},
    {"model.layers[].shard", {"the line of the strategy", Cuts}},
    {"parallel.parallel_mode", {"the line of the strategy, or the refusal of several workers"}},
    {"parallel.device_num", {"workers in summary.json"}},
    {"parallel.global_rank", {"the worker's rank, or a warning of the scheduler"}},
    {"parallel.collective", {"the worker's line \"gradients are summed by\"", Allreduces}},
    {"parallel.comm_fusion.", {"collectives in summary.json", Allreduces}},
    {"parallel.all_reduce_fusion_config", {"collectives in summary.json", Allreduces}},
    {"parallel.enable_parallel_optimizer", {"collectives in summary.json", Allreduces}},
    {"parallel.parallel_optimizer_config.", {"collectives in summary.json", SplitsOptimizer}},
    {"parallel.loss_sum", {"train_logloss in summary.json", HasCopies}},
    {"parallel.blocks[].", {"the line of the strategy", Cuts}},
    {"parallel.search_mode", {"the line of the strategy", Searches}},
    {"parallel.auto_parallel_search_mode", {"the line of the strategy", Searches}},
    {"parallel.fully_use_devices", {"the line of the strategy", Searches}},
    {"parallel.strategy_ckpt_save_file", {"the file", Cuts}},
    {"parallel.strategy_ckpt_load_file", {"the line of the strategy", Cuts}},
    {"parallel.worker_memory_limit", {"the line of the strategy, or the refusal", Cuts}},
    {"parallel.constants", {"the line of the strategy", Cuts}},
    {"checkpoint.keep_best", {"best_checkpoint in summary.json", Evaluates}},
    {"checkpoint.every_steps", {"the checkpoints in --out"}},
    {"checkpoint.delta_every_steps", {"the checkpoints in --out"}},
    {"checkpoint.every_seconds", {"the checkpoints in --out"}},
    {"checkpoint.delta_every_seconds", {"the checkpoints in --out"}},
    {"checkpoint.every_epochs", {"the checkpoints in --out"}},
    {"checkpoint.keep", {"the checkpoints in --out"}},
    {"checkpoint.retry_s", {"the end of a job whose disk is full"}},
    {"checkpoint.copy_to", {"the copies there"}},
    {"checkpoint.copy_wait_s", {"the end of a job with copies", Copies}},
    {"cluster.", {"hdps why, and the times of losses and repeats"}},
};

// "model.layers.1.units" is "model.layers[].units" in the table above and in docs/job_file.md, and
// "model.layer_settings.deep1.device" is "model.layer_settings{}.device".
std::string PathOf(const std::string& place) {
  std::string path;
  for (size_t at = 0; at <= place.size();) {
    const size_t dot = std::min(place.find('.', at), place.size());
    const std::string part = place.substr(at, dot - at);
    const bool number = !part.empty() && std::isdigit(static_cast<unsigned char>(part[0])) != 0;
    const bool name = path.ends_with("layer_settings");
    path += number ? "[]" : name ? "{}" : (path.empty() ? "" : ".") + part;
    at = dot + 1;
  }
  return path;
}

bool IsTold(const Job& job, const std::string& path) {
  return std::ranges::any_of(kTold, [&](const auto& entry) {
    const bool named =
        entry.first.ends_with('.') ? path.starts_with(entry.first) : path == entry.first;
    return named && entry.second.counts(job);
  });
}

std::vector<std::string> Together(const std::vector<std::vector<std::string>>& lists) {
  std::vector<std::string> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// What became of one value.
enum class Effect { kShown, kNone, kSilent };

// Compares a job with another value of the setting at `path`. A refusal shows it, a warning that
// names it, a digest, or a figure of kTold where the job is another one at all.
Effect EffectOf(const Job& base, const Result<Job>& job, const std::string& path) {
  if (!job.ok()) return Effect::kShown;
  const std::set<std::string> before(base.warnings.begin(), base.warnings.end());
  for (const std::string& warning : job->warnings) {
    if (!before.contains(warning)) return Effect::kShown;
  }
  if (JobDigest(*job) != JobDigest(base) || TablesDigest(*job) != TablesDigest(base)) {
    return Effect::kShown;
  }
  if (PrintJob(*job) == PrintJob(base) && job->warnings == base.warnings) return Effect::kNone;
  return IsTold(*job, path) ? Effect::kShown : Effect::kSilent;
}

// Is true if a warning of the job says that the setting at `place`, or a list that it stands in, is
// ignored whatever its value is.
bool IsIgnored(const Job& job, const std::string& place) {
  return std::ranges::any_of(job.warnings, [&](const std::string& warning) {
    const size_t end = warning.find(" is ignored: ");
    return end != warning.npos && (place + ".").starts_with(warning.substr(0, end) + ".");
  });
}

// By default each setting is tried in every third mode, so that three runs of the list see all.
constexpr size_t kModesPerShare = 3;
bool WalksAll() {
  const char* const tests = std::getenv("HDPS_TESTS");
  return tests != nullptr && std::string_view(tests) == "all";
}

TEST(SettingWalkTest, NoValueIsWithoutEffectInSilence) {
  const Section whole = JobSection(BuiltInRegistry());
  const std::vector<SettingPlace> places = PlacesOf(whole);
  const std::vector<JobMode> modes = Modes();
  std::set<std::string> walked;
  size_t jobs = 0, left_out = 0, without_job = 0;
  for (size_t p = 0; p < places.size(); ++p) {
    const SettingPlace& place = places[p];
    if (place.setting->kind == ValueKind::kObject) continue;  // What is in it is walked.
    const std::string path = PathOf(place.path);
    const std::vector<std::string> values = ValuesOf(*place.setting, path);
    EXPECT_FALSE(values.empty()) << path << ": give kValues another value of it";
    for (size_t m = 0; m < modes.size(); ++m) {
      if (!WalksAll() && (p + m) % kModesPerShare != 0) {
        ++left_out;
        continue;
      }
      const std::vector<std::string> given =
          Together({{"data.eval=[\"e.csv\"]"}, modes[m].overrides, place.overrides});
      const Result<Job> base = ParseJob(kShort, "job.json", given);
      if (!base.ok()) {  // The mode cannot have what the setting needs, and says so.
        ++without_job;
        continue;
      }
      bool shown = IsIgnored(*base, place.path);
      for (const std::string& value : values) {
        const Result<Job> job =
            ParseJob(kShort, "job.json", Together({given, {place.path + "=" + value}}));
        const Effect effect = EffectOf(*base, job, path);
        EXPECT_NE(effect, Effect::kSilent)
            << path << " = " << value << " changes the job in mode " << modes[m].name
            << ", but no digest, and warns of nothing: give it a rule in idle_settings.cc, or "
               "kTold "
               "the figure that it changes";
        shown = shown || effect == Effect::kShown;
        ++jobs;
      }
      EXPECT_TRUE(shown) << path << " has no effect in mode " << modes[m].name
                         << ", and no warning says so";
      walked.insert(path);
    }
  }
  std::printf("%zu settings, %zu jobs; %zu pairs of setting and mode that cannot be\n",
              walked.size(), jobs, without_job);
  if (left_out > 0) {
    std::printf("left out: %zu of %zu pairs of setting and mode\n", left_out,
                places.size() * modes.size());
  }
  EXPECT_GT(walked.size(), 200u);
}

// The table above names settings that exist.
TEST(SettingWalkTest, EachToldSettingIsThere) {
  std::set<std::string> paths;
  const Section whole = JobSection(BuiltInRegistry());
  for (const SettingPlace& place : PlacesOf(whole)) paths.insert(PathOf(place.path));
  for (const auto& [path, told] : kTold) {
    const bool there =
        path.ends_with('.')
            ? std::ranges::any_of(
                  paths, [&path = path](const auto& known) { return known.starts_with(path); })
            : paths.contains(path);
    EXPECT_TRUE(there) << path;
  }
  for (const auto& [path, values] : OtherValues()) EXPECT_TRUE(paths.contains(path)) << path;
}

// Sabotage: without their warnings these would be without an effect in silence, and are noticed.
TEST(SettingWalkTest, AValueThatDoesNothingIsNoticed) {
  const std::string all = "parallel.dense_exchange=allreduce";
  const std::string config = "parallel.parallel_optimizer_config.";
  const struct {
    std::string path;
    std::vector<std::string> before, with;
  } idle[] = {
      {"parallel.loss_sum", {}, {"parallel.loss_sum=true"}},
      {"model.layers[].fusion", {kGraph}, {"model.layers.1.fusion=3"}},
      {config + "parallel_optimizer_threshold",
       {all},
       {R"(parallel.parallel_optimizer_config={"parallel_optimizer_threshold": 5})"}},
      {config + "gradient_accumulation_shard",
       {all},
       {R"(parallel.parallel_optimizer_config={"gradient_accumulation_shard": true})"}},
      {"train.eval_each_epoch", {}, {"train.eval_each_epoch=false"}},
      {"checkpoint.keep_best", {}, {"checkpoint.keep_best=false"}},
      {"train.eval_every_steps", {}, {"train.eval_every_steps=3"}},
  };
  for (const auto& setting : idle) {
    SCOPED_TRACE(setting.path);
    const Job base = Good(setting.before);
    Job job = Good(Together({setting.before, setting.with}));
    EXPECT_EQ(EffectOf(base, job, setting.path), Effect::kShown) << "the warning shows it";
    job.warnings = base.warnings;
    EXPECT_NE(EffectOf(base, job, setting.path), Effect::kShown);
  }
  Job renamed = Good({});
  renamed.name = "other";
  EXPECT_EQ(EffectOf(Good({}), renamed, "name"), Effect::kShown);
  EXPECT_EQ(EffectOf(Good({}), renamed, "data.nobody"), Effect::kSilent);
}

}  // namespace
}  // namespace hdps
