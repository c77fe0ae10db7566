// Formats the settings that were changed at checkpoints.
#pragma once

#include <string>
#include <vector>

namespace hdps {

struct SettingChange;

// Returns a JSON list of {step, setting, from, to}, as in summary.json.
std::string PrintChanges(const std::vector<SettingChange>& changes);

// Such as "at step 120: train.batch_size from 32 to 64".
std::string ChangeText(const SettingChange& change);

}  // namespace hdps
