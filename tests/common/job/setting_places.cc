// Walks the sections, and fulfils the condition of each setting.
#include "tests/common/job/setting_places.h"

#include <cstdint>
#include <map>
#include <string>

#include "common/job/text/job_sections.h"
#include "common/job/text/json_value.h"
#include "tests/common/job/job_samples.h"

namespace hdps {

namespace {

// Returns the item of a list of objects on which a setting is tried.
std::string ItemFor(const Section& section, const Setting& setting) {
  const bool conditional = setting.only_where.has_value();
  if (section.name == "column") {
    return conditional && setting.only_where->values.front() == "label" ? ".0" : ".4";
  }
  if (section.name == "feature") return ".2";
  if (section.name != "layer") return ".0";
  return conditional && setting.only_where->values.front() == "embedding" ? ".0" : ".1";
}

// Sets the values that the setting depends on, so that it has an effect in the object.
void Fulfil(const Section& section, const Setting& setting, const std::string& object,
            std::vector<std::string>* overrides) {
  if (!setting.only_where.has_value()) return;
  const std::string& key = setting.only_where->key;
  const std::string& value = setting.only_where->values.front();
  Fulfil(section, *section.Find(key), object, overrides);
  if (value == "label" || value == "embedding") return;  // ItemFor has found such an item.
  if (value == "criteo") overrides->push_back("data.features=[]");
  if (value == "idx")
    overrides->insert(overrides->end(), {"data.features=[]", "data.columns=[]", "model.type=mlp"});
  if (section.name == "schedule") overrides->push_back(object + ".decay_steps=10");
  if (value == "auto_parallel") overrides->push_back("parallel.dense_exchange=allreduce");
  overrides->push_back(PathBelow(object, key) + "=" + value);
  // Settings that these recipes require.
  if (value == "din" || value == "dien" || value == "bst") {
    overrides->insert(overrides->end(), {"model.history=c", "model.target=d"});
  } else if (value == "two_tower") {
    overrides->insert(overrides->end(),
                      {"model.user_features=[\"c\"]", "model.item_features=[\"d\"]"});
  }
}

void ListPlaces(const Section& section, const std::string& list,
                const std::vector<std::string>& overrides, std::vector<SettingPlace>* places) {
  for (const Setting& setting : section.settings) {
    const bool of_list = section.name == "column" || section.name == "feature" ||
                         section.name == "table" || section.name == "layer" ||
                         section.name == "eval_set" || section.name == "task" ||
                         section.name == "block";
    std::string object = of_list ? list + ItemFor(section, setting) : list;
    if (section.name == "layer_setting") object += ".deep1";
    SettingPlace place{&section, &setting, overrides, PathBelow(object, setting.key)};
    Fulfil(section, setting, object, &place.overrides);
    places->push_back(place);
    if (setting.kind != ValueKind::kObject) continue;
    if (setting.key == "tables" || setting.key == "layers") place.overrides.push_back(kGraph);
    if (setting.section->name == "eval_set") {
      place.overrides.push_back(place.path + "=[{\"name\":\"other\",\"files\":[\"o.csv\"]}]");
    }
    if (setting.key == "tasks") place.overrides.push_back(R"(model.tasks=[{"label": "y"}])");
    if (setting.section->name == "block") {
      place.overrides.push_back("parallel.dense_exchange=allreduce");
      place.overrides.push_back("parallel.parallel_mode=hybrid_parallel");
      place.overrides.push_back(place.path + R"(=[{"layers": ["deep1"], "shard": [1, 2]}])");
    }
    if (setting.section->name == "vocabulary") {
      place.overrides.push_back(place.path +
                                R"(={"file": "w.keys", "checksum": "fedcba9876543210"})");
    }
    if (setting.section->name == "init") place.overrides.push_back(place.path + "={}");
    ListPlaces(*setting.section, place.path, place.overrides, places);
  }
}

}  // namespace

std::vector<SettingPlace> PlacesOf(const Section& whole) {
  std::vector<SettingPlace> places;
  ListPlaces(whole, "", {}, &places);
  return places;
}

const std::map<std::string, std::vector<std::string>>& OtherValues() {
  static const std::map<std::string, std::vector<std::string>> values = {
      {"name", {"other"}},
      {"data.train", {"[\"b.csv\"]"}},
      {"data.eval", {"[\"f.csv\"]"}},
      {"data.follow_until", {"_SUCCESS"}},
      {"data.kafka.start", {"latest", R"({"0": 7})"}},
      {"data.kafka.settings", {R"({"client.id": "clicks"})"}},
      {"data.kafka.secrets", {"kafka.json"}},
      {"data.eval_sets[].name", {"later"}},
      {"data.eval_sets[].files", {"[\"p.csv\"]"}},
      {"data.delimiter", {";"}},
      {"data.missing", {"?"}},
      {"data.comment", {"#"}},
      {"data.image_shape", {"[2, 3]"}},
      {"data.item_features", {"[\"c\"]"}},
      {"data.vocabulary.file", {"v.keys"}},
      {"data.vocabulary.checksum", {"0123456789abcdef"}},
      {"data.distinct", {R"({"c": 5})"}},
      {"data.distinct_half", {R"({"c": 5})"}},
      {"data.parts", {"[1024]", "[512, 512]"}},
      {"data.columns[].name", {"z"}},
      {"data.columns[].separator", {";"}},
      {"data.columns[].positive", {"[\"yes\"]"}},
      {"data.columns[].classes", {"[\"no\", \"yes\"]"}},
      {"data.columns[].vocabulary", {"d"}},
      {"data.columns[].from", {"d"}},
      {"data.features[].name", {"z"}},
      {"data.features[].from", {"[\"d\", \"e\"]"}},
      {"data.features[].boundaries", {"[1, 2]"}},
      {"model.history", {"e"}},
      {"model.target", {"e"}},
      {"model.user_features", {"[\"e\"]"}},
      {"model.item_features", {"[\"e\"]"}},
      {"model.hidden", {"[8]"}},
      {"model.bottom_hidden", {"[8, 16]"}},
      {"model.wide_features", {"[\"c\"]"}},
      {"model.deep_features", {"[\"c\", \"d\"]"}},
      {"model.manual_shapes", {"[2, 4]"}},
      {"model.tables[].manual_shapes", {"[2, 4]"}},
      {"model.feature_dims", {"{\"c\": 4}"}},
      {"parallel.parallel_optimizer_config.optimizer_level", {"level1", "level2"}},
      {"model.tables[].name", {"u"}},
      {"model.layers[].name", {"z"}},
      {"model.layers[].inputs", {"[\"e\", \"e\"]"}},
      {"model.layers[].table", {"u"}},
      {"model.layers[].features", {"[\"c\"]"}},
      {"model.tasks[].label", {"x"}},
      {"train.metrics", {"[\"auc\"]"}},
      {"train.loss_scale", {"1024", "dynamic"}},
      {"train.early_stop.metric", {"logloss"}},
      {"train.early_stop.set", {"eval"}},
      {"train.plateau.metric", {"logloss"}},
      {"train.plateau.set", {"eval"}},
      {"parallel.all_reduce_fusion_config", {"[1, 2]"}},
      {"parallel.comm_fusion.allreduce.config", {"2"}},
      {"parallel.comm_fusion.allgather.config", {"2"}},
      {"parallel.comm_fusion.reducescatter.config", {"2"}},
      {"parallel.parallel_optimizer_config.optimizer_weight_shard_size", {"1", "2"}},
      {"parallel.strategy_ckpt_save_file", {"s.json"}},
      {"parallel.strategy_ckpt_load_file", {"s.json"}},
      {"parallel.constants", {"c.json"}},
      {"parallel.blocks[].layers", {"[\"deep2\"]"}},
      {"parallel.blocks[].from", {"deep1"}},
      {"parallel.blocks[].to", {"deep1"}},
      {"checkpoint.copy_to", {"store:jobs/clicks"}},
      {"cluster.spill_path", {"/x"}},
      {"data.cache_path", {"/x"}}};
  return values;
}

std::vector<std::string> ValuesOf(const Setting& setting, const std::string& path) {
  if (const auto found = OtherValues().find(path); found != OtherValues().end())
    return found->second;
  std::vector<std::string> values;
  for (const std::string& word : setting.words) {
    values.push_back(PrintJsonLine(JsonValue::Text(word)));
  }
  switch (setting.kind) {
    case ValueKind::kBool:
      return {"true", "false"};
    case ValueKind::kInteger:
    case ValueKind::kNumber: {
      const bool whole = setting.kind == ValueKind::kInteger;
      for (const double value : {setting.min, 1.0, 2.0, 3.0, 0.25, 0.5, 16.0}) {
        const bool fits = value >= setting.min && value <= setting.max && value > -kAnyNumber;
        if (fits && (!whole || value == static_cast<double>(static_cast<int64_t>(value)))) {
          values.push_back(NumberText(value));
        }
      }
      return values;
    }
    case ValueKind::kBytes:
      return {"65536", "\"1GiB\""};
    case ValueKind::kTuples:
      values.insert(values.end(), {"[[2, 1]]", "[[1, 2]]"});
      return values;
    default:
      return values;
  }
}

}  // namespace hdps
