// The one table of all keys a job file may hold: type, range, default, where they count, meaning.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/job/layers/layer_record.h"
#include "common/job/text/json_value.h"

namespace hdps {

enum class KeyKind : uint8_t {
  kBool,
  kInteger,
  kNumber,
  kBytes,  // An integer, or a text such as "4GiB".
  kText,
  kChoice,    // One text of `of`, a list like "sync, async, ssp" in the order of the enum.
  kTexts,     // A list of texts.
  kIntegers,  // A list of integers, each in the range.
  kNumbers,   // A list of numbers.
  kObject,    // An object of the section `of`.
  kObjects    // A list of such.
};

struct KeySpec {
  std::string_view section;  // The object it lies in, such as "train"; "job" is the whole.
  std::string_view key;
  KeyKind kind;
  std::string_view of;            // kChoice, kObject, kObjects.
  double min, max;                // kInteger, kNumber, kIntegers; both included.
  std::string_view default_text;  // As JSON; empty: depends on the place, see `doc`.
  // "mode=ssp", "kind=adam|adamw", "data.format=csv": where the key counts; elsewhere it is ignored
  // with a warning. Without a dot the other key lies in the same object, otherwise the path is from
  // the root. Empty: everywhere.
  std::string_view only_if;
  std::string_view doc;
};

// All keys of a job whose layers are of some kinds.
class KeyTable {
 public:
  explicit KeyTable(const LayerRegistry& layers);
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  const KeySpec* Find(std::string_view section, std::string_view key) const;  // Null: none.
  // In the order in which docs/job_file.md and PrintJob show them.
  const std::vector<KeySpec>& keys() const { return keys_; }

 private:
  std::deque<std::string> texts_;  // What the keys of layers point to.
  std::vector<KeySpec> keys_;
};

// The keys of jobs of built-in layers.
std::span<const KeySpec> JobKeys();

// The choices of a key, "sync, async, ssp" as three texts.
std::vector<std::string> ChoicesOf(std::string_view of);

// The value of a kBytes key: a whole number, or a text as of ParseByteCount; nothing when it is
// neither.
std::optional<uint64_t> BytesIn(const JsonValue& value);

// A job text before it is understood: where it came from, and its tree.
struct JobSource {
  std::string origin;
  JsonValue root;
};

// kInvalidArgument: "census.json:12: train.mode: PROBLEM". The line is that of the deepest part of
// the dotted `path` that was written; a value that came by an override is placed at "--set".
Status Refuse(const JobSource& source, const std::string& path, const std::string& problem);

// Sets "train.mode=async" (the value as JSON, else as text) in the tree. A list's items are named
// by their number, and their count appends.
Status ApplyOverride(const std::string& override_text, JobSource* source);

// Every key known, of its type, in its range; after it the tree can be read without asking. Keys
// that do not count where they stand are named in `warnings`.
Status CheckKeys(const JobSource& source, const KeyTable& keys, std::vector<std::string>* warnings);

// Takes the keys out that do not count where they stand.
void DropIgnoredKeys(const KeyTable& keys, JsonValue* root);

// The table as Markdown: docs/job_file.md holds exactly this between two marks.
std::string PrintKeyReference();
// And the kinds of layers, between two others.
std::string PrintLayerReference(const LayerRegistry& layers);

}  // namespace hdps
