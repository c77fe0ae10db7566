// Prints a Job as JSON, and hashes the result for its digests.
#include <utility>

#include "common/base/hash.h"
#include "common/job/job_differences.h"
#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_registry.h"
#include "common/job/layers/layer_record.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/strategy/strategy_file.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/job_text.h"

namespace hdps {

namespace {

// Returns the job in the form of a file that spells out the model as a graph.
JobText TextOf(const Job& job) {
  JobText text;
  text.name = job.name;
  text.seed = job.seed;
  text.data = job.data;
  text.parallel = job.parallel;
  text.checkpoint = job.checkpoint;
  text.cluster = job.cluster;
  static_cast<TrainSpec&>(text.train_text) = job.train;
  ModelText& model = text.model_text;
  static_cast<ModelSpec&>(model) = job.model;
  model.tables = job.tables;
  if (!model.tables.empty() && model.tables.back().dense) {
    const TableSpec& dense = model.tables.back();
    if (!IsTablesJob(job)) {
      model.dense_optimizer = dense.optimizer;
      model.dense_schedule = dense.schedule;
      model.dense_loss_l1 = dense.loss_l1;
      model.dense_loss_l2 = dense.loss_l2;
    }
    model.tables.pop_back();
  }
  return text;
}

JsonValue Print(const Job& job, Form form) {
  const JobText text = TextOf(job);
  return PrintSection(JobSection(RegistryOf(job.model)), &text, form);
}

JsonValue DigestForm(Job job) {
  if (!IsTablesJob(job)) job.model.type = "graph";  // Independent of the recipe.
  // The linear parts of the first checkpoints had other initial values, which do not matter for
  // resuming.
  for (LayerSpec& layer : job.model.layers) {
    const auto init = layer.words.find("init");
    if (init != layer.words.end() && init->second == kZerosInit) layer.words.erase(init);
  }
  return Print(job, Form::kDigest);
}

JsonValue WholeForm(Job job) {
  if (job.train.mode == Mode::kSync) job.train.lookahead = 0;  // It changes no result in sync mode.
  // The strategy is not part of the job: a checkpoint resumes under any strategy, and the workers
  // compare theirs when they form a group.
  return DigestForm(std::move(job));
}

JsonValue TablesForm(const Job& job) {
  Job tables;
  tables.seed = job.seed;
  if (IsTablesJob(job)) tables.model.type = kTablesType;
  tables.model.layers = job.model.layers;
  // Rows load onto any number of workers with any split.
  for (LayerSpec& layer : tables.model.layers) layer.shard.clear();
  tables.model.registry = job.model.registry;
  tables.tables = job.tables;
  tables.cluster.shards = job.cluster.shards;
  // The defaults when the first checkpoints were written.
  tables.parallel.gradients_mean = false;
  JsonValue form = DigestForm(std::move(tables));
  form.Find("train")->Erase("lookahead");
  return form;
}

}  // namespace

std::string PrintJob(const Job& job) { return PrintJson(Print(job, Form::kWhole)); }

std::string PrintData(const DataSpec& data) {
  return PrintJson(PrintSection(DataSection(), &data, Form::kWhole));
}

JsonValue FormOf(const Job& job, JobPart part) {
  return part == JobPart::kWhole ? WholeForm(job) : TablesForm(job);
}

uint64_t JobDigest(const Job& job) { return HashString(PrintJson(FormOf(job, JobPart::kWhole))); }

uint64_t TablesDigest(const Job& job) {
  return HashString(PrintJson(FormOf(job, JobPart::kTables)));
}

}  // namespace hdps
