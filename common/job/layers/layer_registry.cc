// The list of built-in layers, and functions for all records.
#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

double NumberOf(const LayerSpec& layer, const LayerNumber& number) {
  const auto found = layer.numbers.find(number.name);
  return found == layer.numbers.end() ? number.standard : found->second;
}

const std::string& WordOf(const LayerSpec& layer, const LayerWord& word) {
  const auto found = layer.words.find(word.name);
  return found == layer.words.end() ? word.words[0] : found->second;
}

uint64_t LayerShape::Tensor::size() const {
  uint64_t product = 1;
  for (const uint64_t extent : shape) product *= extent;
  return product;
}

std::string LayerQuestion::Input::Shown() const {
  return "\"" + spec.name + "\" (width " + std::to_string(shape.width) + ")";
}

LayerShape LayerQuestion::LikeInput() const {
  const LayerShape& input = inputs[0].shape;
  LayerShape shape;
  shape.width = input.width;
  shape.vector_dim = input.vector_dim;
  shape.learns = input.learns;
  return shape;
}

LayerProblem NoVectors(const LayerQuestion::Input& input) {
  return {"inputs", input.Shown() +
                        " does not consist of vectors of one dim; take an embedding with combine "
                        "= concat, or a concat of such of one dim"};
}

LayerProblem NoSequence(const LayerQuestion::Input& input) {
  return {"inputs", input.Shown() +
                        " is no sequence; take a layer of kind sequence, or one "
                        "that gives a vector for each of its vectors"};
}

namespace {

bool Same(const LayerNumber& a, const LayerNumber& b) {
  return a.min == b.min && a.max == b.max && a.standard == b.standard && a.whole == b.whole;
}
bool Same(const LayerWord& a, const LayerWord& b) { return a.words == b.words; }

// Returns the kind in which a number or choice of this name differs; null if there is none.
template <typename Item>
const LayerRecord* WhereElse(const std::vector<LayerRecord>& records,
                             std::vector<Item> LayerRecord::*own, const Item& item) {
  for (const LayerRecord& other : records) {
    for (const Item& same : other.*own) {
      if (same.name == item.name && !Same(same, item)) return &other;
    }
  }
  return nullptr;
}

}  // namespace

Status LayerRegistry::Add(LayerRecord record) {
  const auto mistake = [&record](const std::string& what) {
    return Status(Code::kInvalidArgument, "layer kind \"" + record.kind + "\": " + what);
  };
  if (record.kind.empty() || Find(record.kind) != nullptr) {
    return mistake("kinds are not empty and all different");
  }
  if (!record.measure) return mistake("it has no measure");
  for (const LayerNumber& number : record.numbers) {
    if (!(number.min <= number.standard && number.standard <= number.max)) {
      return mistake("the default of \"" + number.name + "\" is not in its range");
    }
    if (const auto* other = WhereElse(records_, &LayerRecord::numbers, number)) {
      return mistake("\"" + number.name + "\" has another range or default in \"" + other->kind +
                     "\"; choose another word");
    }
  }
  for (const LayerWord& word : record.words) {
    if (word.words.empty()) return mistake("\"" + word.name + "\" has nothing to choose from");
    if (const auto* other = WhereElse(records_, &LayerRecord::words, word)) {
      return mistake("\"" + word.name + "\" has other words in \"" + other->kind +
                     "\"; choose another name");
    }
  }
  records_.push_back(std::move(record));
  return {};
}

const LayerRecord* LayerRegistry::Find(std::string_view kind) const {
  const auto found = std::ranges::find(records_, kind, &LayerRecord::kind);
  return found == records_.end() ? nullptr : &*found;
}

std::vector<std::string> LayerRegistry::kinds() const {
  std::vector<std::string> kinds;
  for (const LayerRecord& record : records_) kinds.push_back(record.kind);
  return kinds;
}

const LayerRegistry& BuiltInLayers() {
  static const LayerRegistry registry = [] {
    LayerRegistry built_in;
    const auto add = [&built_in](LayerRecord record) {
      const Status added = built_in.Add(std::move(record));
      CHECK(added.ok()) << added.message();
    };
#define HDPS_LAYER(file, name) add(name##Record());
#include "common/job/layers/layer_list.def"
#undef HDPS_LAYER
    return built_in;
  }();
  return registry;
}

InitSpec GlorotInit(uint64_t inputs, uint64_t outputs) {
  const double fans = static_cast<double>(inputs) + static_cast<double>(outputs);
  return {InitKind::kUniform, static_cast<float>(std::sqrt(6.0 / fans))};
}

const std::vector<std::string>& FanInits() {
  static const std::vector<std::string> words = {"xavier_uniform", "xavier_normal", "he_uniform",
                                                 "he_normal"};
  return words;
}

const std::vector<std::string>& PlainInits() {
  static const std::vector<std::string> words = {kZerosInit, "ones", "normal", "uniform"};
  return words;
}

InitSpec FanInit(const std::string& word, uint64_t inputs, uint64_t outputs) {
  if (word == "xavier_uniform") return GlorotInit(inputs, outputs);
  if (word == kZerosInit) return {InitKind::kZeros, 0};
  if (word == "ones") return {InitKind::kConstant, 1.0f};
  if (word == "normal") return {InitKind::kNormal, 0.01f};
  if (word == "uniform") return {InitKind::kUniform, 0.07f};
  const auto fan_in = static_cast<double>(inputs);
  if (word == "he_uniform") {
    return {InitKind::kUniform, static_cast<float>(std::sqrt(6.0 / fan_in))};
  }
  if (word == "he_normal") return {InitKind::kNormal, static_cast<float>(std::sqrt(2.0 / fan_in))};
  CHECK_EQ(word, "xavier_normal");
  return {InitKind::kNormal,
          static_cast<float>(std::sqrt(2.0 / (fan_in + static_cast<double>(outputs))))};
}

}  // namespace hdps
