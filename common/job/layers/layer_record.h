// What a kind of layer is: its words and settings, what it takes, gives and learns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/job/spec/init_spec.h"
#include "common/parallel/strategy.h"

namespace hdps {

struct FeatureNames;
struct LayerSpec;
struct TableSpec;

class Layer;       // What computes it, and what that is made from: worker/model/layer.h. They are
struct LayerSite;  // only handed on here.

// A number that only some kinds have, "rate" of dropout. One word means the same in every kind.
struct LayerNumber {
  std::string name;
  double min = 0, max = 0, standard = 0;
  std::string doc;
  bool whole = false;  // Whole numbers alone.
  // A job may go on from a checkpoint with another value, where its operator says so.
  bool may_change = false;
};

// The value a layer has for it; where nothing was set, the default.
double NumberOf(const LayerSpec& layer, const LayerNumber& number);

// A choice that only some kinds have, "pairs" of bilinear; likewise.
struct LayerWord {
  std::string name;
  std::vector<std::string> words;  // The first is the default.
  std::string doc;
};

// The choice a layer has made; where nothing was set, the default.
const std::string& WordOf(const LayerSpec& layer, const LayerWord& word);

// Which of the fields of LayerSpec that several rooms read count for a kind.
struct LayerFields {
  bool embedding = false;  // table, features: it reads rows.
  bool pooling = false;    // pooling, combine
  bool units = false;
  bool activation = false;
};

// What a layer gives.
struct LayerShape {
  struct Tensor {
    std::string part;  // Its name is "<layer>.<part>".
    std::vector<uint64_t> shape;
    InitSpec init;
    float averaged = 0;  // Not 0: no parameter but a running average; see AveragedTensor::momentum.
    // Of one with two extents: how many vectors of an example are multiplied with it.
    uint64_t uses = 1;
    uint64_t size() const;  // Product of the shape.
  };
  uint64_t width = 0;           // Columns of the output.
  uint32_t vector_dim = 0;      // The output is vectors of this many columns; 0: it is not.
  bool learns = false;          // A gradient is wanted here or below.
  std::vector<Tensor> tensors;  // Those with two extents are multiplied with each example.
};

// A layer and those that it reads, as far as they are known before anything is made.
struct LayerQuestion {
  struct Input {
    const LayerSpec& spec;
    const LayerShape& shape;
    std::string Shown() const;  // '"deep" (width 16)'
  };
  const LayerSpec& spec;
  std::vector<Input> inputs;  // As many as the record allows.
  const std::vector<TableSpec>& tables;
  const FeatureNames& features;

  // The shape of what is as wide as the first input, and learns where that does.
  LayerShape LikeInput() const;
};

// What is wrong with one key of a layer, and what would be right.
struct LayerProblem {
  std::string key;
  std::string problem;
};

// What is wrong with an input that has to consist of vectors.
LayerProblem NoVectors(const LayerQuestion::Input& input);

// One kind of layer. Job checks, printing, documentation, the cost model and the graph read it.
struct LayerRecord {
  std::string kind;        // The word in job files.
  std::string gives;       // For docs: what comes out.
  std::string inputs_doc;  // For docs: what the inputs have to be; empty: any layers.
  std::string units_doc;   // For docs, where units counts.
  size_t inputs_min = 1, inputs_max = 1;
  LayerFields fields;
  LayerCut cut = LayerCut::kExamples;  // What its work can be cut into.
  std::vector<LayerNumber> numbers;
  std::vector<LayerWord> words;
  // The layer's shape, or what is wrong with it. Called when there is an allowed number of inputs.
  std::function<std::variant<LayerShape, LayerProblem>(const LayerQuestion&)> measure;
  // Makes what computes the layer. Null for the built-in kinds, whose makers the workers have.
  std::function<std::unique_ptr<Layer>(const LayerSite&)> make;
};

inline constexpr size_t kManyInputs = 1024;

// The kinds that a job may use: a value, so that two programs, or two jobs, may have different
// ones.
//
// Invariant: no two records have the same kind; a number has one range and default in all, and a
// choice the same words.
class LayerRegistry {
 public:
  // kInvalidArgument when the kind is taken, there is no measure, or a number or a choice means
  // something else in another kind.
  Status Add(LayerRecord record);
  const LayerRecord* Find(std::string_view kind) const;  // Null: there is none.
  const std::vector<LayerRecord>& records() const { return records_; }
  std::vector<std::string> kinds() const;

 private:
  std::vector<LayerRecord> records_;
};

// The kinds of layer_list.def. A program with layers of its own adds them to a copy.
const LayerRegistry& BuiltInLayers();

// Uniform in +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010).
InitSpec GlorotInit(uint64_t inputs, uint64_t outputs);

// Inits by fan, in the words of job files, the usual one first; what they come to. xavier_uniform
// is the above, xavier_normal has its deviation, sqrt(2 / (inputs + outputs)); he_uniform is in
// +-sqrt(6 / inputs), he_normal has the deviation sqrt(2 / inputs) (He et al. 2015, eq. 10).
const std::vector<std::string>& FanInits();
InitSpec FanInit(const std::string& word, uint64_t inputs, uint64_t outputs);
// A dense layer may also begin with weights of 0, whatever its fans.
inline constexpr char kZerosInit[] = "zeros";

// One factory a line of layer_list.def.
#define HDPS_LAYER(file, name) LayerRecord name##Record();
#include "common/job/layers/layer_list.def"
#undef HDPS_LAYER

}  // namespace hdps
