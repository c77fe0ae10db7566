// In which settings two jobs differ, for those who have to choose one of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

struct Job;

// The part of two jobs that is compared: what JobDigest() is made of, or TablesDigest().
enum class JobPart : uint8_t { kWhole, kTables };

struct SettingDifference {
  std::string path;  // As --set names it: "train.batch_size", "model.tables.0.dim".
  std::string item;  // The name of the list's item it is of, "deep"; empty where it has none.
  std::string here, there;  // Both values in a sentence: texts without quotes.
  bool may_change = false;  // On the way from a checkpoint, where the operator says so.

  // 'model.tables.0.dim (deep)'
  std::string Place() const;
};

// The settings in which `job` differs from the one that PrintJob() has printed as `printed`, in the
// order of the job file. None exactly where the digests are the same. kInvalidArgument where this
// version cannot read `printed`.
Result<std::vector<SettingDifference>> DifferencesFrom(const Job& job, const std::string& printed,
                                                       JobPart part);

// "train.batch_size is 64, the checkpoint's is 32; seed is 2, the checkpoint's is 1": the first
// three of them, and how many more there are.
std::string TellDifferences(std::span<const SettingDifference> differences);

// Whether a checkpoint's rows can be taken into the tables of `job`: they are the same, but for
// settings that may change, such as the learning rate. `printed` and `tables_digest` are those of
// the checkpoint's job.
bool TablesFit(const Job& job, const std::string& printed, uint64_t tables_digest);

}  // namespace hdps
