// What the mapping of a layer to ONNX is given: its inputs, tensors and settings. A mapping adds
// the nodes of a layer and returns its output, [n, width]; layers/ has those of all built-in
// layers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/export/onnx/onnx_graph.h"

namespace hdps {

class OnnxTables;
struct GraphShape;
struct Job;
struct LayerRecord;
struct LayerSpec;
enum class Activation : uint8_t;  // common/job/activation.h

// A dense tensor of a layer: its name, its shape and its weights.
struct OnnxTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::span<const float> floats;
};

// The model while its layers are mapped, in the order of the job.
//
// Invariant: `values` has the output [n, width] of each layer that was mapped.
struct OnnxLayers {
  const Job& job;
  const GraphShape& shapes;
  OnnxGraph& graph;
  OnnxTables& tables;
  std::vector<OnnxValue> values;
  // [layers]: of a layer `sequence`, how many vectors each example has, int64 [n, 1].
  std::vector<OnnxValue> counts;
  std::vector<std::vector<OnnxTensor>> tensors;  // [layers], each in the order of its record.
};

// One layer with its inputs and tensors. n is the number of examples, F that of vectors.
class OnnxSite {
 public:
  // Requires: the layers before it were mapped.
  OnnxSite(OnnxLayers& layers, uint32_t place);

  OnnxGraph& graph;
  const Job& job;
  const LayerSpec& spec;
  OnnxTables& tables;

  size_t num_inputs() const;
  OnnxValue Input(size_t i = 0) const;  // [n, width]
  int64_t InputWidth(size_t i = 0) const;
  // Columns of one vector of an input, and how many vectors it has.
  int64_t Dim(size_t i = 0) const;
  int64_t NumVectors(size_t i = 0) const { return InputWidth(i) / Dim(i); }
  OnnxValue Vectors(size_t i = 0) const;  // [n, F, dim]
  int64_t width() const;                  // Columns of the layer's own output.

  // Returns the i-th tensor as a constant: in its own shape, or in another one of as many floats.
  OnnxValue Tensor(size_t i) const;
  OnnxValue Tensor(size_t i, const std::vector<int64_t>& shape) const;
  const OnnxTensor& TensorFloats(size_t i) const;

  const std::string& name() const;
  const std::string& table() const;
  std::vector<uint32_t> Features() const;  // Those of the job that it reads from the table.
  uint32_t units() const;
  Activation activation() const;
  // Returns the value of a setting that only this kind has: a number, or a choice.
  double Number(std::string_view name) const;
  const std::string& Word(std::string_view name) const;

  // ---- sequences.

  // Returns how many vectors each example has in the layer's first input, which is a sequence, with
  // the layer's own followers: int64 [n, 1].
  OnnxValue Counts() const;
  void SetCounts(const OnnxValue& counts) const { layers_.counts[place_] = counts; }
  // Returns which of the first `vectors` vectors each example has: bool [n, vectors].
  OnnxValue Mask(int64_t vectors) const;
  // Returns which vector is the last of each example: bool [n, vectors].
  OnnxValue LastMask(int64_t vectors) const;
  // Returns x where the mask is true, and 0 elsewhere.
  OnnxValue Masked(const OnnxValue& mask, const OnnxValue& x) const;
  // Returns the softmax of scores over their last axis, as far as the mask is true, and 0
  // elsewhere.
  OnnxValue MaskedSoftmax(const OnnxValue& mask, const OnnxValue& scores) const;

 private:
  const LayerRecord& record() const;

  OnnxLayers& layers_;
  const uint32_t place_;
};

// Returns the activation of each element.
OnnxValue Activated(OnnxGraph& graph, Activation activation, const OnnxValue& x);

// Multiplies vector m of x, [n, M, rows], by matrix m of `matrices`, [M, rows, columns].
OnnxValue EachByItsMatrix(OnnxGraph& graph, const OnnxValue& x, const OnnxValue& matrices);

// Returns `count` numbers from `begin` on.
std::vector<int64_t> Range(int64_t begin, int64_t count);

// For all pairs a < b of `count` vectors, a by a, the numbers of both.
struct VectorPairs {
  explicit VectorPairs(int64_t count);
  std::vector<int64_t> first, second;
};

}  // namespace hdps
