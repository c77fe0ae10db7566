// Looks up a layer's inputs, tensors and settings, and adds nodes that several kinds share.
#include "tools/export/onnx/onnx_site.h"

#include <glog/logging.h>

#include <limits>
#include <numeric>

#include "common/job/activation.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/layers/layer_record.h"
#include "common/job/model_graph.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "worker/model/feature_list.h"

namespace hdps {

OnnxSite::OnnxSite(OnnxLayers& layers, uint32_t place)
    : graph(layers.graph),
      job(layers.job),
      spec(layers.job.model.layers[place]),
      tables(layers.tables),
      layers_(layers),
      place_(place) {}

size_t OnnxSite::num_inputs() const { return layers_.shapes.nodes[place_].inputs.size(); }

OnnxValue OnnxSite::Input(size_t i) const {
  return layers_.values[layers_.shapes.nodes[place_].inputs[i]];
}

int64_t OnnxSite::InputWidth(size_t i) const {
  const uint32_t input = layers_.shapes.nodes[place_].inputs[i];
  return static_cast<int64_t>(layers_.shapes.nodes[input].shape.width);
}

int64_t OnnxSite::Dim(size_t i) const {
  const uint32_t input = layers_.shapes.nodes[place_].inputs[i];
  return layers_.shapes.nodes[input].shape.vector_dim;
}

OnnxValue OnnxSite::Vectors(size_t i) const {
  return graph.Reshape(Input(i), {0, NumVectors(i), Dim(i)});
}

int64_t OnnxSite::width() const {
  return static_cast<int64_t>(layers_.shapes.nodes[place_].shape.width);
}

const OnnxTensor& OnnxSite::TensorFloats(size_t i) const { return layers_.tensors[place_][i]; }

OnnxValue OnnxSite::Tensor(size_t i) const { return Tensor(i, TensorFloats(i).shape); }

OnnxValue OnnxSite::Tensor(size_t i, const std::vector<int64_t>& shape) const {
  return graph.Floats(TensorFloats(i).name, shape, TensorFloats(i).floats);
}

const std::string& OnnxSite::name() const { return spec.name; }

const std::string& OnnxSite::table() const { return spec.table; }

std::vector<uint32_t> OnnxSite::Features() const { return FeatureIndexes(job.data, spec); }

uint32_t OnnxSite::units() const { return spec.units; }

Activation OnnxSite::activation() const { return spec.activation; }

const LayerRecord& OnnxSite::record() const {
  return *RegistryOf(job.model).layers.Find(spec.kind);
}

double OnnxSite::Number(std::string_view name) const {
  for (const LayerNumber& number : record().numbers) {
    if (number.name == name) return NumberOf(spec, number);
  }
  LOG(FATAL) << "layers of kind " << spec.kind << " have no setting " << name;
}

const std::string& OnnxSite::Word(std::string_view name) const {
  for (const LayerWord& word : record().words) {
    if (word.name == name) return WordOf(spec, word);
  }
  LOG(FATAL) << "layers of kind " << spec.kind << " have no choice " << name;
}

OnnxValue OnnxSite::Counts() const {
  // As worker/model/sequence_lengths.cc has it.
  int64_t followers = 0;
  uint32_t at = place_;
  while (job.model.layers[at].kind != "sequence") {
    const std::vector<uint32_t>& inputs = layers_.shapes.nodes[at].inputs;
    if (job.model.layers[at].kind == "positions") {
      followers += static_cast<int64_t>(inputs.size()) - 1;
    }
    at = inputs[0];
  }
  const OnnxValue& counts = layers_.counts[at];
  return followers == 0 ? counts : graph.Add("Add", {counts, graph.Ints({followers})});
}

OnnxValue OnnxSite::Mask(int64_t vectors) const {
  return graph.Add("Less", {graph.Ints(Range(0, vectors)), Counts()});
}

OnnxValue OnnxSite::LastMask(int64_t vectors) const {
  return graph.Add("Equal", {graph.Ints(Range(1, vectors)), Counts()});
}

OnnxValue OnnxSite::Masked(const OnnxValue& mask, const OnnxValue& x) const {
  return graph.Add("Where", {mask, x, graph.Number(0)});
}

OnnxValue OnnxSite::MaskedSoftmax(const OnnxValue& mask, const OnnxValue& scores) const {
  // Where an example has nothing, the softmax is over equal numbers, and then masked.
  const OnnxValue lowest = graph.Number(std::numeric_limits<float>::lowest());
  const OnnxValue seen = graph.Add("Where", {mask, scores, lowest});
  return Masked(mask, graph.Add("Softmax", {seen}, {{"axis", int64_t{-1}}}));
}

OnnxValue Activated(OnnxGraph& graph, Activation activation, const OnnxValue& x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return graph.Add("Relu", {x});
    case Activation::kSigmoid:
      return graph.Add("Sigmoid", {x});
    case Activation::kTanh:
      return graph.Add("Tanh", {x});
    case Activation::kGelu: {
      // Gelu is an operator from operator set 20 on.
      constexpr float kRootOfHalf = 0.70710678f;
      const OnnxValue erf = graph.Add("Erf", {graph.Add("Mul", {x, graph.Number(kRootOfHalf)})});
      const OnnxValue below =
          graph.Add("Mul", {graph.Add("Add", {erf, graph.Number(1)}), graph.Number(0.5f)});
      return graph.Add("Mul", {x, below});
    }
    case Activation::kLeakyRelu:
      return graph.Add("LeakyRelu", {x}, {{"alpha", kLeakySlope}});
  }
  LOG(FATAL) << "an activation without a mapping";
}

OnnxValue EachByItsMatrix(OnnxGraph& graph, const OnnxValue& x, const OnnxValue& matrices) {
  // With one example more, of zeros: onnxruntime 1.31 divides by 0 in such products of none.
  const OnnxValue padded = graph.Add("Pad", {x, graph.Ints({1, 0, 0, 0, 0, 0}), graph.Number(0)});
  const OnnxValue products = graph.Add("MatMul", {graph.Transpose(padded, {1, 0, 2}), matrices});
  const OnnxValue by_example = graph.Transpose(products, {1, 0, 2});
  return graph.Slice(by_example, 0, 1, std::numeric_limits<int64_t>::max());
}

std::vector<int64_t> Range(int64_t begin, int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

VectorPairs::VectorPairs(int64_t count) {
  for (int64_t a = 0; a < count; ++a) {
    for (int64_t b = a + 1; b < count; ++b) {
      first.push_back(a);
      second.push_back(b);
    }
  }
}

}  // namespace hdps
