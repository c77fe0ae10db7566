// The rows of tables in an ONNX model, by the keys that its inputs have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/job/job_spec.h"
#include "tools/export/onnx/onnx_graph.h"

namespace hdps {

struct DataSpec;

// The rows of a table that go into a model: keys ascend, weights [1 + keys, dim]. Row 0 is that of
// unknown keys, zeros.
struct OnnxRows {
  std::vector<Key> keys;
  std::vector<float> weights;
};

// The inputs of a sparse feature: `name` int64 [n, width] has the bits of keys, and `weight_name`
// float [n, width] their weights.
struct OnnxFeature {
  std::string name;
  // Empty for a feature with one value in each example, which needs no weights.
  std::string weight_name;
};

// Returns the inputs of all sparse features, in the order of FeaturesOf(job.data).sparse. A feature
// has weights if an example may have several of its values or, because there their number counts,
// if a layer `sequence` reads it. A value of weight 0 is none.
std::vector<OnnxFeature> OnnxFeaturesOf(const Job& job);

// Adds inputs for the features of a model, and looks up their rows.
//
// Invariant: an unknown key reads as zeros, and no key makes a model fail. All keys of a table go
// through one encoder, and tables with the same keys of the same features share it.
class OnnxTables {
 public:
  // `rows` [tables], none for the dense table; null for a model whose inputs are rows that were
  // looked up and pooled elsewhere. Requires: the arguments outlive it.
  OnnxTables(const Job& job, OnnxGraph& graph, const std::vector<OnnxRows>* rows);

  bool inside() const { return rows_ != nullptr; }

  // The rows of a feature's keys.
  struct Bags {
    OnnxValue rows;     // [n, width, dim]
    OnnxValue weights;  // [n, width]; empty: the width is 1, and so is the weight.
  };
  // Requires: inside().
  Bags Of(const std::string& table, uint32_t feature);

 private:
  // One encoder, and whose keys it has.
  struct Encoder {
    std::vector<uint32_t> features;
    const std::vector<Key>* keys;
    OnnxValue places;  // int64 [n, widths of all features]: rows, 0 for an unknown key.
  };
  // The rows of a table, [n, width, dim] for each of its features.
  struct Looked {
    std::vector<uint32_t> features;
    std::vector<OnnxValue> rows;
  };

  const OnnxValue& PlacesOf(const std::vector<uint32_t>& features, const std::vector<Key>& keys);
  Looked LookUp(uint32_t table);

  const Job& job_;
  OnnxGraph& graph_;
  const std::vector<OnnxRows>* const rows_;
  std::vector<OnnxFeature> features_;
  std::vector<Encoder> encoders_;
  std::vector<Looked> looked_;  // [tables]; those without features were not looked up yet.
};

}  // namespace hdps
