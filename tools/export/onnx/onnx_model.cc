// Maps the layers in the order of the job, and adds the outputs of the loss.
#include "tools/export/onnx/onnx_model.h"

#include <glog/logging.h>

#include <set>
#include <string_view>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/model_graph.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "tools/export/onnx/onnx_site.h"

namespace hdps {

// Declares one mapping for each line of layer_list.def; it is defined in layers/<file>.cc, so that
// a layer without one does not link.
#define HDPS_LAYER(file, name) OnnxValue name##ToOnnx(const OnnxSite& site);
#include "common/job/layers/layer_list.def"
#undef HDPS_LAYER

namespace {

using Mapping = OnnxValue (*)(const OnnxSite&);

Mapping MappingOf(std::string_view kind) {
#define HDPS_LAYER(file, name) \
  if (kind == #file) return name##ToOnnx;
#include "common/job/layers/layer_list.def"
#undef HDPS_LAYER
  return nullptr;
}

Status CheckMapped(const Job& job) {
  for (const LayerSpec& layer : job.model.layers) {
    const LayerRecord& record = *RegistryOf(job.model).layers.Find(layer.kind);
    if (!record.make && MappingOf(layer.kind) != nullptr) continue;
    return {Code::kInvalidArgument,
            "layer \"" + layer.name + "\" is of kind \"" + layer.kind +
                "\", which is a program's own and has no mapping to ONNX; expected a model of "
                "built-in layers, or --format=safetensors, which has its tensors"};
  }
  return {};
}

// Inputs and outputs are named after what a person named, so two of them may meet.
Status CheckNames(const Job& job, bool inside) {
  std::set<std::string> taken;
  for (const std::string& name : OnnxOutputsOf(job)) taken.insert(name);
  std::vector<std::string> inputs = {"numeric"};
  for (const OnnxFeature& feature : OnnxFeaturesOf(job)) {
    if (!inside) break;
    inputs.push_back(feature.name);
    if (!feature.weight_name.empty()) inputs.push_back(feature.weight_name);
  }
  for (const LayerSpec& layer : job.model.layers) {
    const bool looks_up = RegistryOf(job.model).layers.Find(layer.kind)->fields.embedding;
    if (!inside && looks_up) inputs.push_back(layer.name);
  }
  for (const std::string& name : inputs) {
    if (taken.insert(name).second) continue;
    return {Code::kInvalidArgument, "\"" + name +
                                        "\" would be the name of two inputs or outputs of the "
                                        "model; expected another name of the feature or layer"};
  }
  return {};
}

std::string OutputOf(const TaskSpec& task) {
  const std::string what = task.loss == LossKind::kLogloss   ? "probability"
                           : task.loss == LossKind::kSoftmax ? "probabilities"
                                                             : "score";
  return task.label.empty() ? what : task.label + "." + what;
}

void AddOutputs(const Job& job, const OnnxValue& logits, int64_t width, OnnxGraph& graph) {
  graph.BeginPart("loss");
  const std::vector<TaskSpec> tasks = TasksOf(job.model);
  if (tasks[0].loss == LossKind::kSampledSoftmax) {
    const OnnxValue user = graph.Slice(logits, 1, 0, width / 2);
    const OnnxValue item = graph.Slice(logits, 1, width / 2, width);
    const OnnxValue product = graph.ReduceSum(graph.Add("Mul", {user, item}), 1, /*keep=*/true);
    graph.Output("score", product, {"n", 1});
    graph.Output("vectors", logits, {"n", width});
    return;
  }
  for (size_t t = 0; t < tasks.size(); ++t) {
    const auto column = static_cast<int64_t>(t);
    OnnxValue own = tasks.size() == 1 ? logits : graph.Slice(logits, 1, column, column + 1);
    int64_t columns = 1;
    if (tasks[t].loss == LossKind::kLogloss) own = graph.Add("Sigmoid", {own});
    if (tasks[t].loss == LossKind::kSoftmax) {
      own = graph.Add("Softmax", {own}, {{"axis", int64_t{1}}});
      columns = width;
    }
    graph.Output(OutputOf(tasks[t]), own, {"n", columns});
  }
  graph.Output("logit", logits, {"n", width});
}

}  // namespace

std::vector<std::string> OnnxOutputsOf(const Job& job) {
  if (job.model.loss == LossKind::kSampledSoftmax) return {"score", "vectors"};
  std::vector<std::string> names;
  for (const TaskSpec& task : TasksOf(job.model)) names.push_back(OutputOf(task));
  names.emplace_back("logit");
  return names;
}

Status BuildOnnxModel(const Job& job, std::vector<std::vector<OnnxTensor>> tensors,
                      const std::vector<OnnxRows>* rows, OnnxGraph& graph) {
  HDPS_RETURN_IF_ERROR(CheckMapped(job));
  HDPS_RETURN_IF_ERROR(CheckNames(job, rows != nullptr));
  GraphShape shapes;
  const auto problems = MeasureGraph(job.model, job.tables, FeaturesOf(job.data), &shapes);
  CHECK(problems.empty()) << problems[0].place << ": " << problems[0].problem;
  OnnxTables tables(job, graph, rows);
  OnnxLayers layers = {job, shapes, graph, tables, {}, {}, std::move(tensors)};
  layers.counts.resize(job.model.layers.size());
  for (uint32_t place = 0; place < job.model.layers.size(); ++place) {
    const LayerSpec& layer = job.model.layers[place];
    graph.BeginPart("layers/" + layer.name);
    layers.values.push_back(MappingOf(layer.kind)(OnnxSite(layers, place)));
  }
  AddOutputs(job, layers.values.back(), static_cast<int64_t>(shapes.nodes.back().shape.width),
             graph);
  return {};
}

}  // namespace hdps
