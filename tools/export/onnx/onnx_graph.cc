// Fills the messages of ONNX, and is the only file that includes its library.
#include "tools/export/onnx/onnx_graph.h"

#include <glog/logging.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <type_traits>

namespace hdps {
namespace {

constexpr int64_t kOperatorSet = 17, kMlOperatorSet = 3, kIrVersion = 8;
constexpr const char* kMlDomain = "ai.onnx.ml";
// Protocol buffers end at 2 GiB; the rest is for what is not floats.
constexpr uint64_t kMessageBytesMax = uint64_t{1900} << 20;
// Smaller constants stay in the model, and larger ones begin at such a multiple of the data file,
// so that readers can map them.
constexpr uint64_t kPageBytes = 4096;
constexpr const char* kDataName = "model.onnx.data";

void FillType(OnnxType type, const std::vector<OnnxExtent>& shape, onnx::ValueInfoProto* info) {
  onnx::TypeProto_Tensor* const tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type == OnnxType::kFloat ? onnx::TensorProto::FLOAT
                                                 : onnx::TensorProto::INT64);
  for (const OnnxExtent& extent : shape) {
    auto* const dim = tensor->mutable_shape()->add_dim();
    if (const auto* const number = std::get_if<int64_t>(&extent)) {
      dim->set_dim_value(*number);
    } else {
      dim->set_dim_param(std::get<std::string>(extent));
    }
  }
}

void Fill(const OnnxAttribute& attribute, onnx::AttributeProto* proto) {
  proto->set_name(attribute.name);
  if (const auto* const number = std::get_if<int64_t>(&attribute.value)) {
    proto->set_type(onnx::AttributeProto::INT);
    proto->set_i(*number);
  } else if (const auto* const real = std::get_if<float>(&attribute.value)) {
    proto->set_type(onnx::AttributeProto::FLOAT);
    proto->set_f(*real);
  } else {
    proto->set_type(onnx::AttributeProto::INTS);
    const auto& all = std::get<std::vector<int64_t>>(attribute.value);
    proto->mutable_ints()->Add(all.begin(), all.end());
  }
}

template <typename Number>
void FillConstant(const std::string& name, const std::vector<int64_t>& shape,
                  std::span<const Number> numbers, onnx::TensorProto* tensor) {
  static_assert(std::endian::native == std::endian::little);  // As raw_data has to be.
  tensor->set_name(name);
  tensor->set_data_type(std::is_same_v<Number, float> ? onnx::TensorProto::FLOAT
                                                      : onnx::TensorProto::INT64);
  tensor->mutable_dims()->Add(shape.begin(), shape.end());
  tensor->set_raw_data(numbers.data(), numbers.size_bytes());
}

}  // namespace

struct OnnxGraph::Proto {
  onnx::ModelProto model;
  onnx::GraphProto& graph() { return *model.mutable_graph(); }
};

OnnxGraph::OnnxGraph(const std::string& name) : proto_(std::make_unique<Proto>()) {
  onnx::ModelProto& model = proto_->model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("hdps");
  onnx::OperatorSetIdProto* set = model.add_opset_import();
  set->set_domain("");
  set->set_version(kOperatorSet);
  set = model.add_opset_import();
  set->set_domain(kMlDomain);
  set->set_version(kMlOperatorSet);
  proto_->graph().set_name(name);
}

OnnxGraph::~OnnxGraph() = default;

std::vector<OnnxValue> OnnxGraph::AddMany(const std::string& op, size_t count,
                                          const std::vector<OnnxValue>& inputs,
                                          const std::vector<OnnxAttribute>& attributes) {
  onnx::NodeProto* const node = proto_->graph().add_node();
  node->set_op_type(op);
  for (const OnnxValue& input : inputs) node->add_input(input);
  std::vector<OnnxValue> outputs;
  for (size_t i = 0; i < count; ++i) {
    outputs.push_back(part_ + "/" + op + "_" + std::to_string(++values_));
    node->add_output(outputs.back());
  }
  node->set_name(outputs.front());
  for (const OnnxAttribute& attribute : attributes) Fill(attribute, node->add_attribute());
  return outputs;
}

OnnxValue OnnxGraph::Add(const std::string& op, const std::vector<OnnxValue>& inputs,
                         const std::vector<OnnxAttribute>& attributes) {
  return AddMany(op, 1, inputs, attributes).front();
}

OnnxValue OnnxGraph::AddKeyEncoder(const OnnxValue& of_keys, std::span<const uint64_t> keys) {
  std::vector<int64_t> bits(keys.size()), rows(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    bits[i] = static_cast<int64_t>(keys[i]);
    rows[i] = static_cast<int64_t>(i + 1);
  }
  const OnnxValue encoded = Add("LabelEncoder", {of_keys},
                                {{"keys_int64s", std::move(bits)},
                                 {"values_int64s", std::move(rows)},
                                 {"default_int64", int64_t{0}}});
  onnx::GraphProto& graph = proto_->graph();
  graph.mutable_node(graph.node_size() - 1)->set_domain(kMlDomain);
  return encoded;
}

OnnxValue OnnxGraph::Floats(const std::string& name, const std::vector<int64_t>& shape,
                            std::span<const float> floats) {
  FillConstant(name, shape, floats, proto_->graph().add_initializer());
  return name;
}

OnnxValue OnnxGraph::Number(float number) {
  OnnxValue& value = numbers_[number];
  if (!value.empty()) return value;
  value = "number_" + std::to_string(++values_);
  FillConstant<float>(value, {}, std::span(&number, 1), proto_->graph().add_initializer());
  return value;
}

OnnxValue OnnxGraph::Ints(const std::vector<int64_t>& numbers) {
  OnnxValue& value = ints_[numbers];
  if (!value.empty()) return value;
  value = "ints_" + std::to_string(++values_);
  FillConstant<int64_t>(value, {static_cast<int64_t>(numbers.size())}, numbers,
                        proto_->graph().add_initializer());
  return value;
}

OnnxValue OnnxGraph::Input(const std::string& name, OnnxType type,
                           const std::vector<OnnxExtent>& shape) {
  onnx::ValueInfoProto* const input = proto_->graph().add_input();
  input->set_name(name);
  FillType(type, shape, input);
  return name;
}

void OnnxGraph::Output(const std::string& name, const OnnxValue& value,
                       const std::vector<OnnxExtent>& shape) {
  onnx::NodeProto* const node = proto_->graph().add_node();
  node->set_op_type("Identity");
  node->set_name(name);
  node->add_input(value);
  node->add_output(name);
  onnx::ValueInfoProto* const output = proto_->graph().add_output();
  output->set_name(name);
  FillType(OnnxType::kFloat, shape, output);
}

void OnnxGraph::Describe(const std::string& key, const std::string& text) {
  onnx::StringStringEntryProto* const entry = proto_->model.add_metadata_props();
  entry->set_key(key);
  entry->set_value(text);
}

OnnxValue OnnxGraph::Reshape(const OnnxValue& x, const std::vector<int64_t>& shape) {
  return Add("Reshape", {x, Ints(shape)});
}

OnnxValue OnnxGraph::Transpose(const OnnxValue& x, const std::vector<int64_t>& axes) {
  return Add("Transpose", {x}, {{"perm", axes}});
}

OnnxValue OnnxGraph::Unsqueeze(const OnnxValue& x, int64_t axis) {
  return Add("Unsqueeze", {x, Ints({axis})});
}

OnnxValue OnnxGraph::Gather(const OnnxValue& x, int64_t axis, const std::vector<int64_t>& indexes) {
  return Add("Gather", {x, Ints(indexes)}, {{"axis", axis}});
}

OnnxValue OnnxGraph::Slice(const OnnxValue& x, int64_t axis, int64_t begin, int64_t end) {
  return Add("Slice", {x, Ints({begin}), Ints({end}), Ints({axis})});
}

OnnxValue OnnxGraph::Concat(const std::vector<OnnxValue>& values, int64_t axis) {
  return values.size() == 1 ? values[0] : Add("Concat", values, {{"axis", axis}});
}

OnnxValue OnnxGraph::Sum(const std::vector<OnnxValue>& values) {
  return values.size() == 1 ? values[0] : Add("Sum", values);
}

OnnxValue OnnxGraph::Affine(const OnnxValue& x, const OnnxValue& weights, const OnnxValue& bias) {
  return Add("Add", {Add("MatMul", {x, weights}), bias});
}

OnnxValue OnnxGraph::ReduceSum(const OnnxValue& x, int64_t axis, bool keep) {
  return Add("ReduceSum", {x, Ints({axis})}, {{"keepdims", int64_t{keep}}});
}

size_t OnnxGraph::num_nodes() const { return static_cast<size_t>(proto_->graph().node_size()); }

Status OnnxGraph::Check() {
  // The library reports by exceptions.
  try {
    onnx::checker::check_model(proto_->model);
    const onnx::ShapeInferenceOptions options(/*check_type_val=*/true, /*strict_mode_val=*/1,
                                              /*data_prop_val=*/true);
    onnx::shape_inference::InferShapes(proto_->model, onnx::OpSchemaRegistry::Instance(), options);
  } catch (const std::exception& error) {
    return {
        Code::kCorruption,
        std::string("the model breaks a rule of ONNX, which is a fault of hdps: ") + error.what()};
  }
  proto_->graph().clear_value_info();  // Whoever runs the model infers them again.
  return {};
}

Result<uint64_t> OnnxGraph::Write(FileSystem& files, const std::string& folder,
                                  uint64_t bytes_max) {
  uint64_t bytes = 0;
  if (proto_->model.ByteSizeLong() > std::min(bytes_max, kMessageBytesMax)) {
    HDPS_RETURN_IF_ERROR(MoveFloatsOut(files, JoinPath(folder, kDataName), &bytes));
  }
  const uint64_t rest = proto_->model.ByteSizeLong();
  if (rest > kMessageBytesMax) {
    return Status(Code::kInvalidArgument, "the model's graph and keys have " +
                                              std::to_string(rest) +
                                              " bytes, and a file of ONNX holds at most " +
                                              std::to_string(kMessageBytesMax) +
                                              "; expected fewer rows, or --tables=outside");
  }
  std::string text;
  CHECK(proto_->model.SerializeToString(&text));
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                        files.Create(JoinPath(folder, kOnnxModelName)));
  HDPS_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
  HDPS_RETURN_IF_ERROR(file->Sync());
  HDPS_RETURN_IF_ERROR(file->Close());
  return bytes + text.size();
}

Status OnnxGraph::MoveFloatsOut(FileSystem& files, const std::string& path, uint64_t* bytes) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(path));
  for (onnx::TensorProto& tensor : *proto_->graph().mutable_initializer()) {
    if (tensor.raw_data().size() < kPageBytes) continue;
    const std::string gap((kPageBytes - *bytes % kPageBytes) % kPageBytes, '\0');
    HDPS_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(gap))));
    HDPS_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(tensor.raw_data()))));
    *bytes += gap.size();
    const std::pair<const char*, std::string> entries[] = {
        {"location", kDataName},
        {"offset", std::to_string(*bytes)},
        {"length", std::to_string(tensor.raw_data().size())}};
    *bytes += tensor.raw_data().size();
    for (const auto& [key, value] : entries) {
      onnx::StringStringEntryProto* const entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  }
  HDPS_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace hdps
