// The settings of an optimizer, built from the optimizers' records.
#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizer_registry.h"
#include "common/job/optimizers/optimizer_settings.h"
#include "common/job/spec/table_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/setting_table.h"

namespace hdps {

namespace {

using Records = std::vector<const OptimizerRecord*>;

// Returns the shortest text for the same 32-bit number: 0.1, not 0.100000001.
std::string ShortText(float value) { return NumberText(JsonValue::Float(value).number); }

// Returns the settings of all optimizers, each name once, in an order that agrees with every
// record. A new setting is inserted before the next known one of its record, or else at the end.
std::vector<OptimizerSetting> AllSettings(const Records& records) {
  std::vector<OptimizerSetting> all;
  const auto find = [&all](std::string_view name) {
    return std::find_if(all.begin(), all.end(), [name](const auto& s) { return s.name == name; });
  };
  for (const OptimizerRecord* record : records) {
    const std::span<const OptimizerSetting> settings = record->settings;
    for (auto own = settings.begin(); own != settings.end(); ++own) {
      if (find(own->name) != all.end()) continue;
      auto place = all.end();
      for (auto next = own + 1; next != settings.end() && place == all.end(); ++next) {
        place = find(next->name);
      }
      all.insert(place, *own);
    }
  }
  return all;
}

// Returns the condition for the optimizers that have the setting. Defaults that differ from the
// usual one are added to the doc.
Condition KindsWith(const Records& records, const OptimizerSetting& setting, std::string* doc) {
  Condition kinds{"kind", {}};
  for (const OptimizerRecord* record : records) {
    for (const OptimizerSetting& own : record->settings) {
      if (std::string_view(own.name) != setting.name) continue;
      kinds.values.emplace_back(record->name);
      if (own.default_value == OptimizerSettings().*setting.value) continue;
      *doc += (doc->empty() ? "" : " ") + std::string("Default of ") + record->name + ": " +
              ShortText(own.default_value) + ".";
    }
  }
  return kinds;
}

// Fills in the kind. If it differs from the default kind of the place, settings that are not given
// take its own defaults.
void ReadKind(const OptimizerRegistry& optimizers, const JsonValue& kind, OptimizerSpec* spec) {
  const OptimizerRecord& record = *optimizers.Find(kind.text);
  if (&record != spec->record) *spec = DefaultsOf(record);
}

// Returns a table of what each kind does.
std::string KindTable(const Records& records) {
  std::string text =
      "\n| kind | update of a weight | paper | floats of state in a row |\n|---|---|---|---|\n";
  for (const OptimizerRecord* record : records) {
    std::string state = record->state_arrays == 0   ? ""
                        : record->state_arrays == 1 ? "dim"
                                                    : std::to_string(record->state_arrays) + " dim";
    if (record->state_more > 0) {
      state += (state.empty() ? "" : " + ") + std::to_string(record->state_more);
    }
    text += "| `" + std::string(record->name) + "` | " + record->formula + " | " + record->paper +
            " | " + (state.empty() ? "0" : state) + " |\n";
  }
  return text;
}

}  // namespace

Section OptimizerSection(const OptimizerRegistry& optimizers) {
  using enum Note;
  using enum OnResume;
  const Records& records = optimizers.records();
  SettingTable<OptimizerSpec> optimizer("optimizer", "An optimizer");
  std::string whole;
  for (const OptimizerRecord* record : records) {
    if (record->whole_tensors) whole += (whole.empty() ? "" : ", ") + std::string(record->name);
  }
  const auto read_kind = [optimizers](const JsonValue& kind, OptimizerSpec* spec) {
    ReadKind(optimizers, kind, spec);
  };
  optimizer.AddConverted(
      "kind", ValueKind::kChoice, whole + " only for dense weights.", read_kind,
      [](const OptimizerSpec& spec) { return JsonValue::Text(OptimizerName(spec)); },
      OneOf{optimizers.names()}, kNoDefault);
  for (const OptimizerSetting& setting : AllSettings(records)) {
    const bool is_rate = setting.value == &OptimizerSettings::learning_rate;
    std::string doc = setting.doc;
    if (is_rate) {
      doc = "Default where the kind is not that of the place: " +
            ShortText(OptimizerSpec().learning_rate) + ".";
    }
    const Condition kinds = KindsWith(records, setting, &doc);
    const Range range{setting.min, setting.max};
    if (is_rate) {  // Recipes have their own rates.
      optimizer.Add(setting.name, setting.value, doc, range, kNoDefault, kMayChange);
    } else {
      optimizer.Add(setting.name, setting.value, doc, range, kinds, kMayChange);
    }
  }
  optimizer.Appendix(KindTable(records));
  return optimizer.Done();
}

}  // namespace hdps
