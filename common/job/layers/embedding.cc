// Pooled rows of a table.
#include <algorithm>
#include <set>

#include "common/base/nearest_name.h"
#include "common/job/job_facts.h"
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/pooling.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

namespace {

// Returns the first of the layer's features that cannot be looked up, as a problem; its key is
// empty if there is none.
LayerProblem WrongFeature(const LayerQuestion& question) {
  const std::vector<std::string>& known = question.features.sparse;
  std::set<std::string> seen;
  for (const std::string& name : question.spec.features) {
    if (std::ranges::find(known, name) == known.end()) {
      return {"features",
              "\"" + name + "\" is no sparse feature of the data" + DidYouMean(name, known)};
    }
    if (!seen.insert(name).second) return {"features", "\"" + name + "\" is given twice"};
  }
  if (known.empty()) return {"kind", "the data has no sparse features"};
  return {};
}

std::variant<LayerShape, LayerProblem> MeasureEmbedding(const LayerQuestion& question) {
  const LayerSpec& spec = question.spec;
  std::vector<std::string> names;
  uint32_t dim = 0;
  for (const TableSpec& table : question.tables) {
    if (table.dense) continue;
    names.push_back(table.name);
    if (table.name == spec.table) dim = table.dim;
  }
  if (std::ranges::find(names, spec.table) == names.end()) {
    return LayerProblem{
        "table", "\"" + spec.table + "\" is none of model.tables" + DidYouMean(spec.table, names)};
  }
  LayerProblem wrong = WrongFeature(question);
  if (!wrong.key.empty()) return wrong;
  const size_t count = spec.features.empty() ? question.features.sparse.size()  //
                                             : spec.features.size();
  LayerShape shape;
  shape.learns = true;
  shape.width = spec.combine == Combine::kSum ? dim : uint64_t{dim} * count;
  shape.vector_dim = spec.combine == Combine::kSum ? 0 : dim;
  return shape;
}

}  // namespace

LayerRecord EmbeddingRecord() {
  LayerRecord record;
  record.kind = "embedding";
  record.cut = LayerCut::kFeatures;
  record.gives = "[n, features x dim], or [n, dim] with `combine: sum`";
  record.inputs_min = record.inputs_max = 0;
  record.fields.embedding = record.fields.pooling = true;
  record.measure = MeasureEmbedding;
  return record;
}

}  // namespace hdps
