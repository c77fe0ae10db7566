// Checks the tree of a job text against the descriptors of its settings.
#include <algorithm>
#include <cmath>

#include "common/base/nearest_name.h"
#include "common/job/text/setting.h"
#include "common/job/words/mindspore_words.h"

namespace hdps {

namespace {

using Kind = JsonValue::Kind;

// Is true if the value, or an item of a list, is valid for the setting.
bool FitsOne(const Setting& setting, const JsonValue& value) {
  const auto in_range = [&setting](double number) {
    return number >= setting.min && number <= setting.max;
  };
  switch (setting.kind) {
    case ValueKind::kBool:
      return value.kind == Kind::kBool;
    case ValueKind::kInteger:
      return value.kind == Kind::kInteger && in_range(value.number);
    case ValueKind::kNumber:
      return (value.kind == Kind::kInteger || value.kind == Kind::kNumber) &&
             in_range(value.number);
    case ValueKind::kBytes: {
      const std::optional<uint64_t> bytes = BytesIn(value);
      return bytes.has_value() && in_range(static_cast<double>(*bytes));
    }
    case ValueKind::kText:
      return value.kind == Kind::kText;
    case ValueKind::kChoice:
      return value.kind == Kind::kText && std::find(setting.words.begin(), setting.words.end(),
                                                    value.text) != setting.words.end();
    case ValueKind::kByName:
      return value.kind == Kind::kObject &&
             std::ranges::all_of(value.items, [&](const JsonValue& item) {
               return item.kind == Kind::kInteger && in_range(item.number);
             });
    case ValueKind::kTuples: {
      if (value.kind == Kind::kText) return std::ranges::count(setting.words, value.text) > 0;
      const auto whole = [&](const JsonValue& item) {
        return item.kind == Kind::kInteger && in_range(item.number);
      };
      const auto tuple = [&](const JsonValue& item) {
        return item.kind == Kind::kList && std::ranges::all_of(item.items, whole);
      };
      const auto filled = [&](const JsonValue& item) { return tuple(item) && !item.items.empty(); };
      return tuple(value) ||
             (value.kind == Kind::kList && std::ranges::all_of(value.items, filled));
    }
    case ValueKind::kObject:
      return value.kind == Kind::kObject;
  }
  return false;
}

bool Fits(const Setting& setting, const JsonValue& value) {
  if (setting.fits) return setting.fits(value);
  if (!setting.is_list) return FitsOne(setting, value);
  return value.kind == Kind::kList &&
         std::all_of(value.items.begin(), value.items.end(),
                     [&setting](const JsonValue& item) { return FitsOne(setting, item); });
}

Setting OneOfList(Setting setting) {
  setting.is_list = false;
  return setting;
}

std::string Listed(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

std::string Shown(const JsonValue& value) {
  constexpr size_t kShownBytesMax = 80;
  std::string text = PrintJsonLine(value);
  if (text.size() > kShownBytesMax) text = text.substr(0, kShownBytesMax) + "...";
  return text;
}

// Lists the places of settings with this name: "train.epochs", "model.tables[].dim".
void FindKey(const Section& section, const std::string& path, const std::string& key,
             std::vector<std::string>* places) {
  for (const Setting& setting : section.settings) {
    const std::string place = PathBelow(path, setting.key);
    if (setting.key == key) places->push_back(place);
    if (setting.section == nullptr) continue;
    FindKey(*setting.section, place + ItemMark(setting), key, places);
  }
}

// Suggests what an unknown key may have meant.
std::string KeyHint(const Section& whole, const Section& section, const std::string& key) {
  constexpr size_t kPlacesMax = 3;
  std::vector<std::string> known, places;
  for (const Setting& setting : section.settings) known.push_back(setting.key);
  if (const std::string hint = DidYouMean(key, known); !hint.empty()) return hint;
  FindKey(whole, "", key, &places);
  if (places.empty()) return "; known are " + Listed(known);
  const size_t more = places.size() - std::min(places.size(), kPlacesMax);
  places.resize(places.size() - more);
  return "; there is " + Listed(places) +
         (more == 0 ? "" : ", and " + std::to_string(more) + " more of that name");
}

Status CheckUnknown(const JobSource& source, const Section& whole, const Section& section,
                    const std::string& place, const std::string& key) {
  const std::string answer = AnswerToKey(section, key);
  if (!answer.empty()) return Refuse(source, place, "there is no such key; " + answer);
  return Refuse(source, place, "there is no such key" + KeyHint(whole, section, key));
}

// Suggests how to turn a value of the wrong kind into the one that was meant.
std::string ValueHint(const Setting& setting, const JsonValue& value) {
  if (setting.is_list && value.kind != Kind::kList) {
    JsonValue list = JsonValue::List();
    // --set=data.eval.0=FILE makes an object if there is no list yet.
    const bool is_first = value.names.size() == 1 && value.names[0] == "0";
    list.items.push_back(is_first ? value.items[0] : value);
    if (Fits(setting, list)) return "; a list of one is " + PrintJsonLine(list);
  }
  if (setting.is_list && value.kind == Kind::kList) {
    for (const JsonValue& item : value.items) {
      if (!FitsOne(setting, item)) return ValueHint(OneOfList(setting), item);
    }
  }
  if (setting.kind == ValueKind::kText && !setting.is_list && value.kind != Kind::kText) {
    const std::string text = PrintJsonLine(value);
    if (value.kind != Kind::kObject && value.kind != Kind::kList) {
      return "; as a text it is in quotes, \"" + text + "\"";
    }
  }
  if (value.kind != Kind::kText) return "";
  const Result<JsonValue> bare = ParseJson(value.text, "");
  if (!setting.is_list && bare.ok() && bare->kind != Kind::kText && Fits(setting, *bare)) {
    return "; it is one without the quotes, " + PrintJsonLine(*bare);
  }
  if (setting.kind == ValueKind::kBool) return DidYouMean(value.text, {"true", "false"});
  return DidYouMean(value.text, setting.words);
}

// Suggests what to write for a word that another system has, or for one in place of an object.
std::string WordHint(const Section& section, const Setting& setting, const JsonValue& value) {
  if (value.kind != Kind::kText) return "";
  const std::string answer = AnswerToValue(section, setting, value.text);
  if (!answer.empty()) return "; " + answer;
  if (setting.kind != ValueKind::kObject || setting.is_list) return "";
  const Setting* const kind = setting.section->Find("kind");
  if (kind == nullptr) return "";
  JsonValue object = JsonValue::Object();
  object.Set("kind", value);
  TakeForeignWords(*setting.section, &object);
  return Fits(*kind, object.items[0]) ? "; as an object it is " + PrintJsonLine(object) : "";
}

Status CheckBelow(const JobSource& source, const Section& whole, const Section& section,
                  const JsonValue& object, const std::string& path);

Status CheckValue(const JobSource& source, const Section& whole, const Section& section,
                  const std::string& path, const Setting& setting, const JsonValue& value) {
  if (!Fits(setting, value)) {
    std::string hint = WordHint(section, setting, value);
    if (hint.empty()) hint = ValueHint(setting, value);
    return Refuse(source, path, Shown(value) + " is not " + WantedText(setting) + hint);
  }
  if (setting.kind != ValueKind::kObject) return {};
  if (!setting.is_list && !setting.by_name) {
    return CheckBelow(source, whole, *setting.section, value, path);
  }
  for (size_t n = 0; n < value.items.size(); ++n) {
    const std::string place = PathBelow(path, setting.by_name ? value.names[n] : std::to_string(n));
    if (value.items[n].kind != Kind::kObject) {
      return Refuse(source, place,
                    Shown(value.items[n]) + " is not an object (" + setting.section->name + ")");
    }
    HDPS_RETURN_IF_ERROR(CheckBelow(source, whole, *setting.section, value.items[n], place));
  }
  return {};
}

Status CheckBelow(const JobSource& source, const Section& whole, const Section& section,
                  const JsonValue& object, const std::string& path) {
  for (size_t i = 0; i < object.names.size(); ++i) {
    const std::string place = PathBelow(path, object.names[i]);
    const Setting* setting = section.Find(object.names[i]);
    if (setting == nullptr) return CheckUnknown(source, whole, section, place, object.names[i]);
    HDPS_RETURN_IF_ERROR(CheckValue(source, whole, section, place, *setting, object.items[i]));
  }
  for (const Setting& setting : section.settings) {
    if (!setting.required || object.Find(setting.key) != nullptr) continue;
    return Refuse(source, PathBelow(path, setting.key), "it is missing; see docs/job_file.md");
  }
  return {};
}

// Returns " from 1 to 65536", or nothing for any number.
std::string RangeText(const Setting& setting) {
  constexpr double kLarge = 4e9;  // A larger upper end is not shown, because nobody reaches it.
  if (setting.min <= -kAnyNumber) return "";
  if (setting.max >= kLarge) return " of at least " + NumberText(setting.min);
  return " from " + NumberText(setting.min) + " to " + NumberText(setting.max);
}

}  // namespace

std::string NumberText(double value) {
  const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
  return PrintJsonLine(whole ? JsonValue::Signed(static_cast<int64_t>(value))
                             : JsonValue::Number(value));
}

std::string WantedText(const Setting& setting) {
  if (setting.fits) return setting.wanted;
  const std::string list = setting.is_list ? "a list of " : "a ", s = setting.is_list ? "s" : "";
  switch (setting.kind) {
    case ValueKind::kBool:
      return "true or false";
    case ValueKind::kInteger:
      return list + "whole number" + s + RangeText(setting);
    case ValueKind::kNumber:
      return list + "number" + s + RangeText(setting);
    case ValueKind::kBytes:
      return list + "number of bytes" + RangeText(setting) + ", such as 4294967296 or \"4GiB\"";
    case ValueKind::kText:
      return list + "text" + s;
    case ValueKind::kChoice:
      return "one of " + Listed(setting.words);
    case ValueKind::kByName:
      return "an object of names, each with a whole number" + RangeText(setting);
    case ValueKind::kTuples:
      return (setting.words.empty() ? "" : "one of " + Listed(setting.words) + ", or ") +
             "a tuple such as [2, 1], or a list of tuples, of whole numbers" + RangeText(setting);
    case ValueKind::kObject:
      return (setting.is_list   ? "a list of objects ("
              : setting.by_name ? "an object of names, each with an object ("
                                : "an object (") +
             setting.section->name + ")";
  }
  return "";
}

Status CheckSection(const JobSource& source, const Section& section, const JsonValue& object,
                    const std::string& path) {
  return CheckBelow(source, section, section, object, path);
}

}  // namespace hdps
