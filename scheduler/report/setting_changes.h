// The settings that were changed on the way from checkpoints, as a run tells them.
#pragma once

#include <string>
#include <vector>

namespace hdps {

struct SettingChange;

// A JSON list of {step, setting, from, to}, as summary.json has it.
std::string PrintChanges(const std::vector<SettingChange>& changes);

// "at step 120: train.batch_size from 32 to 64"
std::string ChangeText(const SettingChange& change);

}  // namespace hdps
