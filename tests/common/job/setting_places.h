// Lists every setting with a place in a small job where it has an effect, and values to try there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/job/text/setting.h"

namespace hdps {

// A setting, its place in kShort of job_samples.h, and overrides that give it an effect there.
struct SettingPlace {
  const Section* section;
  const Setting* setting;
  std::vector<std::string> overrides;
  std::string path;
};

// Lists the settings of the whole job, which must live as long as the result.
std::vector<SettingPlace> PlacesOf(const Section& whole);

// Other values of settings that are texts, lists or of several kinds, by path.
const std::map<std::string, std::vector<std::string>>& OtherValues();
// Returns values to set at `path`, "model.layers[].units". Some may be what the setting has
// already.
std::vector<std::string> ValuesOf(const Setting& setting, const std::string& path);

}  // namespace hdps
