// Builds a section from the members of its struct: the type, default, reading and printing of a
// setting follow from the member.
#pragma once

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/enum_words.h"
#include "common/job/text/setting.h"

namespace hdps {

template <typename Value>
constexpr bool kIsList = false;
template <typename Item>
constexpr bool kIsList<std::vector<Item>> = true;

template <>
// A list of tuples is one value.
inline constexpr bool kIsList<std::vector<std::vector<uint32_t>>> = false;

template <typename Value>
struct ItemOf {
  using Type = Value;
};
template <typename Item>
struct ItemOf<std::vector<Item>> {
  using Type = Item;
};
template <>
struct ItemOf<std::vector<std::vector<uint32_t>>> {
  using Type = std::vector<std::vector<uint32_t>>;
};

template <typename Value>
constexpr bool kIsByName = false;
template <typename Item>
constexpr bool kIsByName<std::map<std::string, Item>> = true;

// Returns the kind of setting for a member's type. The functions below expect a value that passed
// CheckSection().
template <typename Value>
constexpr ValueKind KindOf() {
  if constexpr (std::is_same_v<Value, bool>) return ValueKind::kBool;
  if constexpr (std::is_same_v<Value, std::vector<std::vector<uint32_t>>>) {
    return ValueKind::kTuples;
  }
  if constexpr (std::is_enum_v<Value>) return ValueKind::kChoice;
  if constexpr (std::is_integral_v<Value>) return ValueKind::kInteger;
  if constexpr (std::is_floating_point_v<Value>) return ValueKind::kNumber;
  if constexpr (kIsByName<Value>) return ValueKind::kByName;
  return ValueKind::kText;
}

template <typename Value>
void ReadValue(const JsonValue& json, Value* to) {
  if constexpr (std::is_same_v<Value, bool>) {
    *to = json.boolean;
  } else if constexpr (std::is_enum_v<Value>) {
    for (const auto& word : WordsOf(Value{})) {
      if (word.word == json.text) *to = word.value;
    }
  } else if constexpr (std::is_integral_v<Value>) {
    const uint64_t magnitude = BytesIn(json).value_or(json.magnitude);
    *to = static_cast<Value>(json.negative ? uint64_t{0} - magnitude : magnitude);
  } else if constexpr (std::is_floating_point_v<Value>) {
    *to = static_cast<Value>(json.number);
  } else {
    static_assert(std::is_same_v<Value, std::string>);
    *to = json.text;
  }
}
template <typename Item>
void ReadValue(const JsonValue& json, std::vector<Item>* to) {
  to->assign(json.items.size(), Item());
  for (size_t i = 0; i < to->size(); ++i) ReadValue(json.items[i], &(*to)[i]);
}
template <typename Item>
void ReadValue(const JsonValue& json, std::map<std::string, Item>* to) {
  to->clear();
  for (size_t i = 0; i < json.items.size(); ++i) ReadValue(json.items[i], &(*to)[json.names[i]]);
}

// A single tuple may be given without the outer list.
inline void ReadValue(const JsonValue& json, std::vector<std::vector<uint32_t>>* to) {
  const bool single = !json.items.empty() && json.items[0].kind == JsonValue::Kind::kInteger;
  to->assign(single ? 1 : json.items.size(), {});
  for (size_t i = 0; i < to->size(); ++i) ReadValue(single ? json : json.items[i], &(*to)[i]);
}

template <typename Value>
JsonValue PrintValue(const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    return JsonValue::Bool(value);
  } else if constexpr (std::is_enum_v<Value>) {
    return JsonValue::Text(std::string(WordOf(value)));
  } else if constexpr (std::is_signed_v<Value> && std::is_integral_v<Value>) {
    return JsonValue::Signed(value);
  } else if constexpr (std::is_integral_v<Value>) {
    return JsonValue::Integer(value);
  } else if constexpr (std::is_same_v<Value, float>) {
    return JsonValue::Float(value);
  } else if constexpr (std::is_same_v<Value, double>) {
    return JsonValue::Number(value);
  } else {
    static_assert(std::is_same_v<Value, std::string>);
    return JsonValue::Text(value);
  }
}
template <typename Item>
JsonValue PrintValue(const std::vector<Item>& items) {
  JsonValue list = JsonValue::List();
  for (const Item& item : items) list.items.push_back(PrintValue(item));
  return list;
}
template <typename Item>
JsonValue PrintValue(const std::map<std::string, Item>& items) {
  JsonValue object = JsonValue::Object();
  for (const auto& [name, item] : items) object.Set(name, PrintValue(item));
  return object;
}

inline JsonValue PrintValue(const std::vector<std::vector<uint32_t>>& tuples) {
  if (tuples.size() == 1) return PrintValue(tuples[0]);
  JsonValue list = JsonValue::List();
  for (const std::vector<uint32_t>& tuple : tuples) list.items.push_back(PrintValue(tuple));
  return list;
}

// Options of a row of a SettingTable.
struct Range {  // Both ends included.
  double min, max;
};
inline constexpr Range kPenalty = {0, 1e6};  // Of loss_l1 and loss_l2, wherever they are.
struct Bytes {  // A whole number or a text such as "4GiB", in this range.
  double min, max;
};
// The value in the digest, whatever the setting's value: the default when the first checkpoints
// were written.
struct HashedAs {
  JsonValue value;
};
struct OneOf {  // A text that is one of these words, or an enum of which only these are allowed.
  std::vector<std::string> words;
};
struct Checked {  // Values of several kinds: a description, and the test for one.
  std::string wanted;
  std::function<bool(const JsonValue& value)> fits;
};
struct OrWord {  // Words allowed in place of a value that is not a text.
  std::vector<std::string> words;
};
enum class Note : uint8_t {
  kRequired,
  kExpert,
  kNoDefault,            // Depends on the place, or cannot be written; `doc` says what holds.
  kPrintedUnlessDefault  // Newer than the first digests.
};
// The setting has an effect only if `member`, which needs a row above, has one of these values.
template <typename Value, typename Base>
struct Where {
  Where(Value Base::*of, std::vector<Value> wanted) : member(of), values(std::move(wanted)) {}
  Value Base::*member;
  std::vector<Value> values;
};

// The table of one section, filled one row at a time, each with its options:
//   table.Add("staleness_bound", &TrainSpec::staleness_bound, "In steps; ssp with 0 is sync.",
//             Where(&TrainSpec::mode, {Mode::kSsp}));
template <typename Struct>
class SettingTable {
 public:
  SettingTable(std::string name, std::string title, Struct defaults = {})
      : defaults_(std::make_shared<Struct>(std::move(defaults))) {
    section_.name = std::move(name);
    section_.title = std::move(title);
    section_.defaults = defaults_;
  }

  // `member` is a pointer to a member, or any other callable that returns a reference to the value
  // in a struct.
  template <typename Member, typename... Options>
  void Add(std::string key, Member member, std::string doc, Options... options) {
    using Value = std::remove_cvref_t<std::invoke_result_t<Member, Struct&>>;
    Setting setting;
    using Item = typename ItemOf<Value>::Type;
    setting.kind = KindOf<Item>();
    setting.is_list = kIsList<Value>;
    if constexpr (std::is_enum_v<Item>) {
      for (const auto& word : WordsOf(Item{})) setting.words.emplace_back(word.word);
    }
    setting.min = -kAnyNumber;
    setting.max = kAnyNumber;
    if constexpr (std::is_integral_v<Item>) {
      setting.min = static_cast<double>(std::numeric_limits<Item>::min());
      setting.max = static_cast<double>(std::numeric_limits<Item>::max());
    }
    setting.read = [member](const JsonValue& value, void* object, const Reading&) {
      ReadValue(value, &std::invoke(member, *static_cast<Struct*>(object)));
    };
    setting.print = [member](const void* object, Form) {
      return PrintValue(std::invoke(member, *static_cast<const Struct*>(object)));
    };
    AddRow(std::move(key), std::move(doc), &std::invoke(member, *defaults_), std::move(setting),
           options...);
  }

  // Adds a member that is a struct with its own section, or a list or a map by name of such
  // structs, each of which starts as the defaults of that section.
  template <typename Value, typename Base, typename... Options>
  void AddObject(std::string key, Value Base::*member, Section section, std::string doc,
                 Options... options) {
    Setting setting;
    setting.kind = ValueKind::kObject;
    setting.is_list = kIsList<Value>;
    setting.by_name = kIsByName<Value>;
    setting.shows_default = setting.is_list || setting.by_name;
    const auto of = setting.section = std::make_shared<const Section>(std::move(section));
    setting.read = [member, of](const JsonValue& json, void* object, const Reading& at) {
      Value& value = static_cast<Struct*>(object)->*member;
      if constexpr (kIsList<Value>) {
        using Item = typename ItemOf<Value>::Type;
        value.assign(json.items.size(), *static_cast<const Item*>(of->defaults.get()));
        for (size_t i = 0; i < value.size(); ++i) {
          ReadSection(*of, json.items[i], &value[i], at.Below(std::to_string(i)));
        }
      } else if constexpr (kIsByName<Value>) {
        using Item = typename Value::mapped_type;
        value.clear();
        for (size_t i = 0; i < json.items.size(); ++i) {
          const std::string& name = json.names[i];
          Item& item = value[name] = *static_cast<const Item*>(of->defaults.get());
          ReadSection(*of, json.items[i], &item, at.Below(name));
        }
      } else {
        ReadSection(*of, json, &value, at);
      }
    };
    setting.print = [member, of](const void* object, Form form) {
      const Value& value = static_cast<const Struct*>(object)->*member;
      if constexpr (kIsList<Value>) {
        JsonValue list = JsonValue::List();
        for (const auto& item : value) list.items.push_back(PrintSection(*of, &item, form));
        return list;
      } else if constexpr (kIsByName<Value>) {
        JsonValue object_by_name = JsonValue::Object();
        for (const auto& [name, item] : value) {
          object_by_name.Set(name, PrintSection(*of, &item, form));
        }
        return object_by_name;
      } else {
        return PrintSection(*of, &value, form);
      }
    };
    AddRow(std::move(key), std::move(doc), nullptr, std::move(setting), options...);
  }

  // Adds a value that no member holds in the written form; `read` and `print` convert it.
  template <typename... Options>
  void AddConverted(std::string key, ValueKind kind, std::string doc,
                    std::function<void(const JsonValue& value, Struct* object)> read,
                    std::function<JsonValue(const Struct& object)> print, Options... options) {
    Setting setting;
    setting.kind = kind;
    setting.read = [read = std::move(read)](const JsonValue& value, void* object, const Reading&) {
      read(value, static_cast<Struct*>(object));
    };
    setting.print = [print = std::move(print)](const void* object, Form) {
      return print(*static_cast<const Struct*>(object));
    };
    AddRow(std::move(key), std::move(doc), nullptr, std::move(setting), options...);
  }

  // Adds a key without a member: another spelling of other settings.
  template <typename... Options>
  void AddSpelling(std::string key, ValueKind kind, std::string doc,
                   std::function<void(const JsonValue& value, Struct* object)> read,
                   Options... options) {
    Setting setting;
    setting.kind = kind;
    setting.shows_default = false;
    setting.read = [read = std::move(read)](const JsonValue& value, void* object, const Reading&) {
      read(value, static_cast<Struct*>(object));
    };
    AddRow(std::move(key), std::move(doc), nullptr, std::move(setting), options...);
  }

  using Hook = std::function<void(const JsonValue& value, Struct* object)>;
  void BeforeReading(Hook hook) { section_.before_reading = Untyped(std::move(hook)); }
  void AfterReading(Hook hook) { section_.after_reading = Untyped(std::move(hook)); }

  void Appendix(std::string markdown) { section_.appendix = std::move(markdown); }

  Section Done() { return std::move(section_); }

 private:
  static std::function<void(const JsonValue& value, void* object)> Untyped(Hook hook) {
    return [hook = std::move(hook)](const JsonValue& value, void* object) {
      hook(value, static_cast<Struct*>(object));
    };
  }

  template <typename... Options>
  void AddRow(std::string key, std::string doc, const void* place, Setting setting,
              Options... options) {
    setting.key = std::move(key);
    setting.doc = std::move(doc);
    (Apply(std::move(options), &setting), ...);
    section_.settings.push_back(std::move(setting));
    places_.push_back(place);
  }

  void Apply(Range range, Setting* setting) {
    setting->min = range.min;
    setting->max = range.max;
  }
  void Apply(Bytes range, Setting* setting) {
    setting->kind = ValueKind::kBytes;
    Apply(Range{range.min, range.max}, setting);
  }
  void Apply(OneOf one_of, Setting* setting) {
    setting->kind = ValueKind::kChoice;
    setting->words = std::move(one_of.words);
  }
  void Apply(Checked checked, Setting* setting) {
    setting->wanted = std::move(checked.wanted);
    setting->fits = std::move(checked.fits);
  }
  void Apply(OrWord word, Setting* setting) { setting->words = std::move(word.words); }
  void Apply(Hashed hashed, Setting* setting) { setting->hashed = hashed; }
  void Apply(OnResume on_resume, Setting* setting) { setting->on_resume = on_resume; }
  void Apply(HashedAs as, Setting* setting) { setting->hashed_as = std::move(as.value); }
  void Apply(std::function<bool(const Struct&)> printed_if, Setting* setting) {
    setting->printed_if = [printed_if = std::move(printed_if)](const void* object) {
      return printed_if(*static_cast<const Struct*>(object));
    };
  }
  void Apply(Note note, Setting* setting) {
    if (note == Note::kExpert) setting->expert = true;
    if (note == Note::kRequired) setting->required = true;
    if (note == Note::kNoDefault || note == Note::kRequired) setting->shows_default = false;
    if (note != Note::kPrintedUnlessDefault) return;
    setting->printed_if = [defaults = defaults_, print = setting->print](const void* object) {
      return PrintJsonLine(print(object, Form::kWhole)) !=
             PrintJsonLine(print(defaults.get(), Form::kWhole));
    };
  }
  void Apply(Condition condition, Setting* setting) { setting->only_where = std::move(condition); }
  template <typename Value, typename Base>
  void Apply(const Where<Value, Base>& where, Setting* setting) {
    const void* place = &(defaults_.get()->*where.member);
    const auto found = std::find(places_.begin(), places_.end(), place);
    CHECK(found != places_.end()) << setting->key << " depends on a setting without a row above it";
    Condition& condition = setting->only_where.emplace();
    condition.key = section_.settings[static_cast<size_t>(found - places_.begin())].key;
    for (const auto& value : where.values) condition.values.push_back(PlainText(PrintValue(value)));
  }

  std::shared_ptr<Struct> defaults_;
  Section section_;
  std::vector<const void*> places_;  // For each setting: its member in *defaults_, or null.
};

}  // namespace hdps
