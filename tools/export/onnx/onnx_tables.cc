// Encodes all keys of a table at once, gathers their rows, and splits them by feature.
#include "tools/export/onnx/onnx_tables.h"

#include <glog/logging.h>

#include <algorithm>
#include <set>

#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "worker/model/feature_list.h"

namespace hdps {
namespace {

// Is true if an example may have several values of the feature, or values with weights.
bool HasSeveral(const DataSpec& data, const std::string& feature) {
  switch (data.format) {
    case DataFormat::kLibsvm:
    case DataFormat::kLibffm:
    case DataFormat::kLibfm:
      return true;
    case DataFormat::kCsv:
    case DataFormat::kParquet:
    case DataFormat::kTfrecord:
    case DataFormat::kJsonl:
      return std::ranges::any_of(data.columns, [&](const ColumnSpec& column) {
        return column.name == feature && column.type == ColumnType::kMulti;
      });
    case DataFormat::kCriteo:
    case DataFormat::kIdx:
      return false;
  }
  return true;
}

// Returns the features that some layer looks up, and of these the ones read as sequences.
std::set<uint32_t> FeaturesRead(const Job& job, bool sequences_alone) {
  std::set<uint32_t> read;
  for (const LayerSpec& layer : job.model.layers) {
    if (!RegistryOf(job.model).layers.Find(layer.kind)->fields.embedding) continue;
    if (sequences_alone && layer.kind != "sequence") continue;
    const std::vector<uint32_t> features = FeatureIndexes(job.data, layer);
    read.insert(features.begin(), features.end());
  }
  return read;
}

}  // namespace

std::vector<OnnxFeature> OnnxFeaturesOf(const Job& job) {
  const std::set<uint32_t> sequences = FeaturesRead(job, /*sequences_alone=*/true);
  std::vector<OnnxFeature> features;
  for (const std::string& name : FeaturesOf(job.data).sparse) {
    const bool weights =
        HasSeveral(job.data, name) || sequences.contains(static_cast<uint32_t>(features.size()));
    features.push_back({name, weights ? name + ".weight" : ""});
  }
  return features;
}

OnnxTables::OnnxTables(const Job& job, OnnxGraph& graph, const std::vector<OnnxRows>* rows)
    : job_(job),
      graph_(graph),
      rows_(rows),
      features_(OnnxFeaturesOf(job)),
      looked_(job.tables.size()) {
  if (!inside()) return;
  for (const uint32_t f : FeaturesRead(job, /*sequences_alone=*/false)) {
    const OnnxFeature& feature = features_[f];
    if (feature.weight_name.empty()) {
      graph.Input(feature.name, OnnxType::kInt64, {"n", 1});
      continue;
    }
    const std::string width = feature.name + "_values";
    graph.Input(feature.name, OnnxType::kInt64, {"n", width});
    graph.Input(feature.weight_name, OnnxType::kFloat, {"n", width});
  }
}

const OnnxValue& OnnxTables::PlacesOf(const std::vector<uint32_t>& features,
                                      const std::vector<Key>& keys) {
  for (const Encoder& encoder : encoders_) {
    if (encoder.features == features && *encoder.keys == keys) return encoder.places;
  }
  std::vector<OnnxValue> inputs;
  for (const uint32_t f : features) inputs.push_back(features_[f].name);
  const OnnxValue all = graph_.Concat(inputs, 1);
  // An encoder without keys is not allowed: all keys of such a table are unknown.
  const OnnxValue places =
      keys.empty() ? graph_.Add("Sub", {all, all}) : graph_.AddKeyEncoder(all, keys);
  encoders_.push_back({features, &keys, places});
  return encoders_.back().places;
}

OnnxTables::Looked OnnxTables::LookUp(uint32_t table) {
  const TableSpec& spec = job_.tables[table];
  const OnnxRows& rows = (*rows_)[table];
  const auto dim = static_cast<int64_t>(spec.dim);
  Looked looked = {FeaturesOfTable(job_, spec.name), {}};
  graph_.BeginPart("tables/" + spec.name);
  const OnnxValue constant = graph_.Floats(
      "tables/" + spec.name, {static_cast<int64_t>(rows.keys.size()) + 1, dim}, rows.weights);
  const OnnxValue places = PlacesOf(looked.features, rows.keys);
  const OnnxValue all = graph_.Add("Gather", {constant, places}, {{"axis", int64_t{0}}});
  if (looked.features.size() == 1) {
    looked.rows = {all};
    return looked;
  }
  std::vector<OnnxValue> widths;
  for (const uint32_t f : looked.features) {
    const bool one = features_[f].weight_name.empty();
    widths.push_back(one ? graph_.Ints({1})
                         : graph_.Add("Shape", {features_[f].name},
                                      {{"start", int64_t{1}}, {"end", int64_t{2}}}));
  }
  looked.rows = graph_.AddMany("Split", widths.size(), {all, graph_.Concat(widths, 0)},
                               {{"axis", int64_t{1}}});
  return looked;
}

OnnxTables::Bags OnnxTables::Of(const std::string& table, uint32_t feature) {
  CHECK(inside());
  const auto found = std::ranges::find(job_.tables, table, &TableSpec::name);
  const auto t = static_cast<uint32_t>(found - job_.tables.begin());
  if (looked_[t].features.empty()) looked_[t] = LookUp(t);
  const Looked& looked = looked_[t];
  const auto at = std::ranges::find(looked.features, feature) - looked.features.begin();
  return {looked.rows[static_cast<size_t>(at)], features_[feature].weight_name};
}

}  // namespace hdps
