// The settings of a layer. Each has an effect if the record of its kind says so.
#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "common/job/activation.h"
#include "common/job/layers/layer_record.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/setting_table.h"

namespace hdps {

namespace {

// Returns the condition for the kinds for which `counts` holds.
Where<std::string, LayerSpec> KindsWhere(const LayerRegistry& layers,
                                         const std::function<bool(const LayerRecord&)>& counts) {
  std::vector<std::string> kinds;
  for (const LayerRecord& record : layers.records()) {
    if (counts(record)) kinds.push_back(record.kind);
  }
  return Where(&LayerSpec::kind, std::move(kinds));
}

// Returns what single kinds say about a setting: " fm: an embedding. dot: ...".
std::string ByKind(const LayerRegistry& layers, std::string LayerRecord::*doc) {
  std::string text;
  for (const LayerRecord& record : layers.records()) {
    if (!(record.*doc).empty()) text += " " + record.kind + ": " + record.*doc + ".";
  }
  return text;
}

// Gives access to a number or a word that only some kinds have, like a member of LayerSpec.
struct NumberIn {
  LayerNumber number;
  double& operator()(LayerSpec& layer) const {
    return layer.numbers.try_emplace(number.name, number.standard).first->second;
  }
  double operator()(const LayerSpec& layer) const { return NumberOf(layer, number); }
};
struct WordIn {
  LayerWord word;
  std::string& operator()(LayerSpec& layer) const {
    return layer.words.try_emplace(word.name, word.words[0]).first->second;
  }
  const std::string& operator()(const LayerSpec& layer) const { return WordOf(layer, word); }
};

// Calls `add` for the items `LayerRecord::*own` of all kinds, each name once, with its kinds.
template <typename Item, typename AddRow>
void AddOwn(const LayerRegistry& layers, std::vector<Item> LayerRecord::*own, const AddRow& add) {
  std::set<std::string> added;
  for (const LayerRecord& record : layers.records()) {
    for (const Item& item : record.*own) {
      if (!added.insert(item.name).second) continue;
      const auto has = [&](const LayerRecord& other) {
        return std::ranges::find(other.*own, item.name, &Item::name) != (other.*own).end();
      };
      add(item, KindsWhere(layers, has));
    }
  }
}

void AddFusion(SettingTable<LayerSpec>* layer) {
  layer->Add(
      "fusion", &LayerSpec::fusion,
      "Under `parallel.dense_exchange` = allreduce: gradients of layers with the same number "
      "travel together, 0: those of each tensor alone; not given: as `parallel.comm_fusion` "
      "says.",
      Range{0, 1e6}, Hashed::kNothing, Note::kNoDefault, Note::kPrintedUnlessDefault);
}

// Adds the settings for where a layer is computed and which workers hold its parameters.
void AddPlaces(SettingTable<LayerSpec>* layer) {
  layer->Add("device", &LayerSpec::device,
             "Where it is computed in a model on a GPU: there (cuda, auto) or by the host (cpu), "
             "which takes what goes in and comes out over the bus. A table whose layers are all "
             "cpu is looked up by the host.",
             OneOf{{"auto", "cpu", "cuda"}}, Hashed::kNothing, Note::kPrintedUnlessDefault);
  layer->Add("layerwise_parallel", &LayerSpec::layerwise_parallel,
             "Under allreduce: every worker has dense parameters of its own here, which it trains "
             "on its own rows; their gradients never meet. A checkpoint keeps those of worker 0.",
             Note::kPrintedUnlessDefault);
  layer->Add("dense_exchange", &LayerSpec::dense_exchange,
             "How the gradients of its dense parameters meet. servers: under "
             "`parallel.dense_exchange` = allreduce the servers keep and update them, as "
             "MindSpore's set_param_ps asks for; auto, allreduce: as that says.",
             OneOf{{"auto", "servers", "allreduce"}}, Note::kPrintedUnlessDefault,
             OnResume::kMayChange);
  layer->Add("dense_target", &LayerSpec::dense_target,
             "Where its dense parameters are kept and updated, with their optimizer's state: see "
             "`model.dense_target`, which auto takes. The result is the same.",
             OneOf{{"auto", "cpu", "cuda"}}, Hashed::kNothing, Note::kPrintedUnlessDefault);
}

void AddShard(SettingTable<LayerSpec>* layer) {
  layer->Add("shard", &LayerSpec::shard,
             "How it lies over the workers. A dense layer: [parts of its weight's rows, of its "
             "columns]; what is left of the workers are parts of the examples. Or in full, [[a, "
             "b], [b, c]]: parts of its input's rows and columns, and of its weight's. Others: "
             "[parts of the examples, of the columns], of an embedding of its features. Not given: "
             "as parallel_mode says.",
             Range{1, 4096}, Hashed::kNothing, Note::kNoDefault, Note::kPrintedUnlessDefault);
}

}  // namespace

Section PlacementSection() {
  SettingTable<LayerSpec> layer("layer_setting", "model.layer_settings{}");
  AddFusion(&layer);
  AddPlaces(&layer);
  AddShard(&layer);
  return layer.Done();
}

Section LayerSection(const LayerRegistry& layers) {
  const auto embedding = KindsWhere(layers, [](const auto& r) { return r.fields.embedding; });
  SettingTable<LayerSpec> layer("layer", "model.layers[]");
  layer.Add("name", &LayerSpec::name, "How other layers refer to it.", Note::kRequired);
  layer.Add("kind", &LayerSpec::kind, "What it computes.", OneOf{layers.kinds()});
  layer.Add("inputs", &LayerSpec::inputs,
            "Names of layers before this one." + ByKind(layers, &LayerRecord::inputs_doc),
            KindsWhere(layers, [](const auto& r) { return r.inputs_max > 0; }));
  layer.Add("table", &LayerSpec::table, "The table of its rows.", embedding);
  layer.Add("features", &LayerSpec::features, "Empty: all sparse features.", embedding);
  const auto pooling = KindsWhere(layers, [](const auto& r) { return r.fields.pooling; });
  layer.Add("pooling", &LayerSpec::pooling,
            "Of the keys of one feature, each row multiplied by its key's weight first. max: the "
            "largest of each column, of equal ones the first; no keys: 0.",
            pooling);
  layer.Add("combine", &LayerSpec::combine, "Of the features.", pooling);
  layer.Add("units", &LayerSpec::units,
            "Has to be given." + ByKind(layers, &LayerRecord::units_doc), Range{1, 65536},
            Note::kNoDefault, KindsWhere(layers, [](const auto& r) { return r.fields.units; }));
  layer.Add("activation", &LayerSpec::activation, kActivationDoc,
            KindsWhere(layers, [](const auto& r) { return r.fields.activation; }));
  AddFusion(&layer);
  AddPlaces(&layer);
  AddOwn(layers, &LayerRecord::numbers, [&](const LayerNumber& number, const auto& kinds) {
    const Range range{number.min, number.max};
    const OnResume on_resume = number.may_change ? OnResume::kMayChange : OnResume::kStays;
    if (!number.whole) {
      layer.Add(number.name, NumberIn{number}, number.doc, range, kinds, on_resume);
      return;
    }
    const auto read = [number](const JsonValue& value, LayerSpec* spec) {
      spec->numbers[number.name] = static_cast<double>(value.magnitude);
    };
    const auto print = [number](const LayerSpec& spec) {
      return JsonValue::Integer(static_cast<uint64_t>(NumberOf(spec, number)));
    };
    layer.AddConverted(number.name, ValueKind::kInteger, number.doc, read, print, range, kinds,
                       on_resume);
  });
  AddOwn(layers, &LayerRecord::words, [&](const LayerWord& word, const auto& kinds) {
    layer.Add(word.name, WordIn{word}, word.doc, OneOf{word.words}, kinds,
              Note::kPrintedUnlessDefault);
  });
  AddShard(&layer);
  // A layer stores all numbers and words of its own kind, and no others.
  layer.AfterReading([records = layers.records()](const JsonValue&, LayerSpec* spec) {
    LayerSpec own;
    for (const LayerRecord& record : records) {
      if (record.kind != spec->kind) continue;
      for (const LayerNumber& number : record.numbers) {
        own.numbers[number.name] = NumberOf(*spec, number);
      }
      for (const LayerWord& word : record.words) own.words[word.name] = WordOf(*spec, word);
    }
    spec->numbers = std::move(own.numbers);
    spec->words = std::move(own.words);
  });
  return layer.Done();
}

}  // namespace hdps
