// Checks and adds the own optimizers of a program.
#include "common/job/optimizers/optimizer_registry.h"

#include <algorithm>

#include "common/job/optimizers/optimizers.h"

namespace hdps {

namespace {

// Returns why a setting conflicts with one of another optimizer; empty if it does not. Own
// optimizers may use the members that no built-in one has, each under its own name.
std::string Conflict(const OptimizerSetting& setting, const OptimizerSetting& other,
                     bool other_is_own) {
  const bool same_name = std::string_view(setting.name) == other.name;
  const bool same_value = setting.value == other.value;
  if (same_name && (!same_value || setting.min != other.min || setting.max != other.max)) {
    return "has another range or value";
  }
  if (same_value && !same_name && !other_is_own) {
    return "uses the value of \"" + std::string(other.name) + "\"";
  }
  return "";
}

std::string SettingProblem(const OptimizerRecord& record, const OptimizerSetting& setting) {
  const std::string shown = "\"" + std::string(setting.name) + "\"";
  if (std::string_view(setting.name).empty() || std::string_view(setting.name) == "kind") {
    return shown + " cannot name a setting; choose another word";
  }
  if (!(setting.min <= setting.default_value && setting.default_value <= setting.max)) {
    return "the default of " + shown + " is not in its range";
  }
  for (const OptimizerSetting& other : record.settings) {
    if (&other == &setting) continue;
    if (std::string_view(other.name) == setting.name || other.value == setting.value) {
      return shown + " and \"" + other.name + "\" have the same word or the same value";
    }
  }
  return "";
}

}  // namespace

const OptimizerRecord& DefaultOptimizer() { return RecordOf(OptimizerKind::kAdagrad); }
const OptimizerRecord& PlainDescent() { return RecordOf(OptimizerKind::kSgd); }

OptimizerRegistry::OptimizerRegistry() {
  for (const OptimizerRecord& record : kOptimizers) records_.push_back(&record);
}

Status OptimizerRegistry::Add(const OptimizerRecord* record) {
  const auto mistake = [record](const std::string& what) {
    return Status(Code::kInvalidArgument,
                  "optimizer \"" + std::string(record->name) + "\": " + what);
  };
  if (std::string_view(record->name).empty() || Find(record->name) != nullptr) {
    return mistake("names are not empty and all different");
  }
  if (record->kind != OptimizerKind::kOwn || !record->is_own()) {
    return mistake("it has no loops; take the record that OwnOptimizer<Rule>() makes");
  }
  for (const OptimizerSetting& setting : record->settings) {
    const std::string problem = SettingProblem(*record, setting);
    if (!problem.empty()) return mistake(problem);
    for (const OptimizerRecord* other : records_) {
      for (const OptimizerSetting& theirs : other->settings) {
        const std::string conflict = Conflict(setting, theirs, other->is_own());
        if (conflict.empty()) continue;
        return mistake("\"" + std::string(setting.name) + "\" " + conflict + " in \"" +
                       other->name +
                       "\"; choose another word, or one of own_a to own_d as its "
                       "value");
      }
    }
  }
  records_.push_back(record);
  return {};
}

const OptimizerRecord* OptimizerRegistry::Find(std::string_view name) const {
  const auto found = std::ranges::find_if(
      records_, [name](const OptimizerRecord* record) { return record->name == name; });
  return found == records_.end() ? nullptr : *found;
}

std::vector<std::string> OptimizerRegistry::names() const {
  std::vector<std::string> names;
  for (const OptimizerRecord* record : records_) names.emplace_back(record->name);
  return names;
}

}  // namespace hdps
