// Writes a Markdown table per section, with expert settings in a table of their own.
#include "tests/common/job/setting_reference.h"

#include <algorithm>
#include <vector>

#include "common/job/words/mindspore_words.h"
#include "tests/common/job/narrow_page.h"

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

// "kind is adam or adamw"; of most of the words of a choice those that are left: "type is not mlp
// or graph".
std::string WhereText(const Section& section, const Condition& condition) {
  const Setting* choice = section.Find(condition.key);
  if (choice == nullptr || condition.values.size() * 2 <= choice->words.size()) {
    return ConditionText(condition);
  }
  std::vector<std::string> others;
  for (const std::string& word : choice->words) {
    const auto& values = condition.values;
    if (std::find(values.begin(), values.end(), word) == values.end()) others.push_back(word);
  }
  if (others.empty()) return "";
  std::string text = condition.key + " is not ";
  for (size_t i = 0; i < others.size(); ++i) text += (i == 0 ? "" : " or ") + others[i];
  return text;
}

std::string Row(const Section& section, const Setting& setting, const std::string& key) {
  std::string standard = setting.required ? "required" : "";
  if (setting.shows_default) {
    const JsonValue value = setting.print(section.defaults.get(), Form::kWhole);
    standard = "`" + Cell(DefaultText(value)) + "`";
  }
  const std::string where =
      setting.only_where.has_value() ? WhereText(section, *setting.only_where) : "";
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
    if (!keys.empty()) text += "- " + section->title + ": " + keys + "\n";
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
  text += std::string("\n### Expert settings\n\nThe defaults are good for nearly every job.\n\n") +
          kHead + expert +
          "\n### Settings that may change\n\nA job may go on from a checkpoint with other values "
          "of these settings, and "
          "of all that stands below them, under `--resume=changed`. How often is evaluated and "
          "saved, the cluster's "
          "timings and the number of epochs may change in any case.\n\n" +
          ListMayChange(sections);
  return NarrowPage(text);
}

std::string PrintMindSporeWords() {
  std::string text = "\n| MindSpore | hdps |\n|---|---|\n";
  for (const MindSporeRow& row : MindSporeRows()) {
    text += "| " + std::string(row.mindspore) + " | " + std::string(row.here) + " |\n";
  }
  return text + "\n";
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
  return NarrowPage(text + "\n");
}

std::string PrintRecipeReference() {
  std::string text = "\n| type | paper | settings of its own | gives |\n|---|---|---|---|\n";
  for (const RecipeRecord& recipe : Recipes()) {
    std::string own;
    for (const RecipeSetting& setting : recipe.settings) {
      own += (own.empty() ? "`" : ", `") + setting.name + "`";
    }
    text +=
        "| `" + recipe.word + "` | " + recipe.paper + " | " + own + " | " + recipe.gives + " |\n";
  }
  return NarrowPage(text + "\n");
}

}  // namespace hdps
