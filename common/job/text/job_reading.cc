// From the checked tree to the structs of job.h.
#include "common/job/text/job_reading.h"

#include <glog/logging.h>

#include <algorithm>

namespace hdps {

void ReadKey(const JsonValue& object, std::string_view key, bool* to) {
  if (const JsonValue* value = object.Find(key)) *to = value->boolean;
}
void ReadKey(const JsonValue& object, std::string_view key, uint32_t* to) {
  if (const JsonValue* value = object.Find(key)) *to = static_cast<uint32_t>(value->magnitude);
}
void ReadKey(const JsonValue& object, std::string_view key, uint64_t* to) {
  if (const JsonValue* value = object.Find(key)) *to = value->magnitude;
}
void ReadBytes(const JsonValue& object, std::string_view key, uint64_t* to) {
  if (const JsonValue* value = object.Find(key)) *to = BytesIn(*value).value_or(*to);
}
void ReadKey(const JsonValue& object, std::string_view key, int64_t* to) {
  if (const JsonValue* value = object.Find(key)) *to = static_cast<int64_t>(value->magnitude);
}
void ReadKey(const JsonValue& object, std::string_view key, float* to) {
  if (const JsonValue* value = object.Find(key)) *to = static_cast<float>(value->number);
}
void ReadKey(const JsonValue& object, std::string_view key, double* to) {
  if (const JsonValue* value = object.Find(key)) *to = value->number;
}
void ReadKey(const JsonValue& object, std::string_view key, std::string* to) {
  if (const JsonValue* value = object.Find(key)) *to = value->text;
}

void ReadKey(const JsonValue& object, std::string_view key, std::vector<std::string>* to) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr) return;
  to->clear();
  for (const JsonValue& item : value->items) to->push_back(item.text);
}
void ReadKey(const JsonValue& object, std::string_view key, std::vector<uint32_t>* to) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr) return;
  to->clear();
  for (const JsonValue& item : value->items) to->push_back(static_cast<uint32_t>(item.magnitude));
}
void ReadKey(const JsonValue& object, std::string_view key, std::vector<double>* to) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr) return;
  to->clear();
  for (const JsonValue& item : value->items) to->push_back(item.number);
}

namespace {

std::vector<std::string> ChoicesOfKey(std::string_view section, std::string_view key) {
  for (const KeySpec& spec : JobKeys()) {
    if (spec.section == section && spec.key == key) return ChoicesOf(spec.of);
  }
  LOG(FATAL) << "no key " << section << "." << key << " in the table of job keys";
  return {};
}

}  // namespace

size_t ChoiceIn(const JsonValue& object, std::string_view section, std::string_view key,
                size_t otherwise) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr) return otherwise;
  const std::vector<std::string> choices = ChoicesOfKey(section, key);
  const auto found = std::find(choices.begin(), choices.end(), value->text);
  CHECK(found != choices.end()) << section << "." << key << " passed CheckKeys as " << value->text;
  return static_cast<size_t>(found - choices.begin());
}

std::string ChoiceText(std::string_view section, std::string_view key, size_t number) {
  return ChoicesOfKey(section, key).at(number);
}

namespace {

void ReadColumns(const JsonValue& data, std::vector<ColumnSpec>* columns) {
  const JsonValue* list = data.Find("columns");
  if (list == nullptr) return;
  for (const JsonValue& item : list->items) {
    ColumnSpec column;
    ReadKey(item, "name", &column.name);
    ReadChoice(item, "column", "type", &column.type);
    ReadChoice(item, "column", "transform", &column.transform);
    ReadKey(item, "mean", &column.mean);
    ReadKey(item, "scale", &column.scale);
    ReadKey(item, "separator", &column.separator);
    ReadKey(item, "positive", &column.positive);
    const JsonValue* repeat = item.Find("repeat");
    if (repeat == nullptr) {
      columns->push_back(column);
      continue;
    }
    const std::string name = column.name;
    for (uint64_t n = 0; n < repeat->magnitude; ++n) {
      column.name = name + std::to_string(n);
      columns->push_back(column);
    }
  }
}

void ReadFeatures(const JsonValue& data, std::vector<FeatureSpec>* features) {
  const JsonValue* list = data.Find("features");
  if (list == nullptr) return;
  for (const JsonValue& item : list->items) {
    FeatureSpec feature;
    ReadKey(item, "name", &feature.name);
    ReadChoice(item, "feature", "kind", &feature.kind);
    ReadKey(item, "from", &feature.from);
    ReadKey(item, "boundaries", &feature.boundaries);
    ReadKey(item, "hash_buckets", &feature.hash_buckets);
    features->push_back(std::move(feature));
  }
}

void ReadData(const JsonValue& object, DataSpec* data) {
  ReadChoice(object, "data", "format", &data->format);
  ReadKey(object, "train", &data->train);
  ReadKey(object, "eval", &data->eval);
  ReadKey(object, "delimiter", &data->delimiter);
  ReadKey(object, "header", &data->header);
  ReadKey(object, "missing", &data->missing);
  ReadKey(object, "comment", &data->comment);
  ReadColumns(object, &data->columns);
  ReadFeatures(object, &data->features);
  if (data->format == DataFormat::kLibffm || data->format == DataFormat::kLibfm) {
    data->num_fields = 1;
  }
  ReadKey(object, "num_fields", &data->num_fields);
  ReadChoice(object, "data", "numeric_transform", &data->numeric_transform);
  ReadKey(object, "shuffle_rows", &data->shuffle_rows);
  ReadKey(object, "max_bad_rows", &data->max_bad_rows);
}

void ReadTrain(const JsonValue& object, TrainSpec* train) {
  ReadChoice(object, "train", "mode", &train->mode);
  ReadKey(object, "staleness_bound", &train->staleness_bound);
  ReadKey(object, "batch_size", &train->batch_size);
  ReadKey(object, "epochs", &train->epochs);
  ReadKey(object, "max_steps", &train->max_steps);
  ReadKey(object, "micro_batches", &train->micro_batches);
  ReadKey(object, "lookahead", &train->lookahead);
  ReadKey(object, "eval_each_epoch", &train->eval_each_epoch);
  ReadKey(object, "cache_refresh_steps", &train->cache_refresh_steps);
}

void ReadParallel(const JsonValue& object, ParallelSpec* parallel) {
  ReadKey(object, "parallel_mode", &parallel->parallel_mode);
  ReadKey(object, "device_num", &parallel->device_num);
  ReadKey(object, "gradients_mean", &parallel->gradients_mean);
  ReadKey(object, "cross_batch", &parallel->cross_batch);
  ReadChoice(object, "parallel", "dataset_strategy", &parallel->dataset_strategy);
  bool full_batch = false;
  ReadKey(object, "full_batch", &full_batch);
  if (full_batch) parallel->dataset_strategy = DatasetStrategy::kFullBatch;
  ReadChoice(object, "parallel", "dense_exchange", &parallel->dense_exchange);
  ReadKey(object, "collective", &parallel->collective);
  ReadChoice(object, "parallel", "wire", &parallel->wire);
}

void ReadCluster(const JsonValue& object, ClusterSpec* cluster) {
  ReadKey(object, "shards", &cluster->shards);
  ReadKey(object, "heartbeat_ms", &cluster->heartbeat_ms);
  ReadKey(object, "dead_after_ms", &cluster->dead_after_ms);
  ReadKey(object, "rendezvous_timeout_s", &cluster->rendezvous_timeout_s);
  ReadKey(object, "request_retry_ms", &cluster->request_retry_ms);
  ReadKey(object, "request_timeout_s", &cluster->request_timeout_s);
  ReadKey(object, "pushes_in_flight_max", &cluster->pushes_in_flight_max);
  ReadBytes(object, "memory_limit", &cluster->memory_limit);
  ReadKey(object, "spill_path", &cluster->spill_path);
}

}  // namespace

void ReadSections(const JsonValue& root, Job* job) {
  ReadKey(root, "name", &job->name);
  ReadKey(root, "seed", &job->seed);
  if (const JsonValue* data = root.Find("data")) ReadData(*data, &job->data);
  if (const JsonValue* train = root.Find("train")) ReadTrain(*train, &job->train);
  if (const JsonValue* parallel = root.Find("parallel")) ReadParallel(*parallel, &job->parallel);
  if (const JsonValue* checkpoint = root.Find("checkpoint")) {
    ReadKey(*checkpoint, "every_steps", &job->checkpoint.every_steps);
    ReadKey(*checkpoint, "keep", &job->checkpoint.keep);
  }
  if (const JsonValue* cluster = root.Find("cluster")) ReadCluster(*cluster, &job->cluster);
}

}  // namespace hdps
