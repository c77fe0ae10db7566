// Keys, reading, printing and documentation of an optimizer, from its record.
#include "common/job/text/optimizer_text.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "common/job/text/job_reading.h"

namespace hdps {

namespace {

// 0 rather than 0.0.
std::string TextOf(float value) {
  const auto whole = static_cast<int64_t>(value);
  return PrintJsonLine(static_cast<float>(whole) == value ? JsonValue::Signed(whole)
                                                          : JsonValue::Float(value));
}

// The settings of all optimizers, those of one name once, in an order that is also each record's: a
// new one comes before the next of its record that is known, else at the end.
std::vector<OptimizerSetting> AllSettings() {
  std::vector<OptimizerSetting> all;
  const auto find = [&all](std::string_view name) {
    return std::find_if(all.begin(), all.end(), [name](const auto& s) { return s.name == name; });
  };
  for (const OptimizerRecord& record : kOptimizers) {
    for (auto own = record.settings.begin(); own != record.settings.end(); ++own) {
      if (find(own->name) != all.end()) continue;
      auto place = all.end();
      for (auto next = own + 1; next != record.settings.end() && place == all.end(); ++next) {
        place = find(next->name);
      }
      all.insert(place, *own);
    }
  }
  return all;
}

// The setting of that name, if the optimizer has one.
const OptimizerSetting* FindSetting(const OptimizerRecord& record, std::string_view name) {
  for (const OptimizerSetting& setting : record.settings) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

// The keys, and the texts they look at.
class OptimizerKeyTable {
 public:
  OptimizerKeyTable() {
    std::string kinds, whole;
    for (const OptimizerRecord& record : kOptimizers) {
      kinds += (kinds.empty() ? "" : ", ") + std::string(record.name);
      if (record.whole_tensors) whole += (whole.empty() ? "" : ", ") + std::string(record.name);
    }
    keys_.push_back({"optimizer", "kind", KeyKind::kChoice, Keep(kinds), 0, 0, "", "",
                     Keep(whole + " only for dense weights.")});
    for (const OptimizerSetting& setting : AllSettings()) AddSetting(setting);
  }
  std::span<const KeySpec> keys() const { return keys_; }

 private:
  std::string_view Keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  void AddSetting(const OptimizerSetting& setting) {
    const float usual = OptimizerSettings().*setting.value;
    // Recipes have learning rates of their own.
    const bool by_place = setting.value == &OptimizerSettings::learning_rate;
    std::string kinds, doc = setting.doc;
    if (by_place) doc = "Default where the kind is not that of the place: " + TextOf(usual) + ".";
    size_t count = 0;
    for (const OptimizerRecord& record : kOptimizers) {
      const OptimizerSetting* own = FindSetting(record, setting.name);
      if (own == nullptr) continue;
      ++count;
      kinds += (kinds.empty() ? "kind=" : "|") + std::string(record.name);
      if (own->default_value == usual) continue;
      doc += (doc.empty() ? "" : " ") + std::string("Default of ") + record.name + ": " +
             TextOf(own->default_value) + ".";
    }
    if (count == std::size(kOptimizers)) kinds.clear();
    keys_.push_back({"optimizer", setting.name, KeyKind::kNumber, "", setting.min, setting.max,
                     by_place ? "" : Keep(TextOf(usual)), Keep(kinds), Keep(doc)});
  }

  std::deque<std::string> texts_;
  std::vector<KeySpec> keys_;
};

}  // namespace

std::span<const KeySpec> OptimizerKeys() {
  static const OptimizerKeyTable table;
  return table.keys();
}

OptimizerSpec ReadOptimizer(const JsonValue& object, std::string_view key,
                            const OptimizerSpec& base) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr) return base;
  OptimizerKind kind = base.kind;
  ReadChoice(*value, "optimizer", "kind", &kind);
  OptimizerSpec spec = kind == base.kind ? base : DefaultsOf(kind);
  for (const OptimizerSetting& setting : RecordOf(kind).settings) {
    ReadKey(*value, setting.name, &(spec.*setting.value));
  }
  return spec;
}

JsonValue PrintOptimizer(const OptimizerSpec& spec) {
  JsonValue object = JsonValue::Object();
  object.Set("kind", JsonValue::Text(OptimizerName(spec.kind)));
  for (const OptimizerSetting& setting : RecordOf(spec.kind).settings) {
    object.Set(setting.name, JsonValue::Float(spec.*setting.value));
  }
  return object;
}

std::string PrintOptimizerReference() {
  std::string text =
      "\n| kind | update of a weight | after | floats of state in a row |\n|---|---|---|---|\n";
  for (const OptimizerRecord& record : kOptimizers) {
    std::string state = record.state_arrays == 0   ? ""
                        : record.state_arrays == 1 ? "dim"
                                                   : std::to_string(record.state_arrays) + " dim";
    if (record.state_more > 0) {
      state += (state.empty() ? "" : " + ") + std::to_string(record.state_more);
    }
    text += "| `" + std::string(record.name) + "` | " + record.formula + " | " + record.paper +
            " | " + (state.empty() ? "0" : state) + " |\n";
  }
  return text;
}

}  // namespace hdps
