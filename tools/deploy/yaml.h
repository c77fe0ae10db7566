// Prints a tree of maps, lists and scalars as YAML that YAML 1.1 and 1.2 read alike.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hdps {

// A map in the order in which it was filled, a list, or a scalar.
class Yaml {
 public:
  using Entry = std::pair<std::string, Yaml>;

  static Yaml Map(std::vector<Entry> entries = {});
  static Yaml List(std::vector<Yaml> items = {});
  Yaml(std::string text) : value_(std::move(text)) {}    // NOLINT: a text stands for its scalar.
  Yaml(const char* text) : value_(std::string(text)) {}  // NOLINT
  Yaml(uint32_t number) : value_(uint64_t{number}) {}    // NOLINT
  Yaml(int number) : value_(static_cast<uint64_t>(number)) {}  // NOLINT: from 0 on.
  Yaml(bool value) : value_(value) {}                          // NOLINT

  // Appends to a map. Requires: this is one, and has no entry of that key.
  Yaml& Set(const std::string& key, Yaml value);
  // Appends to a list. Requires: this is one.
  Yaml& Add(Yaml item);

  // Prints one document. A text that a reader could take for something else is in double quotes,
  // and one of several lines is a literal block.
  std::string Print() const;

 private:
  struct Entries {
    std::vector<Entry> entries;
  };
  struct Items {
    std::vector<Yaml> items;
  };
  explicit Yaml(Entries entries) : value_(std::move(entries)) {}
  explicit Yaml(Items items) : value_(std::move(items)) {}

  // Prints what stands behind a key or a dash: a scalar on its line, or lines below it.
  void PrintBehind(size_t indent, bool in_list, std::string* out) const;
  void PrintEntries(size_t indent, bool first_is_indented, std::string* out) const;

  std::variant<std::string, uint64_t, bool, Entries, Items> value_;
};

}  // namespace hdps
