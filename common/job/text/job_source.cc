// Finds places in the text of a job, and applies overrides.
#include "common/job/text/job_source.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

namespace hdps {

namespace {

// Splits "a.b.2" into its parts.
std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (;;) {
    const size_t dot = path.find('.', from);
    parts.push_back(path.substr(from, dot == path.npos ? path.npos : dot - from));
    if (dot == path.npos) return parts;
    from = dot + 1;
  }
}

// Returns the index that names a list's item; the list's length + 1 if it is not one.
size_t ItemNumber(const JsonValue& list, const std::string& part) {
  size_t number = 0;
  const char* end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, number);
  const bool good = error == std::errc() && stop == end && number <= list.items.size();
  return good ? number : list.items.size() + 1;
}

const JsonValue* Child(const JsonValue& value, const std::string& part) {
  if (value.kind != JsonValue::Kind::kList) return value.Find(part);
  const size_t number = ItemNumber(value, part);
  return number < value.items.size() ? &value.items[number] : nullptr;
}

// Quotes the words of a list, so that [auc, hr@10] becomes ["auc", "hr@10"]. Numbers, true, false
// and null stay.
std::string WithQuotes(const std::string& text) {
  constexpr std::string_view kEnds = "[],{}:\" \t";
  std::string quoted;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {  // A quoted text is copied up to its end.
      size_t end = at + 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
      quoted += text.substr(at, end - at);
      at = end;
      continue;
    }
    const size_t end = std::min(text.find_first_of(kEnds, at), text.size());
    if (end == at) {
      quoted += text[at++];
      continue;
    }
    const std::string word = text.substr(at, end - at);
    quoted += ParseJson(word, "").ok() ? word : "\"" + word + "\"";
    at = end;
  }
  return quoted;
}

void MarkOverride(JsonValue* value) {
  value->line = kOverrideLine;
  for (JsonValue& item : value->items) MarkOverride(&item);
}

}  // namespace

Status Refuse(const JobSource& source, const std::string& path, const std::string& problem) {
  const JsonValue* at = &source.root;
  for (const std::string& part : PartsOf(path)) {
    const JsonValue* child = Child(*at, part);
    if (child == nullptr) break;
    at = child;
  }
  std::string place = source.origin;
  if (at->line == kOverrideLine) {
    place += ": --set";
  } else if (at->line != JsonValue::kNoLine) {
    place += ":" + std::to_string(at->line);
  }
  if (!path.empty()) place += ": " + path;
  return Status(Code::kInvalidArgument, place + ": " + problem);
}

Status ApplyOverride(const std::string& override_text, JobSource* source) {
  const size_t equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Status(Code::kInvalidArgument,
                  "--set: \"" + override_text +
                      "\" is not of the form key.path=value, such as train.mode=async");
  }
  const std::string path = override_text.substr(0, equals);
  const std::string text = override_text.substr(equals + 1);
  Result<JsonValue> parsed = ParseJson(text, "--set");
  if (!parsed.ok() && text.starts_with('[')) parsed = ParseJson(WithQuotes(text), "--set");
  JsonValue value = parsed.ok() ? *std::move(parsed) : JsonValue::Text(text);
  MarkOverride(&value);

  JsonValue* at = &source->root;
  for (const std::string& part : PartsOf(path)) {
    JsonValue fresh = JsonValue::Object();
    fresh.line = kOverrideLine;
    if (at->kind == JsonValue::Kind::kList) {
      const size_t number = ItemNumber(*at, part);
      if (number > at->items.size()) {
        return Refuse(*source, path,
                      "the list has " + std::to_string(at->items.size()) +
                          " items, which are named 0, 1, ...; \"" + part + "\" is none of them");
      }
      if (number == at->items.size()) at->items.push_back(std::move(fresh));
      at = &at->items[number];
    } else if (at->kind == JsonValue::Kind::kObject) {
      JsonValue* child = at->Find(part);
      at = child != nullptr ? child : &at->Set(part, std::move(fresh));
    } else {
      return Refuse(*source, path, "\"" + part + "\" lies in no object or list");
    }
  }
  *at = std::move(value);
  return {};
}

}  // namespace hdps
