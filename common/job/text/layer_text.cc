// Each key of a layer counts where a record of its kind says so.
#include "common/job/text/layer_text.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/job/text/job_reading.h"

namespace hdps {

namespace {

constexpr std::string_view kPoolingWords = "sum, mean";
constexpr std::string_view kCombineWords = "concat, sum";

// "kind=dense|cross": the kinds for which `counts` holds.
std::string OnlyIf(const LayerRegistry& layers,
                   const std::function<bool(const LayerRecord&)>& counts) {
  std::string text;
  for (const LayerRecord& record : layers.records()) {
    if (counts(record)) text += (text.empty() ? "kind=" : "|") + record.kind;
  }
  return text;
}

// " fm: an embedding. dot: ...": what single kinds say of a key.
std::string ByKind(const LayerRegistry& layers, std::string LayerRecord::*doc) {
  std::string text;
  for (const LayerRecord& record : layers.records()) {
    if (!(record.*doc).empty()) text += " " + record.kind + ": " + record.*doc + ".";
  }
  return text;
}

bool HasNumber(const LayerRecord& record, const std::string& name) {
  for (const LayerNumber& number : record.numbers) {
    if (number.name == name) return true;
  }
  return false;
}

void AddNumbers(const LayerRegistry& layers, std::deque<std::string>* texts,
                std::vector<KeySpec>* keys) {
  const auto keep = [texts](std::string text) -> std::string_view {
    return texts->emplace_back(std::move(text));
  };
  std::vector<std::string> added;
  for (const LayerRecord& record : layers.records()) {
    for (const LayerNumber& number : record.numbers) {
      if (std::ranges::find(added, number.name) != added.end()) continue;
      added.push_back(number.name);
      const auto has = [&number](const LayerRecord& other) {
        return HasNumber(other, number.name);
      };
      keys->push_back({"layer", keep(number.name), KeyKind::kNumber, "", number.min, number.max,
                       keep(PrintJsonLine(JsonValue::Number(number.standard))),
                       keep(OnlyIf(layers, has)), keep(number.doc)});
    }
  }
}

}  // namespace

void AddLayerKeys(const LayerRegistry& layers, std::deque<std::string>* texts,
                  std::vector<KeySpec>* keys) {
  using enum KeyKind;
  const auto keep = [texts](std::string text) -> std::string_view {
    return texts->emplace_back(std::move(text));
  };
  const auto where = [&](const std::function<bool(const LayerRecord&)>& counts) {
    return keep(OnlyIf(layers, counts));
  };
  std::string kinds;
  for (const std::string& kind : layers.kinds()) kinds += (kinds.empty() ? "" : ", ") + kind;
  const std::string_view embedding = where([](const auto& r) { return r.fields.embedding; });
  keys->push_back({"layer", "name", kText, "", 0, 0, "", "", "Required."});
  keys->push_back({"layer", "kind", kChoice, keep(kinds), 0, 0, "\"dense\"", "", ""});
  keys->push_back(
      {"layer", "inputs", kTexts, "", 0, 0, "[]",
       where([](const auto& r) { return r.inputs_max > 0; }),
       keep("Names of layers before this one." + ByKind(layers, &LayerRecord::inputs_doc))});
  keys->push_back({"layer", "table", kText, "", 0, 0, "\"\"", embedding, ""});
  keys->push_back(
      {"layer", "features", kTexts, "", 0, 0, "[]", embedding, "Empty: all sparse features."});
  keys->push_back({"layer", "pooling", kChoice, kPoolingWords, 0, 0, "\"sum\"", embedding,
                   "Of the keys of one feature."});
  keys->push_back({"layer", "combine", kChoice, kCombineWords, 0, 0, "\"concat\"", embedding,
                   "Of the features."});
  keys->push_back({"layer", "units", kInteger, "", 1, 65536, "",
                   where([](const auto& r) { return r.fields.units; }),
                   keep("Required." + ByKind(layers, &LayerRecord::units_doc))});
  keys->push_back({"layer", "activation", kChoice, kActivationWords, 0, 0, "\"none\"",
                   where([](const auto& r) { return r.fields.activation; }), kActivationDoc});
  AddNumbers(layers, texts, keys);
}

std::vector<LayerSpec> ReadLayers(const LayerRegistry& layers, const JsonValue& list) {
  std::vector<LayerSpec> specs;
  for (const JsonValue& item : list.items) {
    LayerSpec layer;
    ReadKey(item, "name", &layer.name);
    ReadKey(item, "kind", &layer.kind);
    ReadKey(item, "inputs", &layer.inputs);
    ReadKey(item, "table", &layer.table);
    ReadKey(item, "features", &layer.features);
    ReadChoice(item, "layer", "pooling", &layer.pooling);
    ReadChoice(item, "layer", "combine", &layer.combine);
    ReadKey(item, "units", &layer.units);
    ReadChoice(item, "layer", "activation", &layer.activation);
    for (const LayerNumber& number : layers.Find(layer.kind)->numbers) {
      double& value = layer.numbers[number.name] = number.standard;
      ReadKey(item, number.name, &value);
    }
    specs.push_back(std::move(layer));
  }
  return specs;
}

JsonValue PrintLayer(const LayerRegistry& layers, const LayerSpec& layer) {
  JsonValue object = JsonValue::Object();
  object.Set("name", JsonValue::Text(layer.name));
  object.Set("kind", JsonValue::Text(layer.kind));
  object.Set("inputs", JsonValue::Texts(layer.inputs));
  object.Set("table", JsonValue::Text(layer.table));
  object.Set("features", JsonValue::Texts(layer.features));
  const auto choice = [&object](const char* key, auto value) {
    object.Set(key, JsonValue::Text(ChoiceText("layer", key, static_cast<size_t>(value))));
  };
  choice("pooling", layer.pooling);
  choice("combine", layer.combine);
  object.Set("units", JsonValue::Integer(layer.units));
  choice("activation", layer.activation);
  for (const LayerNumber& number : layers.Find(layer.kind)->numbers) {
    object.Set(number.name, JsonValue::Number(NumberOf(layer, number)));
  }
  return object;
}

std::string PrintLayerReference(const LayerRegistry& layers) {
  std::string text = "| layer | inputs | gives |\n|---|---|---|\n";
  for (const LayerRecord& record : layers.records()) {
    std::string inputs = record.inputs_doc;
    if (inputs.empty()) {
      inputs = record.inputs_max == 0 ? "none" : record.inputs_max == 1 ? "one" : "one or more";
    }
    text += "| `" + record.kind + "` | " + inputs + " | " + record.gives + " |\n";
  }
  return text;
}

}  // namespace hdps
