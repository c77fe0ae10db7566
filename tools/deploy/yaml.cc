// Decides which texts stand without quotes, and lays out nested maps and lists.
#include "tools/deploy/yaml.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace hdps {
namespace {

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// Words of YAML 1.1 that mean a truth value or nothing, in lower case.
constexpr std::array kWords = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};

// Is true if every reader takes the text without quotes for this text. Numbers begin with no
// letter.
bool IsPlain(std::string_view text) {
  if (text.empty() || (!IsLetter(text.front()) && text.front() != '/')) return false;
  const auto plain = [](char c) {
    return IsLetter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' ||
           c == '-' || c == '_' || c == '/';
  };
  if (!std::ranges::all_of(text, plain)) return false;
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(kWords, lower) == kWords.end();
}

std::string Quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += "\\x";
      quoted += kHex[byte >> 4];
      quoted += kHex[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// Is true if a literal block can hold the text: lines that end in '\n', of printable characters,
// of which the first begins with no blank.
bool FitsBlock(std::string_view text) {
  if (text.find('\n') == std::string_view::npos || text.back() != '\n') return false;
  if (text.ends_with("\n\n") || text.front() == '\n') return false;
  if (text.front() == ' ' || text.front() == '\t') return false;
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\n' || c == '\t' || (byte >= 0x20 && byte < 0x7f);
  });
}

void PrintBlock(std::string_view text, size_t indent, std::string* out) {
  *out += " |\n";
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end > 0) *out += std::string(indent, ' ');
    *out += text.substr(0, end + 1);
    text.remove_prefix(end + 1);
  }
}

std::string Scalar(const std::string& text) { return IsPlain(text) ? text : Quoted(text); }

}  // namespace

Yaml Yaml::Map(std::vector<Entry> entries) { return Yaml(Entries{std::move(entries)}); }
Yaml Yaml::List(std::vector<Yaml> items) { return Yaml(Items{std::move(items)}); }

Yaml& Yaml::Set(const std::string& key, Yaml value) {
  auto* const map = std::get_if<Entries>(&value_);
  CHECK(map != nullptr) << key;
  for (const Entry& entry : map->entries) CHECK_NE(entry.first, key);
  map->entries.emplace_back(key, std::move(value));
  return *this;
}

Yaml& Yaml::Add(Yaml item) {
  auto* const list = std::get_if<Items>(&value_);
  CHECK(list != nullptr);
  list->items.push_back(std::move(item));
  return *this;
}

std::string Yaml::Print() const {
  std::string out;
  if (std::holds_alternative<Entries>(value_)) {
    PrintEntries(0, false, &out);
  } else {
    PrintBehind(0, false, &out);
  }
  return out;
}

void Yaml::PrintEntries(size_t indent, bool first_is_indented, std::string* out) const {
  for (const auto& [key, value] : std::get<Entries>(value_).entries) {
    if (!first_is_indented) *out += std::string(indent, ' ');
    first_is_indented = false;
    *out += Scalar(key) + ":";
    value.PrintBehind(indent + 2, false, out);
  }
}

void Yaml::PrintBehind(size_t indent, bool in_list, std::string* out) const {
  if (const auto* map = std::get_if<Entries>(&value_)) {
    if (map->entries.empty()) {
      *out += " {}\n";
      return;
    }
    *out += in_list ? " " : "\n";
    PrintEntries(indent, in_list, out);
  } else if (const auto* list = std::get_if<Items>(&value_)) {
    if (list->items.empty()) {
      *out += " []\n";
      return;
    }
    *out += "\n";
    for (const Yaml& item : list->items) {
      *out += std::string(indent, ' ') + "-";
      item.PrintBehind(indent + 2, true, out);
    }
  } else if (const auto* text = std::get_if<std::string>(&value_)) {
    if (!text->empty() && FitsBlock(*text)) return PrintBlock(*text, indent, out);
    *out += " " + Scalar(*text) + "\n";
  } else if (const auto* number = std::get_if<uint64_t>(&value_)) {
    *out += " " + std::to_string(*number) + "\n";
  } else {
    *out += std::get<bool>(value_) ? " true\n" : " false\n";
  }
}

}  // namespace hdps
