// Cuts the layers in order, and inserts a conversion where a value lies otherwise than its reader
// needs.
#include "worker/parallel/rank_graph.h"

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/job/activation.h"
#include "common/job/dataset_slices.h"
#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/layer_shard.h"
#include "common/job/model_graph.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "worker/parallel/rank_layers.h"

namespace hdps {
namespace {

// A value of the rank's graph: its layout, and the layout in which it takes its gradient.
struct ValueLayout {
  std::string layer;
  Layout value, gradient;
  ColumnShape columns;
};

class GraphCutter {
 public:
  GraphCutter(const Job& job, const Strategy& strategy, uint32_t rank)
      : job_(job), strategy_(strategy) {
    graph_.rank = rank;
    graph_.workers = strategy.workers;
    graph_.job = job;
    graph_.job.model.layers.clear();
  }

  Result<RankGraph> Cut() {
    for (const GraphProblem& wrong :
         MeasureGraph(job_.model, job_.tables, FeaturesOf(job_.data), &shape_)) {
      return Status(Code::kInvalidArgument, "model." + wrong.place + ": " + wrong.problem);
    }
    CHECK_EQ(strategy_.layers.size(), shape_.nodes.size());
    for (size_t i = 0; i < shape_.nodes.size(); ++i) {
      const bool reads = ReadsFeatures(i) || CutAt(i) == LayerCut::kNumbers;
      graph_.reads_whole_batch |= reads && Split(i).columns > 1;
    }
    for (size_t i = 0; i < shape_.nodes.size(); ++i) HDPS_RETURN_IF_ERROR(AddLayer(i));
    const Layout own = Layout::OwnRows(strategy_.workers);
    Convert(values_.back(), own, own, values_.back().columns.unit);
    graph_.conversions = std::make_shared<const std::vector<ConversionSpec>>(conversions_);
    graph_.lane_rows = std::make_shared<LaneRows>();
    auto registry = std::make_shared<JobRegistry>(RegistryOf(job_.model));
    HDPS_RETURN_IF_ERROR(AddRankLayers(graph_, &registry->layers));
    graph_.job.model.registry = std::move(registry);
    return NumberAverages();
  }

 private:
  const LayerSpec& Spec(size_t i) const { return job_.model.layers[i]; }
  const LayerSplit& Split(size_t i) const { return strategy_.layers[i]; }
  LayerCut CutAt(size_t i) const {
    return CutOfLayer(Spec(i), *RegistryOf(job_.model).layers.Find(Spec(i).kind));
  }
  bool ReadsFeatures(size_t i) const {
    return CutAt(i) == LayerCut::kFeatures || CutAt(i) == LayerCut::kFeatureSums;
  }
  bool ReadsBatch(size_t i) const { return shape_.nodes[i].inputs.empty(); }
  // Is true if a rank reads some of the numeric columns for the layer.
  bool CutsNumbers(size_t i) const {
    return CutAt(i) == LayerCut::kNumbers && Split(i).columns > 1;
  }

  // Returns the layouts by the layers' records. Layers that read the batch have the rows of this
  // worker, or all rows.
  LayerLayouts LayoutsAt(size_t i) const {
    LayerSplit split = Split(i);
    if (ReadsBatch(i)) split.examples = graph_.reads_whole_batch ? 1 : strategy_.workers;
    return LayoutsOf(CutAt(i), split, strategy_.workers);
  }

  // Sets the running averages by the numbers of the rank's tensors.
  Result<RankGraph> NumberAverages() {
    GraphShape own;
    Job& job = graph_.job;
    for (const GraphProblem& wrong :
         MeasureGraph(job.model, job.tables, FeaturesOf(job.data), &own)) {
      return Status(Code::kInvalidArgument, "strategy: " + wrong.place + ": " + wrong.problem);
    }
    for (TableSpec& table : job.tables) {
      if (table.dense) table.averaged = AveragedTensors(own);
    }
    return std::move(graph_);
  }

  Status Refuse(size_t i, const std::string& what, size_t count, uint32_t parts) const {
    return {Code::kInvalidArgument, "strategy: layer \"" + Spec(i).name + "\" has " +
                                        std::to_string(count) + " " + what + ", too few for " +
                                        std::to_string(parts) + " parts"};
  }

  Status CheckParts(size_t i, size_t columns) const {
    const LayerSplit& split = Split(i);
    if (split.product() == 0 || strategy_.workers % split.product() != 0) {
      return {Code::kInvalidArgument, "strategy: layer \"" + Spec(i).name + "\" is cut into " +
                                          std::to_string(split.product()) +
                                          " parts, which do not divide " +
                                          std::to_string(strategy_.workers) + " workers"};
    }
    if (ReadsFeatures(i)) {
      const size_t features = FeaturesAt(i).size();
      if (split.columns > features) return Refuse(i, "features", features, split.columns);
      const bool all = split == LayerSplit{.columns = strategy_.workers};
      const bool own = split == OwnRowsSplit(strategy_.workers);
      // Each worker that reads a row pushes its gradient once.
      if (graph_.reads_whole_batch ? all : own) return {};
      return {Code::kInvalidArgument,
              "strategy: layer \"" + Spec(i).name +
                  "\" is not cut as other embeddings are; give "
                  "all of them as many parts of the features as there are workers, or none"};
    }
    if (split.columns > columns) return Refuse(i, "columns", columns, split.columns);
    if (split.inputs > 1) {
      const ColumnShape& input = values_[shape_.nodes[i].inputs[0]].columns;
      const size_t inputs = input.columns / input.unit;
      if (split.inputs > inputs) return Refuse(i, "inputs", inputs, split.inputs);
    }
    return {};
  }

  Status AddLayer(size_t i) {
    const GraphShape::Node& node = shape_.nodes[i];
    const LayerCut cut = CutAt(i);
    ColumnShape columns = {node.shape.width, 1};
    if (cut == LayerCut::kFeatures) columns.unit = std::max(1u, node.shape.vector_dim);
    if (CutsNumbers(i)) columns.unit = NumericOrder(job_).each();
    if (cut == LayerCut::kColumns) columns.unit = values_[node.inputs[0]].columns.unit;
    HDPS_RETURN_IF_ERROR(CheckParts(i, columns.columns / columns.unit));
    const LayerLayouts layouts = LayoutsAt(i);
    LayerSpec spec = Spec(i);
    for (size_t n = 0; n < node.inputs.size(); ++n) {
      const ValueLayout& input = values_[node.inputs[n]];
      const size_t unit = cut == LayerCut::kColumns ? columns.unit : input.columns.unit;
      spec.inputs[n] = Convert(input, layouts.input, layouts.input_gradient, unit);
    }
    const hdps::Cut own = columns.Part(layouts.product.PartOf(graph_.rank, AxisRole::kColumns),
                                       layouts.product.parts(AxisRole::kColumns));
    if (ReadsFeatures(i) && Split(i).columns > 1) KeepFeatures(i, &spec);
    if (CutsNumbers(i)) KeepNumbers(own, columns.columns);
    if (cut == LayerCut::kMatrix) spec.units = static_cast<uint32_t>(own.size);
    values_.push_back({spec.name, layouts.output, layouts.output_gradient, columns});
    if (cut == LayerCut::kMatrix && Split(i).inputs > 1) {
      AddCutProduct(i, layouts, columns, std::move(spec));
    } else {
      Add(std::move(spec), layouts.output, SlicesOf(i, layouts, own));
    }
    return {};
  }

  // Keeps this rank's share of the layer's features.
  void KeepFeatures(size_t i, LayerSpec* spec) const {
    const std::vector<std::string> all = FeaturesAt(i);
    const hdps::Cut own = CutOf(all.size(), graph_.rank, Split(i).columns);
    const auto first = all.begin() + static_cast<ptrdiff_t>(own.begin);
    spec->features.assign(first, first + static_cast<ptrdiff_t>(own.size));
  }

  // Keeps this rank's share of the `count` numeric columns, a run of their order.
  void KeepNumbers(const hdps::Cut& own, size_t count) {
    const AxisFirst order = NumericOrder(job_);
    std::vector<uint32_t>& kept = graph_.job.data.kept_numbers;
    kept.clear();
    for (size_t at = own.begin; at < own.end(); ++at) {
      kept.push_back(static_cast<uint32_t>(order.IndexOf(at, count)));
    }
  }

  std::vector<std::string> FeaturesAt(size_t i) const {
    return Spec(i).features.empty() ? FeaturesOf(job_.data).sparse : Spec(i).features;
  }

  // Adds the product, the sum of its summands, the bias and the activation, each as a layer.
  void AddCutProduct(size_t i, const LayerLayouts& layouts, const ColumnShape& columns,
                     LayerSpec spec) {
    const hdps::Cut own =
        columns.Part(layouts.product.PartOf(graph_.rank, AxisRole::kColumns), Split(i).columns);
    std::vector<TensorSlice> slices = SlicesOf(i, layouts, own);
    // The bias belongs to rows that are shared by the parts of the inputs.
    slices[1].summed_by = layouts.output.Along(graph_.rank, AxisRole::kRows);
    slices[1].first_holder = FirstHolder(layouts.output);
    const std::string name = spec.name;
    const Activation activation = std::exchange(spec.activation, Activation::kNone);
    spec.kind = kProductKind;
    spec.name = name + ".product";
    Add(spec, layouts.product, {slices[0]});
    const ValueLayout product = {spec.name, layouts.product, layouts.product_gradient, columns};
    LayerSpec bias;
    bias.inputs = {Convert(product, layouts.output, layouts.output_gradient, columns.unit)};
    bias.kind = "bias";
    bias.name = activation == Activation::kNone ? name : name + ".biased";
    Add(bias, layouts.output, {slices[1]});
    if (activation == Activation::kNone) return;
    LayerSpec bend;
    bend.kind = "activation";
    bend.name = name;
    bend.inputs = {bias.name};
    bend.activation = activation;
    Add(bend, layouts.output, {});
  }

  // Returns the first of the ranks that hold the same columns and summands of a layer.
  uint32_t FirstHolder(const Layout& layout) const {
    uint32_t rank = 0;
    const auto same = [&](AxisRole role) {
      return layout.PartOf(rank, role) == layout.PartOf(graph_.rank, role);
    };
    while (!same(AxisRole::kColumns) || !same(AxisRole::kSums)) ++rank;
    return rank;
  }

  std::vector<TensorSlice> SlicesOf(size_t i, const LayerLayouts& layouts,
                                    const hdps::Cut& columns) const {
    std::vector<TensorSlice> slices;
    const LayerCut cut = CutAt(i);
    for (size_t t = 0; t < shape_.nodes[i].shape.tensors.size(); ++t) {
      const LayerShape::Tensor& tensor = shape_.nodes[i].shape.tensors[t];
      TensorSlice slice;
      slice.whole = static_cast<uint32_t>(FirstTensor(i) + t);
      const size_t rows = tensor.shape.size() > 1 ? tensor.shape[0] : 1;
      slice.rows = {0, rows};
      slice.columns = {0, tensor.size() / rows};
      if (cut == LayerCut::kMatrix || cut == LayerCut::kColumns) slice.columns = columns;
      if (cut == LayerCut::kMatrix && tensor.shape.size() > 1) {
        const uint32_t input = shape_.nodes[i].inputs[0];
        slice.rows = values_[input].columns.Part(
            layouts.product.PartOf(graph_.rank, AxisRole::kSums), Split(i).inputs);
        if (CutsNumbers(input)) slice.row_order = NumericOrder(job_);
      }
      slice.summed_by = layouts.product.Along(graph_.rank, AxisRole::kRows);
      slice.first_holder = FirstHolder(layouts.product);
      slices.push_back(std::move(slice));
    }
    return slices;
  }

  size_t FirstTensor(size_t layer) const {
    size_t first = 0;
    for (size_t i = 0; i < layer; ++i) first += shape_.nodes[i].shape.tensors.size();
    return first;
  }

  void Add(LayerSpec spec, const Layout& output, const std::vector<TensorSlice>& slices) {
    graph_.job.model.layers.push_back(std::move(spec));
    graph_.rows.push_back(
        {output.PartOf(graph_.rank, AxisRole::kRows), output.parts(AxisRole::kRows)});
    graph_.tensors.insert(graph_.tensors.end(), slices.begin(), slices.end());
  }

  // Returns the name of the layer that gives `from` in the layout wanted: itself, or a conversion.
  std::string Convert(const ValueLayout& from, const Layout& value, const Layout& gradient,
                      size_t unit) {
    const bool cut = value.parts(AxisRole::kColumns) > 1;
    const ColumnShape columns = {from.columns.columns, cut ? unit : from.columns.unit};
    if (from.value == value && from.gradient == gradient && (!cut || from.columns == columns)) {
      return from.layer;
    }
    for (const auto& [source, conversion, gradient_from] : made_) {
      const ConversionSpec& spec = conversions_[conversion];
      if (source == from.layer && spec.forward.back() == value && gradient_from == gradient &&
          spec.output_columns == columns) {
        return spec.layer;
      }
    }
    ConversionSpec spec;
    spec.layer = from.layer + " > " + std::to_string(conversions_.size());
    spec.forward = WayBetween(from.value, value, from.columns, columns);
    spec.backward = WayBetween(gradient, from.gradient, columns, from.columns);
    spec.input_columns = from.columns;
    spec.output_columns = columns;
    LayerSpec layer;
    layer.name = spec.layer;
    layer.kind = kConvertKind;
    layer.inputs = {from.layer};
    made_.emplace_back(from.layer, conversions_.size(), gradient);
    conversions_.push_back(spec);
    Add(layer, value, {});
    return spec.layer;
  }

  static std::vector<Layout> WayBetween(const Layout& from, const Layout& to,
                                        const ColumnShape& from_columns,
                                        const ColumnShape& to_columns) {
    std::vector<Layout> way = ConversionOf(from, to).way;
    if (way.size() == 1 && from.parts(AxisRole::kColumns) > 1 && !(from_columns == to_columns)) {
      way.push_back(to);
    }
    return way;
  }

  const Job& job_;
  const Strategy& strategy_;
  GraphShape shape_;
  RankGraph graph_;
  std::vector<ValueLayout> values_;  // Values of the whole job's layers.
  std::vector<ConversionSpec> conversions_;
  // The layer that is converted, its conversion, and the layout of the gradient that comes in.
  std::vector<std::tuple<std::string, size_t, Layout>> made_;
};

}  // namespace

Result<RankGraph> CutForRank(const Job& job, const Strategy& strategy, uint32_t rank) {
  return GraphCutter(job, strategy, rank).Cut();
}

}  // namespace hdps
