// Describes where each layer and table runs, and its size.
#include "worker/model/describe.h"

#include <sstream>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/precision.h"
#include "common/job/spec/table_spec.h"

namespace hdps {
namespace {

std::string WeightShape(const Graph& graph, size_t layer) {
  std::string text;
  for (uint32_t t = graph.first_tensor[layer]; t < graph.first_tensor[layer + 1]; ++t) {
    text += text.empty() ? "" : "+";
    for (size_t i = 0; i < graph.tensors[t].shape.size(); ++i) {
      text += (i == 0 ? "" : "x") + std::to_string(graph.tensors[t].shape[i]);
    }
  }
  return text.empty() ? "-" : text;
}

// Returns the precision of a layer that does not multiply in fp32.
std::string PrecisionOf(const ModelSpec& model, const Graph& graph, size_t layer, bool on_gpu) {
  const bool has_products = graph.first_tensor[layer + 1] > graph.first_tensor[layer];
  const bool here = on_gpu && model.layers[layer].device != "cpu" && has_products;
  if (here && model.precision != Precision::kFp32) {
    return " precision=" + std::string(WordOf(model.precision));
  }
  return graph.places[layer].bf16_products ? " precision=bf16" : "";
}

}  // namespace

std::string DescribeGraph(const Job& job, const Graph& graph, DeviceKind device) {
  const bool on_gpu = device == DeviceKind::kCuda;
  const char* first_layer = job.model.first_layer == FirstLayer::kUniqueRows
                                ? " first_layer=unique_rows"
                                : " first_layer=auto";
  std::ostringstream out;
  for (size_t i = 0; i < graph.places.size(); ++i) {
    const LayerSpec& spec = job.model.layers[i];
    size_t parameters = 0;
    for (uint32_t t = graph.first_tensor[i]; t < graph.first_tensor[i + 1]; ++t) {
      parameters += graph.tensors[t].size();
    }
    out << "layer " << spec.name << " kind=" << spec.kind
        << " device=" << (on_gpu && spec.device != "cpu" ? "cuda" : "cpu") << " output=[n,"
        << graph.places[i].width << "] weights=" << WeightShape(graph, i)
        << " parameters=" << parameters << " bytes=" << parameters * sizeof(float)
        << (graph.places[i].on_rows ? first_layer : "") << PrecisionOf(job.model, graph, i, on_gpu)
        << (graph.places[i].used ? "" : " (unused: the loss does not depend on it)") << "\n";
  }
  for (size_t t = 0; t < job.tables.size(); ++t) {
    const TableSpec& table = job.tables[t];
    const bool kept = on_gpu && table.dense && WhyDenseOnHost(job).empty();
    const char* const home = kept ? "cuda" : "host";
    out << (t == 0 ? "" : "\n") << "table " << table.name
        << " kind=" << (table.dense ? "dense" : "sparse") << " device=" << home
        << " update=" << home << " shards=" << job.cluster.shards << " row=[" << table.dim
        << "] parameters=";
    if (table.dense) {
      size_t chunks = 0;
      for (const DenseTensor& tensor : graph.tensors) chunks += tensor.num_chunks;
      out << chunks * kDenseChunkFloats << " bytes=" << chunks * kDenseChunkFloats * sizeof(float);
    } else {
      out << table.dim << "/key bytes=" << table.dim * sizeof(float) << "/key";
    }
  }
  return out.str();
}

}  // namespace hdps
