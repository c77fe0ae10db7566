// Walks the sections, and fulfils the condition of each setting.
#include "tests/common/job/setting_places.h"

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

}  // namespace hdps
