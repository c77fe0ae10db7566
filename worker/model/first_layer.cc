// Chooses between products of distinct rows and the two layers that this one replaces: for each
// batch of training, and once for all batches of scores.
#include "worker/model/first_layer.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/activation.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/pooling.h"
#include "common/job/spec/table_spec.h"
#include "worker/model/feature_list.h"

namespace hdps {
namespace {

// Positions of the parts in the graph and in the flat array.
struct JoinedParts {
  uint32_t embedding = 0, dense = 0;  // Places in the graph.
  uint32_t input = 0;  // Input of the dense layer: the embedding itself or the concat.
  uint32_t table = 0;
  std::vector<uint32_t> features;  // Columns of the batch.
  size_t weight = 0, bias = 0;     // First floats in the flat array.
};

class FirstLayerOnRows : public Layer {
 public:
  FirstLayerOnRows(const Job& job, JoinedParts parts, std::unique_ptr<UniqueRowGemm> products,
                   std::unique_ptr<Layer> embedding, std::unique_ptr<Layer> dense)
      : choice_(job.model.first_layer),
        dim_(job.tables[parts.table].dim),
        pooling_(job.model.layers[parts.embedding].pooling),
        relu_(job.model.layers[parts.dense].activation == Activation::kRelu),
        parts_(std::move(parts)),
        products_(std::move(products)),
        embedding_(std::move(embedding)),
        dense_(std::move(dense)) {}

  void Forward(Pass& pass) override {
    on_rows_ = choice_ == FirstLayer::kUniqueRows || Pays(pass);
    if (!on_rows_) {
      embedding_->Bring(pass);
      embedding_->Forward(pass);
      dense_->Forward(pass);
      return;
    }
    CollectBags(pass, parts_.table, parts_.features, &bags_);
    const KeySet& keys = *pass.tables[parts_.table].keys;
    products_->Load(bags_, pooling_, static_cast<uint32_t>(keys.unique.size()));
    FindPlainColumns(pass);
    products_->Forward(LayerOf(pass), pass.places[parts_.dense].value);
  }

  void Backward(Pass& pass) override {
    if (!on_rows_) {
      dense_->Backward(pass);
      embedding_->Backward(pass);
      return;
    }
    Place& self = pass.places[parts_.dense];
    TablePass& table = pass.tables[parts_.table];
    RowLayerGradients out;
    out.weights = {pass.dense_gradients + parts_.weight, pass.places[parts_.input].width,
                   self.width, self.width};
    out.bias = pass.dense_gradients + parts_.bias;
    out.rows = table.row_gradients;
    out.write_rows = table.gradients_begun ? Write::kAdd : Write::kOver;
    table.gradients_begun = true;
    out.mask_dy = OthersLearn(pass);
    RowLayer layer = LayerOf(pass);
    layer.relu = relu_ && !self.gradient_masked;
    products_->Backward(layer, self.value, self.gradient, out);
    if (out.mask_dy) GiveToOthers(pass);
  }

  void FinishBackward(Pass& pass) override {
    if (!on_rows_) dense_->FinishBackward(pass);
  }

 private:
  bool Pays(const Pass& pass) const {
    if (choice_ == FirstLayer::kPlain) return false;
    // A score must not depend on the rows beside it.
    if (!pass.training) return UniqueRowGemmPaysInScores(dim_);
    const KeySet& keys = *pass.tables[parts_.table].keys;
    UniqueRowGemmShape shape;
    shape.unique_rows = keys.unique.size();
    shape.dim = dim_;
    shape.units = pass.places[parts_.dense].width;
    for (const uint32_t f : parts_.features) shape.keys += keys.row_index[f].size();
    return UniqueRowGemmPays(shape);
  }

  // Finds the concat's columns before and after the embedding's.
  void FindPlainColumns(const Pass& pass) {
    plain_.clear();
    if (parts_.input == parts_.embedding) return;
    const Place& embedding = pass.places[parts_.embedding];
    const ConstMatrix all = pass.places[parts_.input].value;
    const size_t begin = embedding.home_column, end = begin + embedding.width;
    if (begin > 0) plain_.push_back({all.Columns(0, begin), 0});
    if (end < all.cols) plain_.push_back({all.Columns(end, all.cols - end), end});
  }

  RowLayer LayerOf(const Pass& pass) const {
    const size_t units = pass.places[parts_.dense].width;
    RowLayer layer;
    layer.rows = pass.tables[parts_.table].rows;
    layer.dim = dim_;
    layer.weights = {pass.dense + parts_.weight, pass.places[parts_.input].width, units, units};
    layer.first_input =
        parts_.input == parts_.embedding ? 0 : pass.places[parts_.embedding].home_column;
    layer.plain = plain_;
    layer.bias = pass.dense + parts_.bias;
    layer.relu = relu_;
    layer.rows_alike = !pass.training;
    return layer;
  }

  bool OthersLearn(const Pass& pass) const {
    const Place& input = pass.places[parts_.input];
    return parts_.input != parts_.embedding &&
           std::any_of(input.inputs.begin(), input.inputs.end(),
                       [&](uint32_t i) { return i != parts_.embedding && pass.places[i].learns; });
  }

  // Writes the gradient of the concat's other columns; this layer is the concat's only reader.
  void GiveToOthers(Pass& pass) const {
    const Place& self = pass.places[parts_.dense];
    Place& input = pass.places[parts_.input];
    input.gradient_begun = true;
    const RowLayer layer = LayerOf(pass);
    GemmSpec spec;
    spec.transpose_b = true;
    for (const PlainColumns& plain : plain_) {
      pass.ops.Gemm(spec, self.gradient, layer.weights.Rows(plain.first_input, plain.x.cols),
                    input.gradient.Columns(plain.first_input, plain.x.cols));
    }
  }

  const FirstLayer choice_;
  const uint32_t dim_;
  const Pooling pooling_;
  const bool relu_;
  const JoinedParts parts_;
  const std::unique_ptr<UniqueRowGemm> products_;
  const std::unique_ptr<Layer> embedding_, dense_;
  // State of the current pass. on_rows_: it multiplies distinct rows.
  bool on_rows_ = false;
  std::vector<Bags> bags_;
  std::vector<PlainColumns> plain_;
};

}  // namespace

int EmbeddingBelow(const Job& job, const std::vector<Place>& places, uint32_t dense) {
  const LayerSpec& layer = job.model.layers[dense];
  if (!places[dense].used || layer.kind != "dense") return -1;
  if (layer.activation != Activation::kNone && layer.activation != Activation::kRelu) return -1;
  const auto taken_over = [&](uint32_t p) {
    const LayerSpec& spec = job.model.layers[p];
    return spec.kind == "embedding" && spec.combine == Combine::kConcat &&
           spec.pooling != Pooling::kMax && places[p].num_consumers == 1;
  };
  const uint32_t input = places[dense].inputs[0];
  if (taken_over(input)) return static_cast<int>(input);
  if (job.model.layers[input].kind != "concat" || places[input].num_consumers != 1 ||
      places[input].value_home >= 0) {
    return -1;
  }
  int widest = -1;
  for (const uint32_t i : places[input].inputs) {
    if (!taken_over(i)) continue;
    if (widest < 0 || places[i].width > places[static_cast<size_t>(widest)].width) {
      widest = static_cast<int>(i);
    }
  }
  return widest;
}

namespace {

// Returns true if products of all rows in bf16 are preferred. Products of distinct rows are in fp32
// and are faster for layers with few units, where pooling costs more than multiplying. With
// AVX512-BF16, rows of 16 floats and 0.44 of the keys distinct, the plain way has 1.1 times the
// speed with 1024 units, the same with 256, and half with 64.
bool CheaperInBf16(const Job& job, const DenseOps& ops, uint32_t units) {
  constexpr uint32_t kUnitsOnRowsMax = 128;
  return ops.bf16() != nullptr && job.model.first_layer == FirstLayer::kAuto &&
         units > kUnitsOnRowsMax;
}

}  // namespace

void JoinFirstLayers(const Job& job, DenseOps& ops, const std::vector<DenseTensor>& tensors,
                     const std::vector<uint32_t>& first_tensor, std::vector<Place>& places,
                     std::vector<std::unique_ptr<Layer>>& layers) {
  if (job.model.first_layer == FirstLayer::kPlain) return;
  for (uint32_t p = 0; p < places.size(); ++p) {
    const int below = EmbeddingBelow(job, places, p);
    if (below < 0 || CheaperInBf16(job, ops, places[p].width)) continue;
    std::unique_ptr<UniqueRowGemm> products = ops.NewRowProducts();
    if (products == nullptr) {
      LOG_IF(WARNING, job.model.first_layer == FirstLayer::kUniqueRows)
          << "model.first_layer: this device has no products of unique rows; computing plainly";
      return;
    }
    JoinedParts parts;
    parts.embedding = static_cast<uint32_t>(below);
    parts.dense = p;
    parts.input = places[p].inputs[0];
    const LayerSpec& embedding = job.model.layers[parts.embedding];
    while (job.tables[parts.table].name != embedding.table) ++parts.table;
    parts.features = FeatureIndexes(job.data, embedding);
    parts.weight = tensors[first_tensor[p]].first_chunk * kDenseChunkFloats;
    parts.bias = tensors[first_tensor[p] + 1].first_chunk * kDenseChunkFloats;
    places[p].on_rows = true;
    std::unique_ptr<Layer>& below_layer = layers[parts.embedding];
    layers[p] = std::make_unique<FirstLayerOnRows>(job, parts, std::move(products),
                                                   std::move(below_layer), std::move(layers[p]));
    below_layer = std::make_unique<FusedPlaceholder>();
  }
}

}  // namespace hdps
