// Lists the settings in which two jobs differ, for a user who has to choose one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

struct Job;

// The part of two jobs to compare: the settings behind JobDigest() or TablesDigest().
enum class JobPart : uint8_t { kWhole, kTables };

struct SettingDifference {
  std::string path;         // In the form of --set: "train.batch_size", "model.tables.0.dim".
  std::string item;         // Name of the list item it belongs to, "deep"; empty if none.
  std::string here, there;  // Both values as they stand in a sentence: texts without quotes.
  bool may_change = false;  // May change when a job resumes, if the operator says so.

  // Returns 'model.tables.0.dim (deep)'.
  std::string Place() const;
};

// Returns the settings in which `job` differs from the one that PrintJob() printed as `printed`, in
// the order of the job file. There are none exactly if the digests are equal. Errors:
// kInvalidArgument if this version cannot read `printed`.
Result<std::vector<SettingDifference>> DifferencesFrom(const Job& job, const std::string& printed,
                                                       JobPart part);

// Returns a sentence with the first three differences and the number of the others:
// "train.batch_size is 64, the checkpoint's is 32; seed is 2, the checkpoint's is 1".
std::string TellDifferences(std::span<const SettingDifference> differences);

// Is true if the rows of a checkpoint can be loaded into the tables of `job`: the tables are the
// same except for settings that may change, such as the learning rate. `printed` and
// `tables_digest` belong to the checkpoint's job.
bool TablesFit(const Job& job, const std::string& printed, uint64_t tables_digest);

}  // namespace hdps
