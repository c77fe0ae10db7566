// Describes a kind of layer: its word and settings, its inputs, output and parameters.
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

// The computation of a layer, and what it is built from: worker/model/layer.h. They are only passed
// on here.
class Layer;
struct LayerSite;

// A number that only some kinds have, "rate" of dropout. One name means the same in every kind.
struct LayerNumber {
  std::string name;
  double min = 0, max = 0, standard = 0;
  std::string doc;
  bool whole = false;  // Only whole numbers are allowed.
  // May change when a job resumes from a checkpoint, if the operator says so.
  bool may_change = false;
};

// Returns the layer's value for a number, or the default if it was not set.
double NumberOf(const LayerSpec& layer, const LayerNumber& number);

// A choice that only some kinds have, "pairs" of bilinear. One name means the same in every kind.
struct LayerWord {
  std::string name;
  std::vector<std::string> words;  // The first is the default.
  std::string doc;
};

// Returns the layer's choice, or the default if it was not set.
const std::string& WordOf(const LayerSpec& layer, const LayerWord& word);

// The shared fields of LayerSpec that a kind uses.
struct LayerFields {
  bool embedding = false;  // table, features: it reads rows.
  bool pooling = false;    // pooling, combine
  bool units = false;
  bool activation = false;
};

// The output and the parameters of a layer.
struct LayerShape {
  struct Tensor {
    std::string part;  // Its name is "<layer>.<part>".
    std::vector<uint64_t> shape;
    InitSpec init;
    // Nonzero: a running average instead of a parameter; see AveragedTensor::momentum.
    float averaged = 0;
    // Number of vectors of an example that are multiplied with it; for matrices. 0: none are.
    uint64_t uses = 1;
    uint64_t size() const;  // Product of the shape.
  };
  uint64_t width = 0;       // Columns of the output.
  uint32_t vector_dim = 0;  // The output is vectors of this many columns; 0 if it is not vectors.
  bool learns = false;      // A gradient is needed here or below.
  std::vector<Tensor> tensors;  // Those with two axes are multiplied with each example.
  bool sequence = false;        // The vectors are a sequence: an example has the first ones alone.
};

// A layer and its inputs, as far as they are known before anything is built.
struct LayerQuestion {
  struct Input {
    const LayerSpec& spec;
    const LayerShape& shape;
    std::string Shown() const;  // Returns '"deep" (width 16)'.
  };
  const LayerSpec& spec;
  std::vector<Input> inputs;  // Has an allowed number of inputs.
  const std::vector<TableSpec>& tables;
  const FeatureNames& features;

  // Returns the shape of an output as wide as the first input, which learns if that does.
  LayerShape LikeInput() const;
};

// A wrong key of a layer: what is wrong with it, and what would be right.
struct LayerProblem {
  std::string key;
  std::string problem;
};

// Returns the problem of an input that is not made of vectors but should be.
LayerProblem NoVectors(const LayerQuestion::Input& input);
// Returns the problem of an input that is no sequence but should be.
LayerProblem NoSequence(const LayerQuestion::Input& input);

// One kind of layer. The checks of jobs, printing, documentation, the cost model and the graph read
// it.
struct LayerRecord {
  std::string kind;        // The word in job files.
  std::string gives;       // The output, for docs.
  std::string inputs_doc;  // Requirements on the inputs, for docs; empty if any layer will do.
  std::string units_doc;   // Meaning of units, for docs; only for kinds that have them.
  size_t inputs_min = 1, inputs_max = 1;
  LayerFields fields;
  LayerCut cut = LayerCut::kExamples;  // The ways in which its work can be cut.
  std::vector<LayerNumber> numbers;
  std::vector<LayerWord> words;
  // Returns the layer's shape, or what is wrong with it. It is called with an allowed number of
  // inputs.
  std::function<std::variant<LayerShape, LayerProblem>(const LayerQuestion&)> measure;
  // Builds the layer's computation. Null for the built-in kinds, which the worker builds.
  std::function<std::unique_ptr<Layer>(const LayerSite&)> make;
};

inline constexpr size_t kManyInputs = 1024;

// The kinds that a job may use. A registry is a value, so programs and jobs may have different
// ones.
//
// Invariant: no two records have the same kind. A number has the same range and default in all
// kinds, and a choice the same words.
class LayerRegistry {
 public:
  // Errors: kInvalidArgument if the kind is taken, measure is missing, or a number or choice has
  // another meaning in another kind.
  Status Add(LayerRecord record);
  const LayerRecord* Find(std::string_view kind) const;  // Returns null if there is none.
  const std::vector<LayerRecord>& records() const { return records_; }
  std::vector<std::string> kinds() const;

 private:
  std::vector<LayerRecord> records_;
};

// Returns the kinds of layer_list.def. A program with its own layers adds them to a copy.
const LayerRegistry& BuiltInLayers();

// Returns the uniform init in +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010).
InitSpec GlorotInit(uint64_t inputs, uint64_t outputs);

// The inits by fan, by their words in job files with the default first, and the init that each
// stands for. xavier_uniform is the one above, and xavier_normal has its deviation, sqrt(2 /
// (inputs + outputs)). he_uniform is in +-sqrt(6 / inputs), and he_normal has the deviation sqrt(2
// / inputs) (He et al. 2015, eq. 10).
const std::vector<std::string>& FanInits();
// The inits whatever the fans, in MindSpore's words and with its numbers: normal has the deviation
// 0.01, and uniform is in +-0.07.
const std::vector<std::string>& PlainInits();
// Returns the init that a word of either list stands for.
InitSpec FanInit(const std::string& word, uint64_t inputs, uint64_t outputs);
// The init of a dense layer with weights of 0, whatever its fans.
inline constexpr char kZerosInit[] = "zeros";

// Declares one factory for each line of layer_list.def.
#define HDPS_LAYER(file, name) LayerRecord name##Record();
#include "common/job/layers/layer_list.def"
#undef HDPS_LAYER

}  // namespace hdps
