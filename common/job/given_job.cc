// Prints the tree of a job's text, and compares it with the printed job.
#include "common/job/given_job.h"

#include <cstddef>
#include <string_view>

#include "common/job/text/job_source.h"

namespace hdps {
namespace {

bool IsLeaf(const JsonValue& value) {
  if (value.kind == JsonValue::Kind::kObject) return value.items.empty();
  if (value.kind != JsonValue::Kind::kList) return true;
  for (const JsonValue& item : value.items) {
    if (item.kind == JsonValue::Kind::kObject) return false;
  }
  return true;
}

class Walk {
 public:
  Walk(const std::string& overrides_from, std::vector<SettingOrigin>* found)
      : overrides_from_(overrides_from), found_(found) {}

  // `given`: what the text has at this place; null: nothing. `from`: the origin of what is made of
  // a value above it; empty: it is a default.
  void Visit(const JsonValue& printed, const JsonValue* given, const std::string& path,
             const std::string& from) {
    if (IsLeaf(printed)) {
      const std::string own = given != nullptr ? PlaceOf(*given) : from;
      const bool text = printed.kind == JsonValue::Kind::kText;
      found_->push_back(
          {path, text ? printed.text : PrintJsonLine(printed), own.empty() ? "default" : own});
      return;
    }
    for (size_t i = 0; i < printed.items.size(); ++i) {
      const bool list = printed.kind == JsonValue::Kind::kList;
      const std::string name = list ? std::to_string(i) : printed.names[i];
      const JsonValue* below = given == nullptr ? nullptr : ItemOf(*given, name, i);
      const std::string where = path.empty() ? name : path + "." + name;
      // A recipe makes all of the model of the few words that are given.
      const bool made = path.empty() && name == "model" && below != nullptr;
      Visit(printed.items[i], below, where, made ? PlaceOf(*below) : from);
    }
  }

 private:
  static const JsonValue* ItemOf(const JsonValue& given, std::string_view name, size_t index) {
    if (given.kind != JsonValue::Kind::kList) return given.Find(name);
    return index < given.items.size() ? &given.items[index] : nullptr;
  }
  std::string PlaceOf(const JsonValue& given) const {
    return IsOverride(given) ? overrides_from_ : "file";
  }

  const std::string& overrides_from_;
  std::vector<SettingOrigin>* const found_;
};

}  // namespace

Result<std::string> GivenJob(const WrittenJob& text, const std::vector<std::string>& overrides) {
  JobSource source{text.origin, {}};
  HDPS_ASSIGN_OR_RETURN(source.root, ParseJson(text.text, text.origin));
  for (const std::string& one : overrides) HDPS_RETURN_IF_ERROR(ApplyOverride(one, &source));
  return PrintJson(source.root) + "\n";
}

Result<std::vector<SettingOrigin>> OriginsOf(const Job& job, const WrittenJob& text,
                                             const std::vector<std::string>& overrides,
                                             const std::string& overrides_from) {
  HDPS_ASSIGN_OR_RETURN(const JsonValue printed, ParseJson(PrintJob(job), "the job"));
  JobSource source{text.origin, {}};
  HDPS_ASSIGN_OR_RETURN(source.root, ParseJson(text.text, text.origin));
  for (const std::string& one : overrides) HDPS_RETURN_IF_ERROR(ApplyOverride(one, &source));
  std::vector<SettingOrigin> found;
  Walk(overrides_from, &found).Visit(printed, &source.root, "", "");
  return found;
}

}  // namespace hdps
