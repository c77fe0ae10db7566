// Checks the tree of a job text against the table of keys.
#include <algorithm>
#include <cmath>

#include "common/base/byte_count.h"
#include "common/base/nearest_name.h"
#include "common/job/text/job_schema.h"

namespace hdps {

namespace {

using Kind = JsonValue::Kind;

// MindSpore's settings of the same section that mean nothing here, and what to do instead.
struct ForeignKey {
  std::string_view path;
  std::string_view instead;
};
constexpr ForeignKey kForeignKeys[] = {
    {"parallel.interleave_num", "use train.micro_batches"},
    {"parallel.global_rank", "give the worker its --rank"},
    {"parallel.gradient_fp32_sync", "leave it out, or set wire to fp16 or bf16"},
    {"parallel.enable_parallel_optimizer", "servers split the update already: leave it out"},
    {"parallel.comm_fusion", "gradients are always fused: leave it out"},
    {"parallel.all_reduce_fusion_config", "gradients are always fused: leave it out"},
    {"parallel.search_mode", "tables are split by key: leave it out"},
    {"parallel.auto_parallel_search_mode", "tables are split by key: leave it out"},
    {"parallel.strategy_ckpt_save_file", "a checkpoint loads onto any cluster: leave it out"},
    {"parallel.strategy_ckpt_load_file", "a checkpoint loads onto any cluster: leave it out"},
};

std::vector<std::string> KeysOf(const KeyTable& table, std::string_view section) {
  std::vector<std::string> keys;
  for (const KeySpec& spec : table.keys()) {
    if (spec.section == section) keys.emplace_back(spec.key);
  }
  return keys;
}

std::string Below(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

// 0, 1000000 and 0.5 rather than 0.0, 1000000.0 and 0.5.
std::string Shown(double value) {
  const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
  return PrintJsonLine(whole ? JsonValue::Signed(static_cast<int64_t>(value))
                             : JsonValue::Number(value));
}

std::string RangeText(const KeySpec& spec) {
  if (spec.max >= 4e9) return "of at least " + Shown(spec.min);
  return "from " + Shown(spec.min) + " to " + Shown(spec.max);
}

// What a value of the key has to be, for a person; empty when `value` is that.
std::string WantedInstead(const KeySpec& spec, const JsonValue& value) {
  const auto all = [&value](auto&& holds) {
    return value.kind == Kind::kList && std::all_of(value.items.begin(), value.items.end(), holds);
  };
  const auto in_range = [&spec](const JsonValue& item) {
    return item.number >= spec.min && item.number <= spec.max;
  };
  const auto integer = [&](const JsonValue& item) {
    return item.kind == Kind::kInteger && in_range(item);
  };
  const auto number = [](const JsonValue& item) {
    return item.kind == Kind::kInteger || item.kind == Kind::kNumber;
  };
  const auto of_kind = [](Kind kind) {
    return [kind](const JsonValue& item) { return item.kind == kind; };
  };
  switch (spec.kind) {
    case KeyKind::kBool:
      return value.kind == Kind::kBool ? "" : "true or false";
    case KeyKind::kInteger:
      return integer(value) ? "" : "a whole number " + RangeText(spec);
    case KeyKind::kNumber:
      return number(value) && in_range(value) ? "" : "a number " + RangeText(spec);
    case KeyKind::kBytes: {
      const std::optional<uint64_t> bytes = BytesIn(value);
      const auto count = static_cast<double>(bytes.value_or(0));
      return bytes.has_value() && count >= spec.min && count <= spec.max
                 ? ""
                 : "a number of bytes " + RangeText(spec) + ", such as 4294967296 or \"4GiB\"";
    }
    case KeyKind::kText:
      return value.kind == Kind::kText ? "" : "a text";
    case KeyKind::kChoice:
      return value.kind == Kind::kText ? "" : "one of " + std::string(spec.of);
    case KeyKind::kTexts:
      return all(of_kind(Kind::kText)) ? "" : "a list of texts";
    case KeyKind::kIntegers:
      return all(integer) ? "" : "a list of whole numbers " + RangeText(spec);
    case KeyKind::kNumbers:
      return all(number) ? "" : "a list of numbers";
    case KeyKind::kObject:
      return value.kind == Kind::kObject ? "" : "an object, {...}";
    case KeyKind::kObjects:
      return all(of_kind(Kind::kObject)) ? "" : "a list of objects, [{...}, ...]";
  }
  return "";
}

std::string Shown(const JsonValue& value) {
  constexpr size_t kShownBytesMax = 80;
  std::string text = PrintJsonLine(value);
  if (text.size() > kShownBytesMax) text = text.substr(0, kShownBytesMax) + "...";
  return text;
}

Status CheckUnknown(const JobSource& source, const KeyTable& keys, const std::string& path,
                    std::string_view section, const std::string& name) {
  const std::string place = Below(path, name);
  for (const ForeignKey& foreign : kForeignKeys) {
    if (foreign.path == place) {
      return Refuse(source, place,
                    "this setting of MindSpore has no use here; " + std::string(foreign.instead));
    }
  }
  const std::vector<std::string> known = KeysOf(keys, section);
  std::string hint = DidYouMean(name, known);
  if (hint.empty()) {
    for (const std::string& key : known) hint += (hint.empty() ? "; known are " : ", ") + key;
  }
  return Refuse(source, place, "there is no such key" + hint);
}

Status CheckValue(const JobSource& source, const std::string& path, const KeySpec& spec,
                  const JsonValue& value) {
  const std::string wanted = WantedInstead(spec, value);
  if (!wanted.empty()) return Refuse(source, path, Shown(value) + " is not " + wanted);
  if (spec.kind != KeyKind::kChoice) return {};
  const std::vector<std::string> choices = ChoicesOf(spec.of);
  if (std::find(choices.begin(), choices.end(), value.text) != choices.end()) return {};
  return Refuse(
      source, path,
      Shown(value) + " is not one of " + std::string(spec.of) + DidYouMean(value.text, choices));
}

// The value the key has in `object`, as a text; its default when it is not written. Empty when it
// is known to neither.
std::string Effective(const KeyTable& keys, const JsonValue* object, std::string_view section,
                      std::string_view key) {
  if (object != nullptr) {
    if (const JsonValue* value = object->Find(key)) {
      return value->kind == Kind::kText ? value->text : PrintJsonLine(*value);
    }
  }
  const KeySpec* spec = keys.Find(section, key);
  std::string text(spec == nullptr ? "" : spec->default_text);
  std::erase(text, '"');
  return text;
}

// Whether `spec` counts in `object`, and if not, what would make it count.
bool Counts(const KeyTable& keys, const JsonValue& root, const JsonValue& object,
            const KeySpec& spec, std::string* condition) {
  if (spec.only_if.empty()) return true;
  const size_t equals = spec.only_if.find('=');
  const std::string_view key = spec.only_if.substr(0, equals);
  const std::string wanted(spec.only_if.substr(equals + 1));
  const size_t dot = key.find('.');
  const std::string value = dot == key.npos ? Effective(keys, &object, spec.section, key)
                                            : Effective(keys, root.Find(key.substr(0, dot)),
                                                        key.substr(0, dot), key.substr(dot + 1));
  if (value.empty()) return true;
  *condition = std::string(key) + " is " + wanted;
  for (size_t at = condition->find('|'); at != condition->npos; at = condition->find('|')) {
    condition->replace(at, 1, " or ");
  }
  return ("|" + wanted + "|").find("|" + value + "|") != std::string::npos;
}

Status CheckSection(const JobSource& source, const KeyTable& keys, const JsonValue& object,
                    std::string_view section, const std::string& path,
                    std::vector<std::string>* warnings) {
  for (size_t i = 0; i < object.names.size(); ++i) {
    const JsonValue& value = object.items[i];
    const KeySpec* spec = keys.Find(section, object.names[i]);
    if (spec == nullptr) return CheckUnknown(source, keys, path, section, object.names[i]);
    const std::string place = Below(path, object.names[i]);
    HDPS_RETURN_IF_ERROR(CheckValue(source, place, *spec, value));
    std::string condition;
    if (!Counts(keys, source.root, object, *spec, &condition)) {
      warnings->push_back(place + " is ignored: it counts only where " + condition);
    }
    if (spec->kind == KeyKind::kObject) {
      HDPS_RETURN_IF_ERROR(CheckSection(source, keys, value, spec->of, place, warnings));
    }
    if (spec->kind != KeyKind::kObjects) continue;
    for (size_t n = 0; n < value.items.size(); ++n) {
      HDPS_RETURN_IF_ERROR(CheckSection(source, keys, value.items[n], spec->of,
                                        Below(place, std::to_string(n)), warnings));
    }
  }
  return {};
}

void DropIgnored(const KeyTable& keys, const JsonValue& root, std::string_view section,
                 JsonValue* object) {
  std::vector<std::string> ignored;
  for (size_t i = 0; i < object->names.size(); ++i) {
    const KeySpec* spec = keys.Find(section, object->names[i]);
    if (spec == nullptr) continue;
    std::string condition;
    JsonValue* value = &object->items[i];
    if (!Counts(keys, root, *object, *spec, &condition)) ignored.push_back(object->names[i]);
    if (spec->kind == KeyKind::kObject) DropIgnored(keys, root, spec->of, value);
    if (spec->kind != KeyKind::kObjects) continue;
    for (JsonValue& item : value->items) DropIgnored(keys, root, spec->of, &item);
  }
  for (const std::string& name : ignored) object->Erase(name);
}

}  // namespace

std::optional<uint64_t> BytesIn(const JsonValue& value) {
  if (value.kind == Kind::kText) return ParseByteCount(value.text);
  if (value.kind != Kind::kInteger || value.negative) return std::nullopt;
  return value.magnitude;
}

Status CheckKeys(const JobSource& source, const KeyTable& keys,
                 std::vector<std::string>* warnings) {
  if (source.root.kind != Kind::kObject) {
    return Refuse(source, "", "a job is an object, {\"data\": {...}, \"model\": {...}}");
  }
  return CheckSection(source, keys, source.root, "job", "", warnings);
}

void DropIgnoredKeys(const KeyTable& keys, JsonValue* root) {
  const JsonValue whole = *root;  // Conditions are judged before anything is taken out.
  DropIgnored(keys, whole, "job", root);
}

}  // namespace hdps
