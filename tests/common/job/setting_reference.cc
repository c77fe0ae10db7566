// Writes a Markdown table per section, with expert settings in a table of their own.
#include "tests/common/job/setting_reference.h"

#include <vector>

namespace hdps {

namespace {

// Shows a default as it is written, a whole number without ".0".
std::string DefaultText(const JsonValue& value) {
  return value.kind == JsonValue::Kind::kNumber ? NumberText(value.number) : PrintJsonLine(value);
}

// A bar would end the cell.
std::string Cell(std::string text) {
  for (size_t at = text.find('|'); at != text.npos; at = text.find('|', at + 2)) {
    text.insert(at, "\\");
  }
  return text;
}

std::string Row(const Section& section, const Setting& setting, const std::string& key) {
  std::string standard = setting.required ? "required" : "";
  if (setting.shows_default) {
    const JsonValue value = setting.print(section.defaults.get(), Form::kWhole);
    standard = "`" + Cell(DefaultText(value)) + "`";
  }
  const std::string where =
      setting.only_where.has_value() ? ConditionText(*setting.only_where) : "";
  return "| `" + key + "` | " + Cell(WantedText(setting)) + " | " + standard + " | " + where +
         " | " + Cell(setting.doc) + " |\n";
}

constexpr const char* kHead =
    "| key | value | default | has an effect where | meaning |\n|---|---|---|---|---|\n";

// Lists the section and those below it, each once, in order of occurrence.
void ListSections(const Section& section, std::vector<const Section*>* list) {
  for (const Section* known : *list) {
    if (known->name == section.name) return;
  }
  list->push_back(&section);
  for (const Setting& setting : section.settings) {
    if (setting.section != nullptr) ListSections(*setting.section, list);
  }
}

// Lists the settings that a job may change when it continues, by section.
std::string ListMayChange(const std::vector<const Section*>& sections) {
  std::string text;
  for (const Section* section : sections) {
    std::string keys;
    for (const Setting& setting : section->settings) {
      if (setting.on_resume != OnResume::kMayChange) continue;
      keys += (keys.empty() ? "`" : ", `") + setting.key + "`";
    }
    if (!keys.empty()) text += "| " + section->title + " | " + keys + " |\n";
  }
  return text;
}

}  // namespace

std::string PrintSettingReference(const Section& whole) {
  std::vector<const Section*> sections;
  ListSections(whole, &sections);
  std::string text, expert;
  for (const Section* section : sections) {
    text += "\n### " + section->title + "\n\n" + kHead;
    for (const Setting& setting : section->settings) {
      if (setting.expert) {
        expert += Row(*section, setting, section->name + "." + setting.key);
      } else {
        text += Row(*section, setting, setting.key);
      }
    }
    text += section->appendix;
  }
  return text + "\n### Expert settings\n\nThe defaults are good for nearly every job.\n\n" + kHead +
         expert +
         "\n### Settings that may change\n\nOn the way from a checkpoint, under "
         "`--resume=changed`, with all that stands below them. Beside these a resume asks for "
         "nothing of how often is evaluated and saved, of the cluster's timings, and of epochs.\n\n"
         "| of | settings |\n|---|---|\n" +
         ListMayChange(sections);
}

std::string PrintLayerReference(const LayerRegistry& layers) {
  std::string text = "\n| layer | inputs | gives |\n|---|---|---|\n";
  for (const LayerRecord& record : layers.records()) {
    std::string inputs = record.inputs_doc;
    if (inputs.empty()) {
      inputs = record.inputs_max == 0 ? "none" : record.inputs_max == 1 ? "one" : "one or more";
    }
    text += "| `" + record.kind + "` | " + inputs + " | " + record.gives + " |\n";
  }
  return text + "\n";
}

std::string PrintRecipeReference() {
  std::string text = "\n| type | gives | paper | settings of its own |\n|---|---|---|---|\n";
  for (const RecipeRecord& recipe : Recipes()) {
    std::string own;
    for (const RecipeSetting& setting : recipe.settings) {
      own += (own.empty() ? "`" : ", `") + setting.name + "`";
    }
    text +=
        "| `" + recipe.word + "` | " + recipe.gives + " | " + recipe.paper + " | " + own + " |\n";
  }
  return text + "\n";
}

}  // namespace hdps
