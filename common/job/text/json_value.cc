// Builds the tree with nlohmann's parser, and prints it.
#include "common/job/text/json_value.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

namespace hdps {

const JsonValue* JsonValue::Find(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? nullptr : &items[static_cast<size_t>(found - names.begin())];
}

JsonValue* JsonValue::Find(std::string_view name) {
  return const_cast<JsonValue*>(std::as_const(*this).Find(name));
}

JsonValue& JsonValue::Set(const std::string& name, JsonValue value) {
  if (JsonValue* old = Find(name)) return *old = std::move(value);
  names.push_back(name);
  return items.emplace_back(std::move(value));
}

void JsonValue::Erase(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return;
  items.erase(items.begin() + (found - names.begin()));
  names.erase(found);
}

JsonValue JsonValue::Object() { return {.kind = Kind::kObject}; }
JsonValue JsonValue::List() { return {.kind = Kind::kList}; }
JsonValue JsonValue::Bool(bool value) { return {.kind = Kind::kBool, .boolean = value}; }
JsonValue JsonValue::Integer(uint64_t value) {
  return {.kind = Kind::kInteger, .magnitude = value, .number = static_cast<double>(value)};
}
JsonValue JsonValue::Signed(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  return {.kind = Kind::kInteger,
          .negative = value < 0,
          .magnitude = value < 0 ? -bits : bits,
          .number = static_cast<double>(value)};
}
JsonValue JsonValue::Number(double value) { return {.kind = Kind::kNumber, .number = value}; }
JsonValue JsonValue::Text(std::string value) {
  return {.kind = Kind::kText, .text = std::move(value)};
}

JsonValue JsonValue::Float(float value) {
  char text[48] = {};
  std::to_chars(text, text + sizeof(text) - 1, value);
  return Number(std::strtod(text, nullptr));
}

namespace {

// The position of the reader.
struct Cursor {
  int line = 1;  // Line of the character that was read last.
  int column = 0;
  bool newline = false;  // That character ended its line.
};

// Passes the text to the reader one character at a time and counts lines.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Cursor* cursor) : at_(at), cursor_(cursor) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (cursor_->newline) {
      ++cursor_->line;
      cursor_->column = 0;
    }
    cursor_->newline = *at_ == '\n';
    ++cursor_->column;
    ++at_;
    return *this;
  }
  [[maybe_unused]] friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ != b.at_;
  }

 private:
  const char* at_;
  Cursor* cursor_;
};

// Builds the tree from the reader's events.
//
// Invariant: open_ is the path from the root to the list or object that is being read.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(const Cursor* cursor, std::string origin)
      : cursor_(cursor), origin_(std::move(origin)) {}

  bool null() override { return Add(JsonValue()); }
  bool boolean(bool value) override { return Add(JsonValue::Bool(value)); }
  bool number_integer(int64_t value) override { return Add(JsonValue::Signed(value)); }
  bool number_unsigned(uint64_t value) override { return Add(JsonValue::Integer(value)); }
  bool number_float(double value, const std::string&) override {
    return Add(JsonValue::Number(value));
  }
  bool string(std::string& value) override { return Add(JsonValue::Text(std::move(value))); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(size_t) override { return Add(JsonValue::Object()); }
  bool start_array(size_t) override { return Add(JsonValue::List()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    if (!names_.back().insert(name).second) return Fail("\"" + name + "\" is given twice");
    open_.back()->names.push_back(std::move(name));
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& error) override {
    std::string what = error.what();
    // "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error ..."
    const size_t colon = what.find(": ");
    if (colon != std::string::npos) what = what.substr(colon + 2);
    return Fail("this is not JSON: " + what);
  }

  JsonValue& root() { return root_; }
  const Status& status() const { return status_; }

 private:
  static constexpr size_t kDepthMax = 64;

  bool Fail(const std::string& problem) {
    if (status_.ok()) {
      status_ =
          Status(Code::kInvalidArgument, origin_ + ":" + std::to_string(cursor_->line) + ":" +
                                             std::to_string(cursor_->column) + ": " + problem);
    }
    return false;
  }

  bool Add(JsonValue value) {
    value.line = cursor_->line;
    const bool opens =
        value.kind == JsonValue::Kind::kList || value.kind == JsonValue::Kind::kObject;
    JsonValue* added = &root_;
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      added = &open_.back()->items.emplace_back(std::move(value));
    }
    if (!opens) return true;
    if (open_.size() == kDepthMax) return Fail("this is nested too deeply");
    open_.push_back(added);
    names_.emplace_back();
    return true;
  }
  bool Close() {
    open_.pop_back();
    names_.pop_back();
    return true;
  }

  const Cursor* cursor_;
  const std::string origin_;
  JsonValue root_;
  std::vector<JsonValue*> open_;
  // For each entry of open_: the names seen so far.
  std::vector<std::unordered_set<std::string>> names_;
  Status status_;
};

bool IsPlain(const JsonValue& value) {
  return value.kind != JsonValue::Kind::kList && value.kind != JsonValue::Kind::kObject;
}

void PrintPlain(const JsonValue& value, std::string* out) {
  using Json = nlohmann::json;
  constexpr auto kReplace = Json::error_handler_t::replace;
  switch (value.kind) {
    case JsonValue::Kind::kBool:
      *out += value.boolean ? "true" : "false";
      break;
    case JsonValue::Kind::kInteger:
      *out += (value.negative ? "-" : "") + std::to_string(value.magnitude);
      break;
    case JsonValue::Kind::kNumber:
      *out += Json(value.number).dump();
      break;
    case JsonValue::Kind::kText:
      *out += Json(value.text).dump(-1, ' ', false, kReplace);
      break;
    default:
      *out += "null";
  }
}

// A negative `indent` prints on one line.
void Print(const JsonValue& value, int indent, std::string* out) {
  if (IsPlain(value)) return PrintPlain(value, out);
  const bool object = value.kind == JsonValue::Kind::kObject;
  const bool flat = indent < 0 || value.items.empty() ||
                    (!object && std::all_of(value.items.begin(), value.items.end(), IsPlain));
  *out += object ? "{" : "[";
  for (size_t i = 0; i < value.items.size(); ++i) {
    if (i > 0) *out += flat ? ", " : ",";
    if (!flat) *out += "\n" + std::string(static_cast<size_t>(indent) + 2, ' ');
    if (object) {
      PrintPlain(JsonValue::Text(value.names[i]), out);
      *out += ": ";
    }
    Print(value.items[i], indent < 0 ? indent : indent + 2, out);
  }
  if (!flat) *out += "\n" + std::string(static_cast<size_t>(indent), ' ');
  *out += object ? "}" : "]";
}

}  // namespace

Result<JsonValue> ParseJson(std::string_view text, const std::string& origin) {
  Cursor cursor;
  TreeBuilder builder(&cursor, origin);
  const bool whole =
      nlohmann::json::sax_parse(CountingIterator(text.data(), &cursor),
                                CountingIterator(text.data() + text.size(), &cursor), &builder);
  if (!builder.status().ok()) return builder.status();
  if (!whole) return Status(Code::kInvalidArgument, origin + ": this is not JSON");
  return std::move(builder.root());
}

std::string PrintJson(const JsonValue& value) {
  std::string out;
  Print(value, 0, &out);
  return out + "\n";
}

std::string PrintJsonLine(const JsonValue& value) {
  std::string out;
  Print(value, -1, &out);
  return out;
}

}  // namespace hdps
