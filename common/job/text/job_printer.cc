// A Job as JSON: every key that counts, in the order of the table of keys.
#include "common/job/text/job_reading.h"
#include "common/job/text/layer_text.h"
#include "common/job/text/optimizer_text.h"

namespace hdps {

namespace {

template <typename Enum>
JsonValue Choice(std::string_view section, std::string_view key, Enum value) {
  return JsonValue::Text(ChoiceText(section, key, static_cast<size_t>(value)));
}

JsonValue Numbers(const std::vector<double>& values) {
  JsonValue list = JsonValue::List();
  for (const double value : values) list.items.push_back(JsonValue::Number(value));
  return list;
}

JsonValue PrintColumn(const ColumnSpec& column) {
  JsonValue object = JsonValue::Object();
  object.Set("name", JsonValue::Text(column.name));
  object.Set("type", Choice("column", "type", column.type));
  object.Set("transform", Choice("column", "transform", column.transform));
  object.Set("mean", JsonValue::Number(column.mean));
  object.Set("scale", JsonValue::Number(column.scale));
  object.Set("separator", JsonValue::Text(column.separator));
  object.Set("positive", JsonValue::Texts(column.positive));
  return object;
}

JsonValue PrintFeature(const FeatureSpec& feature) {
  JsonValue object = JsonValue::Object();
  object.Set("name", JsonValue::Text(feature.name));
  object.Set("kind", Choice("feature", "kind", feature.kind));
  object.Set("from", JsonValue::Texts(feature.from));
  object.Set("boundaries", Numbers(feature.boundaries));
  object.Set("hash_buckets", JsonValue::Integer(feature.hash_buckets));
  return object;
}

JsonValue PrintData(const DataSpec& data) {
  JsonValue object = JsonValue::Object();
  object.Set("format", Choice("data", "format", data.format));
  object.Set("train", JsonValue::Texts(data.train));
  object.Set("eval", JsonValue::Texts(data.eval));
  object.Set("delimiter", JsonValue::Text(data.delimiter));
  // Criteo files had no header once, and the digests of their jobs shall stay what they were.
  if (data.format == DataFormat::kCsv || data.header) {
    object.Set("header", JsonValue::Bool(data.header));
  }
  object.Set("missing", JsonValue::Text(data.missing));
  object.Set("comment", JsonValue::Text(data.comment));
  JsonValue& columns = object.Set("columns", JsonValue::List());
  for (const ColumnSpec& column : data.columns) columns.items.push_back(PrintColumn(column));
  JsonValue& features = object.Set("features", JsonValue::List());
  for (const FeatureSpec& feature : data.features) features.items.push_back(PrintFeature(feature));
  object.Set("num_fields", JsonValue::Integer(data.num_fields));
  object.Set("numeric_transform", Choice("column", "transform", data.numeric_transform));
  object.Set("shuffle_rows", JsonValue::Integer(data.shuffle_rows));
  object.Set("max_bad_rows", JsonValue::Signed(data.max_bad_rows));
  return object;
}

JsonValue PrintPolicy(const PolicySpec& policy) {
  JsonValue object = JsonValue::Object();
  object.Set("admit_after", JsonValue::Integer(policy.admit_after));
  object.Set("admit_probability", JsonValue::Number(policy.admit_probability));
  object.Set("admit_sketch_bytes", JsonValue::Integer(policy.admit_sketch_bytes));
  object.Set("evict_after_steps", JsonValue::Integer(policy.evict_after_steps));
  object.Set("max_rows", JsonValue::Integer(policy.max_rows));
  object.Set("max_bytes", JsonValue::Integer(policy.max_bytes));
  object.Set("evict_by", Choice("policy", "evict_by", policy.evict_by));
  return object;
}

JsonValue PrintTable(const TableSpec& table) {
  JsonValue object = JsonValue::Object();
  object.Set("name", JsonValue::Text(table.name));
  object.Set("dim", JsonValue::Integer(table.dim));
  object.Set("optimizer", PrintOptimizer(table.optimizer));
  JsonValue& init = object.Set("init", JsonValue::Object());
  init.Set("kind", Choice("init", "kind", table.init.kind));
  init.Set("scale", JsonValue::Float(table.init.scale));
  // Left out where it changes nothing: checkpoints of jobs without one are of the same job.
  if (table.policy != PolicySpec()) object.Set("policy", PrintPolicy(table.policy));
  if (table.weights != WeightFormat::kFp32) {
    object.Set("weights", Choice("table", "weights", table.weights));
  }
  object.Set("vocab_cache_size", JsonValue::Integer(table.vocab_cache_size));
  return object;
}

JsonValue PrintModel(const Job& job) {
  JsonValue object = JsonValue::Object();
  object.Set("type", JsonValue::Text(job.model.type));
  JsonValue& tables = object.Set("tables", JsonValue::List());
  for (const TableSpec& table : job.tables) {
    if (!table.dense) tables.items.push_back(PrintTable(table));
  }
  JsonValue& layers = object.Set("layers", JsonValue::List());
  for (const LayerSpec& layer : job.model.layers) {
    layers.items.push_back(PrintLayer(RecordsOf(job.model), layer));
  }
  if (!job.tables.empty() && job.tables.back().dense) {
    object.Set("dense_optimizer", PrintOptimizer(job.tables.back().optimizer));
  }
  object.Set("loss", Choice("model", "loss", job.model.loss));
  object.Set("device", JsonValue::Text(job.model.device));
  object.Set("first_layer", Choice("model", "first_layer", job.model.first_layer));
  return object;
}

JsonValue PrintTrain(const TrainSpec& train) {
  JsonValue object = JsonValue::Object();
  object.Set("mode", Choice("train", "mode", train.mode));
  object.Set("staleness_bound", JsonValue::Integer(train.staleness_bound));
  object.Set("batch_size", JsonValue::Integer(train.batch_size));
  object.Set("epochs", JsonValue::Integer(train.epochs));
  object.Set("max_steps", JsonValue::Integer(train.max_steps));
  object.Set("micro_batches", JsonValue::Integer(train.micro_batches));
  object.Set("lookahead", JsonValue::Integer(train.lookahead));
  object.Set("eval_each_epoch", JsonValue::Bool(train.eval_each_epoch));
  object.Set("cache_refresh_steps", JsonValue::Integer(train.cache_refresh_steps));
  return object;
}

JsonValue PrintParallel(const ParallelSpec& parallel) {
  JsonValue object = JsonValue::Object();
  object.Set("parallel_mode", JsonValue::Text(parallel.parallel_mode));
  if (parallel.device_num > 0) {
    object.Set("device_num", JsonValue::Integer(parallel.device_num));
  }
  object.Set("gradients_mean", JsonValue::Bool(parallel.gradients_mean));
  object.Set("cross_batch", JsonValue::Bool(parallel.cross_batch));
  object.Set("dataset_strategy", Choice("parallel", "dataset_strategy", parallel.dataset_strategy));
  object.Set("dense_exchange", Choice("parallel", "dense_exchange", parallel.dense_exchange));
  object.Set("collective", JsonValue::Text(parallel.collective));
  // As a table's weights: left out where it changes nothing.
  if (parallel.wire != DType::kFp32) {
    object.Set("wire", Choice("parallel", "wire", parallel.wire));
  }
  return object;
}

JsonValue PrintCluster(const ClusterSpec& cluster) {
  JsonValue object = JsonValue::Object();
  object.Set("shards", JsonValue::Integer(cluster.shards));
  object.Set("heartbeat_ms", JsonValue::Integer(cluster.heartbeat_ms));
  object.Set("dead_after_ms", JsonValue::Integer(cluster.dead_after_ms));
  object.Set("rendezvous_timeout_s", JsonValue::Integer(cluster.rendezvous_timeout_s));
  object.Set("request_retry_ms", JsonValue::Integer(cluster.request_retry_ms));
  object.Set("request_timeout_s", JsonValue::Integer(cluster.request_timeout_s));
  object.Set("pushes_in_flight_max", JsonValue::Integer(cluster.pushes_in_flight_max));
  object.Set("memory_limit", JsonValue::Integer(cluster.memory_limit));
  object.Set("spill_path", JsonValue::Text(cluster.spill_path));
  return object;
}

}  // namespace

std::string PrintJob(const Job& job) {
  JsonValue root = JsonValue::Object();
  root.Set("name", JsonValue::Text(job.name));
  root.Set("seed", JsonValue::Integer(job.seed));
  root.Set("data", PrintData(job.data));
  root.Set("model", PrintModel(job));
  root.Set("train", PrintTrain(job.train));
  root.Set("parallel", PrintParallel(job.parallel));
  JsonValue& checkpoint = root.Set("checkpoint", JsonValue::Object());
  checkpoint.Set("every_steps", JsonValue::Integer(job.checkpoint.every_steps));
  checkpoint.Set("keep", JsonValue::Integer(job.checkpoint.keep));
  root.Set("cluster", PrintCluster(job.cluster));
  DropIgnoredKeys(KeyTable(RecordsOf(job.model)), &root);
  return PrintJson(root);
}

}  // namespace hdps
