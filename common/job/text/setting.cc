// Reads and prints the objects of a job file by the descriptors of their settings.
#include "common/job/text/setting.h"

#include <algorithm>

#include "common/base/byte_count.h"

namespace hdps {

const Setting* Section::Find(std::string_view key) const {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [key](const Setting& setting) { return setting.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

bool HasEffect(const Section& section, const Setting& setting, const void* object) {
  if (!setting.only_where.has_value()) return true;
  const JsonValue value = section.Find(setting.only_where->key)->print(object, Form::kWhole);
  const std::vector<std::string>& wanted = setting.only_where->values;
  return std::find(wanted.begin(), wanted.end(), PlainText(value)) != wanted.end();
}

std::string ConditionText(const Condition& condition) {
  std::string text;
  for (const std::string& value : condition.values) {
    text += (text.empty() ? condition.key + " is " : " or ") + value;
  }
  return text;
}

void ReadSection(const Section& section, const JsonValue& object, void* to, const Reading& at) {
  if (section.before_reading) section.before_reading(object, to);
  for (const Setting& setting : section.settings) {
    const JsonValue* value = object.Find(setting.key);
    if (value == nullptr) continue;
    const Reading below = at.Below(setting.key);
    if (HasEffect(section, setting, to)) {
      setting.read(*value, to, below);
    } else {
      at.warnings->push_back(below.path + " is ignored: it counts only where " +
                             ConditionText(*setting.only_where));
    }
  }
  if (section.after_reading) section.after_reading(object, to);
}

JsonValue PrintSection(const Section& section, const void* from, Form form) {
  JsonValue object = JsonValue::Object();
  for (const Setting& setting : section.settings) {
    if (!setting.print || !HasEffect(section, setting, from)) continue;
    if (setting.printed_if && !setting.printed_if(from)) continue;
    const bool digest = form == Form::kDigest;
    if (digest && setting.hashed == Hashed::kNothing) continue;
    if (digest && setting.hashed_as) {
      object.Set(setting.key, *setting.hashed_as);
      continue;
    }
    const bool as_default = digest && setting.hashed == Hashed::kDefault;
    object.Set(setting.key, setting.print(as_default ? section.defaults.get() : from, form));
  }
  return object;
}

std::optional<uint64_t> BytesIn(const JsonValue& value) {
  if (value.kind == JsonValue::Kind::kText) return ParseByteCount(value.text);
  if (value.kind != JsonValue::Kind::kInteger || value.negative) return std::nullopt;
  return value.magnitude;
}

std::string PlainText(const JsonValue& value) {
  return value.kind == JsonValue::Kind::kText ? value.text : PrintJsonLine(value);
}

std::string ItemMark(const Setting& setting) {
  return setting.is_list ? "[]" : setting.by_name ? "{}" : "";
}

std::string PathBelow(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

}  // namespace hdps
