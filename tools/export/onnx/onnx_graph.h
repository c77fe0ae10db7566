// Builds the graph of an ONNX model node by node, and writes and checks the model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// The name of a value of the graph.
using OnnxValue = std::string;

// A named setting of a node.
struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};

enum class OnnxType : uint8_t { kFloat, kInt64 };
// An extent of an input or output: a number, or the name of one that each call chooses.
using OnnxExtent = std::variant<int64_t, std::string>;

inline constexpr const char* kOnnxModelName = "model.onnx";

// A model of operator set 17, IR version 8 (onnx/onnx docs/Operators.md and docs/IR.md). Nodes
// stand in the order in which they are added, so a node's inputs are there before it.
//
// Invariant: names of values are different, and equal constants are one.
class OnnxGraph {
 public:
  explicit OnnxGraph(const std::string& name);
  ~OnnxGraph();
  OnnxGraph(const OnnxGraph&) = delete;
  OnnxGraph& operator=(const OnnxGraph&) = delete;

  // Names what is added from now on after a part of the model, such as a layer.
  void BeginPart(const std::string& part) { part_ = part; }

  // Add a node and return its output, or its `count` outputs.
  OnnxValue Add(const std::string& op, const std::vector<OnnxValue>& inputs,
                const std::vector<OnnxAttribute>& attributes = {});
  std::vector<OnnxValue> AddMany(const std::string& op, size_t count,
                                 const std::vector<OnnxValue>& inputs,
                                 const std::vector<OnnxAttribute>& attributes = {});
  // Adds ai.onnx.ml.LabelEncoder, which turns keys[i] into i + 1 and any other key into 0.
  OnnxValue AddKeyEncoder(const OnnxValue& of_keys, std::span<const uint64_t> keys);

  // Return constants. Floats are [shape] and keep `name`, which no other value may have.
  OnnxValue Floats(const std::string& name, const std::vector<int64_t>& shape,
                   std::span<const float> floats);
  OnnxValue Number(float number);                       // []
  OnnxValue Ints(const std::vector<int64_t>& numbers);  // [numbers]

  OnnxValue Input(const std::string& name, OnnxType type, const std::vector<OnnxExtent>& shape);
  void Output(const std::string& name, const OnnxValue& value,
              const std::vector<OnnxExtent>& shape);
  // Adds a text to the model's metadata.
  void Describe(const std::string& key, const std::string& text);

  // Shorter forms of nodes that many layers add. A 0 in a shape keeps that extent.
  OnnxValue Reshape(const OnnxValue& x, const std::vector<int64_t>& shape);
  OnnxValue Transpose(const OnnxValue& x, const std::vector<int64_t>& axes);
  OnnxValue Unsqueeze(const OnnxValue& x, int64_t axis);
  OnnxValue Gather(const OnnxValue& x, int64_t axis, const std::vector<int64_t>& indexes);
  OnnxValue Slice(const OnnxValue& x, int64_t axis, int64_t begin, int64_t end);
  OnnxValue Concat(const std::vector<OnnxValue>& values, int64_t axis);
  OnnxValue Sum(const std::vector<OnnxValue>& values);
  // Returns x W + b, as two nodes: OpenCV 4.6 refuses one Gemm with a bias and W of [in, out].
  OnnxValue Affine(const OnnxValue& x, const OnnxValue& weights, const OnnxValue& bias);
  OnnxValue ReduceSum(const OnnxValue& x, int64_t axis, bool keep = false);

  // Checks the model and infers all shapes, as its users do first. Returns what is wrong with it.
  Status Check();
  // Writes `kOnnxModelName` into the folder; if that would be longer than `bytes_max`, or than the
  // format allows, large constants go into `model.onnx.data`, which Check() does not look at.
  // Returns the bytes written.
  Result<uint64_t> Write(FileSystem& files, const std::string& folder, uint64_t bytes_max);

  size_t num_nodes() const;

 private:
  struct Proto;  // The library's messages, which no other file includes.

  Status MoveFloatsOut(FileSystem& files, const std::string& path, uint64_t* bytes);

  std::unique_ptr<Proto> proto_;
  std::string part_;
  uint64_t values_ = 0;  // Values that were numbered.
  std::map<std::vector<int64_t>, OnnxValue> ints_;
  std::map<float, OnnxValue> numbers_;
};

}  // namespace hdps
