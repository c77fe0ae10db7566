// A setting of the job file as one descriptor, and the sections that settings make up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/text/job_source.h"

namespace hdps {

// In place of an end of a range: any number.
inline constexpr double kAnyNumber = 1e300;

enum class ValueKind : uint8_t {
  kBool,
  kInteger,
  kNumber,
  kBytes,  // A whole number, or a text such as "4GiB".
  kText,
  kChoice,  // One of some words.
  kByName,  // An object of whole numbers under names that are free.
  // [2, 1], or a list of such: [[2, 1], [1, 4]]; or one of some words, where it has any.
  kTuples,
  kObject  // With the settings of a section.
};

// What a setting adds to the digest of a job.
enum class Hashed : uint8_t {
  kValue,    // Its value: another value trains another thing.
  kDefault,  // The default stands in its place, because the first checkpoints were written so.
  kNothing   // It changes no result, and is younger than the first checkpoints.
};

// Whether a job may go on from a checkpoint with another value, where its operator says so. Values
// that are not hashed may differ in any case.
enum class OnResume : uint8_t { kStays, kMayChange };

// For people and checkpoints, or for the digest of a job.
enum class Form : uint8_t { kWhole, kDigest };

// "train" and "mode" as "train.mode".
std::string PathBelow(const std::string& path, const std::string& key);
// A value in a sentence: texts without quotes.
std::string PlainText(const JsonValue& value);

// A setting has an effect where the setting `key`, which stands before it in the same section, has
// one of these values.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

struct Section;

// Where a value stands that is being read, and where warnings about it go.
struct Reading {
  std::string path;
  std::vector<std::string>* warnings;
  Reading Below(const std::string& key) const { return {PathBelow(path, key), warnings}; }
};

// Everything about one key of the job file. The functions know the member of the section's struct
// that holds the value; `object` points to such a struct.
struct Setting {
  std::string key;
  ValueKind kind = ValueKind::kText;
  bool is_list = false;            // Of values of that kind.
  std::string doc;                 // What it means, in a line of docs/job_file.md.
  std::vector<std::string> words;  // kChoice, kTuples.
  double min = 0, max = 0;         // All numbers; both included.
  // Where values are of several kinds: which fit, in place of `kind`, and in words.
  std::function<bool(const JsonValue& value)> fits;
  std::string wanted;
  std::shared_ptr<const Section> section;  // kObject: the settings in there.
  std::optional<Condition> only_where;     // Elsewhere it is ignored with a warning.
  Hashed hashed = Hashed::kValue;
  OnResume on_resume = OnResume::kStays;  // Of an object: of all below it.
  std::optional<JsonValue> hashed_as;     // Stands in the digest: an older default than today's.
  bool required = false;
  bool expert = false;        // Few need it: it stands apart in the documentation.
  bool shows_default = true;  // Else the default depends on the place; see `doc`.
  // Reads a value that passed CheckSection.
  std::function<void(const JsonValue& value, void* object, const Reading& at)> read;
  // Null: the setting has no value of its own, it is another way to write what others print.
  std::function<JsonValue(const void* object, Form form)> print;
  std::function<bool(const void* object)> printed_if;  // Null: always.
};

// The settings of one object of the job file, such as "train", in the order in which they are read,
// printed and documented.
struct Section {
  std::string name;
  std::string title;     // Of its table in docs/job_file.md.
  std::string appendix;  // Markdown behind that table.
  std::vector<Setting> settings;
  std::shared_ptr<const void> defaults;  // The struct as it is before anything is read.
  // Run before and after the settings of an object are read; null: nothing is done.
  std::function<void(const JsonValue&value, void*object)> before_reading, after_reading;

  const Setting* Find(std::string_view key) const;
};

// Whether the setting has an effect in `object`, a struct of its section.
bool HasEffect(const Section& section, const Setting& setting, const void* object);
// "kind is adam or adamw".
std::string ConditionText(const Condition& condition);

// What a value of the setting has to be, such as "a whole number from 1 to 65536".
std::string WantedText(const Setting& setting);
// Whole numbers without ".0".
std::string NumberText(double value);

// Checks the object at `path` and all below it: every key known, of its type, in its range, none
// missing that is required. After it the object can be read without asking.
Status CheckSection(const JobSource& source, const Section& section, const JsonValue& object,
                    const std::string& path);

// Fills `*to`, a struct of the section. Settings without effect are left as they are and named in
// the warnings.
void ReadSection(const Section& section, const JsonValue& object, void* to, const Reading& at);

// The settings that have an effect in `from`, a struct of the section.
JsonValue PrintSection(const Section& section, const void* from, Form form);

// The value of a kBytes setting: a whole number, or a text as of ParseByteCount; nothing when it is
// neither.
std::optional<uint64_t> BytesIn(const JsonValue& value);

}  // namespace hdps
