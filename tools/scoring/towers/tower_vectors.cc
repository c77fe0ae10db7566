// Runs the whole graph on rows whose other tower sees nothing, and reads the tower's last layer.
#include "tools/scoring/towers/tower_vectors.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "tools/scoring/towers/layer_values.h"

namespace hdps {
namespace {

// Names of layers that the recipe two_tower gives.
constexpr char kUserLayer[] = "user", kItemLayer[] = "item", kBiasLayer[] = "logit";

const char* LayerOf(Tower tower) { return tower == Tower::kItem ? kItemLayer : kUserLayer; }

size_t IndexOf(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::ranges::find(names, name) - names.begin());
}

// Returns the features and numeric columns that a layer depends on, in the order of the job.
FeatureNames ReadBy(const Job& job, const std::string& layer, const FeatureNames& all) {
  std::set<std::string> below = {layer}, sparse;
  bool numeric = false;
  for (size_t i = job.model.layers.size(); i-- > 0;) {
    const LayerSpec& spec = job.model.layers[i];
    if (!below.contains(spec.name)) continue;
    below.insert(spec.inputs.begin(), spec.inputs.end());
    numeric = numeric || spec.kind == "numeric";
    if (spec.kind != "embedding") continue;
    const std::vector<std::string>& read = spec.features.empty() ? all.sparse : spec.features;
    sparse.insert(read.begin(), read.end());
  }
  FeatureNames names;
  for (const std::string& name : all.sparse) {
    if (sparse.contains(name)) names.sparse.push_back(name);
  }
  if (numeric) names.numeric = all.numeric;
  return names;
}

}  // namespace

TowerRows::TowerRows(const Job& job, Tower tower)
    : job_(job),
      all_(FeaturesOf(job.data)),
      features_(ReadBy(job, LayerOf(tower), all_)),
      finder_(job) {}

Result<std::unique_ptr<TowerRows>> TowerRows::New(const Job& job, Tower tower) {
  if (job.model.type == "two_tower") {
    return std::unique_ptr<TowerRows>(new TowerRows(job, tower));
  }
  return Status(Code::kInvalidArgument, "model.type is " + job.model.type +
                                            ": expected two_tower, whose items have vectors");
}

Result<Batch> TowerRows::WholeRows(const Batch& rows, const FeatureNames& names) const {
  const size_t n = rows.num_examples;
  Batch whole;
  whole.num_examples = rows.num_examples;
  whole.num_labels = static_cast<uint32_t>(TasksOf(job_.model).size());
  whole.labels.resize(n * whole.num_labels);
  whole.groups.resize(n);
  for (const std::string& name : all_.sparse) {
    const size_t at = IndexOf(names.sparse, name);
    if (at < names.sparse.size()) {
      whole.sparse.push_back(rows.sparse[at]);
      continue;
    }
    if (IndexOf(features_.sparse, name) < features_.sparse.size()) {
      return Status(Code::kInvalidArgument, "the feature '" + name + "' is missing in the rows");
    }
    whole.sparse.emplace_back().offsets.resize(n + 1);
  }
  whole.num_numeric = static_cast<uint32_t>(all_.numeric.size());
  whole.numeric.resize(n * whole.num_numeric);
  for (size_t c = 0; c < all_.numeric.size(); ++c) {
    const size_t at = IndexOf(names.numeric, all_.numeric[c]);
    if (at == names.numeric.size() && !features_.numeric.empty()) {
      return Status(Code::kInvalidArgument,
                    "the column '" + all_.numeric[c] + "' is missing in the rows");
    }
    for (size_t i = 0; i < n && at < names.numeric.size(); ++i) {
      whole.numeric[i * whole.num_numeric + c] = rows.numeric[i * rows.num_numeric + at];
    }
  }
  return whole;
}

Status TowerRows::Assign(const Batch& rows, const FeatureNames& names, StepParts* parts) {
  HDPS_ASSIGN_OR_RETURN(Batch whole, WholeRows(rows, names));
  parts->Assign(std::move(whole), 1, finder_);
  return {};
}

TowerVectors::TowerVectors(CheckpointModel& loaded, std::unique_ptr<TowerRows> whole,
                           bool counts_unknown, RowView view)
    : loaded_(loaded),
      view_(view),
      whole_(std::move(whole)),
      counts_unknown_(counts_unknown),
      unknown_(loaded) {}

TowerVectors::~TowerVectors() = default;

uint32_t TowerVectors::dim() const { return values_->width(); }

Result<std::unique_ptr<TowerVectors>> TowerVectors::New(CheckpointModel& loaded, Tower tower,
                                                        Executor& executor, bool counts_unknown,
                                                        RowView view) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<TowerRows> whole, TowerRows::New(loaded.job(), tower));
  std::unique_ptr<TowerVectors> vectors(
      new TowerVectors(loaded, std::move(whole), counts_unknown, view));
  std::vector<float> dense;
  {
    ReaderLock lock(loaded.rows_mutex());
    vectors->clock_ = loaded.step(view);
    dense = loaded.DenseWeights(view);
  }
  HDPS_ASSIGN_OR_RETURN(vectors->values_,
                        LayerValues::New(loaded.job(), LayerOf(tower), std::move(dense), executor));
  return vectors;
}

Status TowerVectors::ReadRows() {
  ReaderLock lock(loaded_.rows_mutex());
  if (loaded_.step(view_) != clock_) {
    return {Code::kStaleView, "the vectors are of step " + std::to_string(clock_) +
                                  ", and the rows of step " + std::to_string(loaded_.step(view_))};
  }
  if (counts_unknown_) unknown_.Add(parts_);
  const std::vector<TableSpec>& tables = loaded_.job().tables;
  rows_.resize(tables.size());
  for (uint32_t t = 0; t < tables.size(); ++t) {
    const std::span<const Key> keys = parts_.KeysOf({t});
    rows_[t].resize(keys.size() * tables[t].dim);
    loaded_.Read({t}, keys, parts_.FieldShardsOf({t}), rows_[t], {}, view_);
  }
  return {};
}

Result<std::vector<float>> TowerVectors::Of(const Batch& rows, const FeatureNames& names) {
  HDPS_RETURN_IF_ERROR(whole_->Assign(rows, names, &parts_));
  if (parts_.empty()) return std::vector<float>();
  HDPS_RETURN_IF_ERROR(ReadRows());
  std::vector<TableInput> inputs(rows_.size());
  for (uint32_t t = 0; t < inputs.size(); ++t) {
    inputs[t].keys = parts_.SetOf(0, {t});
    inputs[t].rows = rows_[t];
  }
  return values_->Compute(parts_.parts()[0].batch, inputs);
}

float ScoreBias(CheckpointModel& loaded, RowView view) {
  const std::vector<DenseTensor>& tensors = loaded.model().tensors();
  const auto bias = std::ranges::find_if(tensors, [&loaded](const DenseTensor& tensor) {
    return loaded.job().model.layers[tensor.layer].name == kBiasLayer;
  });
  if (bias == tensors.end()) return 0;
  return loaded.DenseWeights(view)[bias->first_chunk * kDenseChunkFloats];
}

}  // namespace hdps
