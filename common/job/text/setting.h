// Describes a setting of the job file, and the sections that settings form.
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

// Stands for a missing end of a range.
inline constexpr double kAnyNumber = 1e300;

enum class ValueKind : uint8_t {
  kBool,
  kInteger,
  kNumber,
  kBytes,  // A whole number, or a text such as "4GiB".
  kText,
  kChoice,  // One of several words.
  kByName,  // An object of whole numbers with free names.
  // [2, 1], or a list such as [[2, 1], [1, 4]]; or one of several words, if there are any.
  kTuples,
  kObject  // With the settings of a section.
};

// The part of a setting in the digest of a job.
enum class Hashed : uint8_t {
  kValue,    // Its value, because another value trains something else.
  kDefault,  // Its default whatever the value, because the first checkpoints were written so.
  kNothing   // Nothing: it changes no result, and is newer than the first checkpoints.
};

// Says if a job may resume from a checkpoint with another value, if the operator allows it. Values
// that are not hashed may always differ.
enum class OnResume : uint8_t { kStays, kMayChange };

// The form of a printed job: for people and checkpoints, or for its digest.
enum class Form : uint8_t { kWhole, kDigest };

struct Setting;
// Returns what follows a setting in the path of those below it: "[]" of a list, "{}" of objects by
// name, else nothing.
std::string ItemMark(const Setting& setting);
// Joins "train" and "mode" to "train.mode".
std::string PathBelow(const std::string& path, const std::string& key);
// Formats a value for a sentence: texts without quotes.
std::string PlainText(const JsonValue& value);

// The condition that the setting `key`, which comes earlier in the same section, has one of these
// values. A setting has an effect only while its condition holds.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

struct Section;

// The place of a value that is being read, and the list that takes warnings.
struct Reading {
  std::string path;
  std::vector<std::string>* warnings;
  Reading Below(const std::string& key) const { return {PathBelow(path, key), warnings}; }
};

// Describes one key of the job file. The functions know the member of the section's struct that
// holds the value; `object` points to such a struct.
struct Setting {
  std::string key;
  ValueKind kind = ValueKind::kText;
  bool is_list = false;            // A list of values of that kind.
  bool by_name = false;            // kObject: an object of such objects, with free names.
  std::string doc;                 // Its meaning, in a line of docs/job_file.md.
  std::vector<std::string> words;  // kChoice, kTuples.
  double min = 0, max = 0;         // For all numbers; both included.
  // For values of several kinds, instead of `kind`: `fits` checks a value, and `wanted` says in
  // words what fits.
  std::function<bool(const JsonValue& value)> fits;
  std::string wanted;
  std::shared_ptr<const Section> section;  // kObject: the settings in it.
  std::optional<Condition> only_where;     // Otherwise it is ignored with a warning.
  Hashed hashed = Hashed::kValue;
  OnResume on_resume = OnResume::kStays;  // For an object, applies to everything below it.
  // Replaces the value in the digest: a default of earlier versions.
  std::optional<JsonValue> hashed_as;
  bool required = false;
  bool expert = false;        // Rarely needed: documented separately.
  bool shows_default = true;  // If false, the default depends on the place; see `doc`.
  // Reads a value that passed CheckSection().
  std::function<void(const JsonValue& value, void* object, const Reading& at)> read;
  // Null if the setting has no value of its own, but is another spelling of settings that are
  // printed.
  std::function<JsonValue(const void* object, Form form)> print;
  std::function<bool(const void* object)> printed_if;  // Null: always printed.
};

// The settings of one object of the job file, such as "train", in the order of reading, printing
// and documentation.
struct Section {
  std::string name;
  std::string title;     // Title of its table in docs/job_file.md.
  std::string appendix;  // Markdown after that table.
  std::vector<Setting> settings;
  std::shared_ptr<const void> defaults;  // The struct before anything is read.
  // Called before and after the settings of an object are read; may be null.
  std::function<void(const JsonValue&value, void*object)> before_reading, after_reading;

  const Setting* Find(std::string_view key) const;
};

// Is true if the setting has an effect in `object`, a struct of its section.
bool HasEffect(const Section& section, const Setting& setting, const void* object);
// Returns "kind is adam or adamw".
std::string ConditionText(const Condition& condition);

// Returns the requirement on a value, such as "a whole number from 1 to 65536".
std::string WantedText(const Setting& setting);
// Prints whole numbers without ".0".
std::string NumberText(double value);

// Checks the object at `path` and everything below it: keys are known, types and ranges are right,
// and required settings are present. Afterwards the object can be read without checks.
Status CheckSection(const JobSource& source, const Section& section, const JsonValue& object,
                    const std::string& path);

// Fills `*to`, a struct of the section. Settings without effect are left unchanged and named in the
// warnings.
void ReadSection(const Section& section, const JsonValue& object, void* to, const Reading& at);

// Prints the settings that have an effect in `from`, a struct of the section.
JsonValue PrintSection(const Section& section, const void* from, Form form);

// Returns the value of a kBytes setting, a whole number or a text as in ParseByteCount(); none if
// it is neither.
std::optional<uint64_t> BytesIn(const JsonValue& value);

}  // namespace hdps
