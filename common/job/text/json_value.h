// A JSON text as a tree that remembers line numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace hdps {

// Invariant: a kObject has as many names as items, all different. Only kList and kObject have
// items.
struct JsonValue {
  enum class Kind : uint8_t { kNull, kBool, kInteger, kNumber, kText, kList, kObject };
  // The line of a value that was not read from a file.
  static constexpr int kNoLine = 0;

  Kind kind = Kind::kNull;
  int line = kNoLine;
  bool boolean = false;
  bool negative = false;   // kInteger: the sign.
  uint64_t magnitude = 0;  // kInteger: the absolute value.
  double number = 0;       // kInteger and kNumber; always finite.
  std::string text = {};
  std::vector<JsonValue> items = {};
  std::vector<std::string> names = {};

  // Returns the member of that name; null if there is none or this is not an object.
  const JsonValue* Find(std::string_view name) const;
  JsonValue* Find(std::string_view name);
  // Appends a member, or replaces the one of that name.
  JsonValue& Set(const std::string& name, JsonValue value);
  void Erase(std::string_view name);

  static JsonValue Object();
  static JsonValue List();
  static JsonValue Bool(bool value);
  static JsonValue Integer(uint64_t value);
  static JsonValue Signed(int64_t value);
  static JsonValue Number(double value);
  // Returns the double that prints as the shortest text that reads back as `value`: 0.05, not
  // 0.0500000007.
  static JsonValue Float(float value);
  static JsonValue Text(std::string value);
};

// Parses a JSON text. Errors: kInvalidArgument names ORIGIN:LINE:COLUMN and what is wrong there. A
// name that occurs twice in an object, and nesting deeper than 64, are refused.
Result<JsonValue> ParseJson(std::string_view text, const std::string& origin);
// Prints with an indentation of two blanks, and lists of plain values on one line.
std::string PrintJson(const JsonValue& value);
// Prints on one line, for messages.
std::string PrintJsonLine(const JsonValue& value);

}  // namespace hdps
