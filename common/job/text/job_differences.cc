// Compares the digest forms of two jobs along the descriptors of their settings.
#include "common/job/job_differences.h"

#include <algorithm>

#include "common/job/job_file.h"
#include "common/job/job_registry.h"
#include "common/job/spec/model_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/job_text.h"

namespace hdps {

namespace {

// Formats a value for a sentence, shortened.
std::string Shown(const JsonValue* value) {
  constexpr size_t kShownBytesMax = 60;
  if (value == nullptr) return "not given";
  if (value->kind == JsonValue::Kind::kNumber) return NumberText(value->number);
  std::string text = PlainText(*value);
  if (text.empty()) return "\"\"";
  if (text.size() > kShownBytesMax) text = text.substr(0, kShownBytesMax) + "...";
  return text;
}

// Returns the value of a setting that an object does not print; none if it depends on the place.
std::optional<JsonValue> UnprintedValue(const Section& section, const Setting& setting) {
  if (setting.kind == ValueKind::kObject && !setting.is_list) {
    return PrintSection(*setting.section, setting.section->defaults.get(), Form::kDigest);
  }
  if (!setting.shows_default || !setting.print) return std::nullopt;
  return setting.print(section.defaults.get(), Form::kDigest);
}

std::string NameOf(const JsonValue& item) {
  const JsonValue* name = item.Find("name");
  return name == nullptr ? "" : name->text;
}

class Comparison {
 public:
  std::vector<SettingDifference> Take() { return std::move(found_); }

  struct Place {
    std::string path, item;
    bool may_change = false;
  };

  void Objects(const Section& section, const JsonValue& here, const JsonValue& there,
               const Place& place) {
    for (const Setting& setting : section.settings) {
      const JsonValue* a = here.Find(setting.key);
      const JsonValue* b = there.Find(setting.key);
      if (a == nullptr && b == nullptr) continue;
      const bool one_alone = a == nullptr || b == nullptr;
      if (one_alone && IsTold(section, setting, here, there)) continue;
      const std::optional<JsonValue> unprinted = UnprintedValue(section, setting);
      if (a == nullptr && unprinted) a = &*unprinted;
      if (b == nullptr && unprinted) b = &*unprinted;
      Values(setting, a, b,
             {PathBelow(place.path, setting.key), place.item,
              place.may_change || setting.on_resume == OnResume::kMayChange});
    }
  }

 private:
  // Is true if the setting appears in only one of the two because of another setting, which differs
  // and is reported.
  static bool IsTold(const Section& section, const Setting& setting, const JsonValue& here,
                     const JsonValue& there) {
    if (!setting.only_where.has_value()) return false;
    const std::string& key = section.Find(setting.only_where->key)->key;
    const JsonValue *a = here.Find(key), *b = there.Find(key);
    return a == nullptr || b == nullptr || PrintJsonLine(*a) != PrintJsonLine(*b);
  }

  void Values(const Setting& setting, const JsonValue* a, const JsonValue* b, const Place& place) {
    if (a != nullptr && b != nullptr) {
      if (PrintJsonLine(*a) == PrintJsonLine(*b)) return;
      if (setting.kind == ValueKind::kObject && !setting.is_list) {
        return Objects(*setting.section, *a, *b, place);
      }
      if (setting.kind == ValueKind::kObject) return Lists(setting, *a, *b, place);
    }
    found_.push_back({place.path, place.item, Shown(a), Shown(b), place.may_change});
  }

  void Lists(const Setting& setting, const JsonValue& a, const JsonValue& b, const Place& place) {
    const size_t both = std::min(a.items.size(), b.items.size());
    for (size_t i = 0; i < both; ++i) {
      Objects(*setting.section, a.items[i], b.items[i],
              {PathBelow(place.path, std::to_string(i)), NameOf(a.items[i]), place.may_change});
    }
    if (a.items.size() == b.items.size()) return;
    const auto count = [](const JsonValue& list) {
      return "a list of " + std::to_string(list.items.size());
    };
    found_.push_back({place.path, place.item, count(a), count(b), place.may_change});
  }

  std::vector<SettingDifference> found_;
};

}  // namespace

std::string SettingDifference::Place() const {
  return item.empty() ? path : path + " (" + item + ")";
}

Result<std::vector<SettingDifference>> DifferencesFrom(const Job& job, const std::string& printed,
                                                       JobPart part) {
  const JobRegistry& registry = RegistryOf(job.model);
  HDPS_ASSIGN_OR_RETURN(const Job other, ParseJob(printed, "the job", {}, registry));
  Comparison comparison;
  comparison.Objects(JobSection(registry), FormOf(job, part), FormOf(other, part), {});
  return comparison.Take();
}

std::string TellDifferences(std::span<const SettingDifference> differences) {
  constexpr size_t kToldMax = 3;
  std::string text;
  for (const SettingDifference& one : differences.first(std::min(differences.size(), kToldMax))) {
    text += (text.empty() ? "" : "; ") + one.Place() + " is " + one.here +
            ", the checkpoint's is " + one.there;
  }
  if (differences.size() <= kToldMax) return text;
  return text + "; and " + std::to_string(differences.size() - kToldMax) + " more";
}

bool TablesFit(const Job& job, const std::string& printed, uint64_t tables_digest) {
  if (TablesDigest(job) == tables_digest) return true;
  const auto differences = DifferencesFrom(job, printed, JobPart::kTables);
  return differences.ok() && !differences->empty() &&
         std::ranges::all_of(*differences, &SettingDifference::may_change);
}

}  // namespace hdps
