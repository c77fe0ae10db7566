// Walks the sections of the job file.
#include "common/job/setting_paths.h"

#include "common/job/job_registry.h"
#include "common/job/text/job_sections.h"

namespace hdps {
namespace {

void AddPaths(const Section& section, const std::string& path, const std::string& name,
              std::vector<std::string>* found) {
  for (const Setting& setting : section.settings) {
    const std::string place = PathBelow(path, setting.key);
    if (place == name || place.ends_with("." + name)) found->push_back(place);
    if (setting.section == nullptr || !ItemMark(setting).empty()) continue;
    AddPaths(*setting.section, place, name, found);
  }
}

}  // namespace

std::vector<std::string> PathsOfSettings(const std::string& name) {
  std::vector<std::string> found;
  AddPaths(JobSection(BuiltInRegistry()), "", name, &found);
  return found;
}

}  // namespace hdps
