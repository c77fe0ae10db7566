// Prints the tables of docs/job_file.md of one mark, "keys" or "layers", for
// scripts/dev/job_file_docs.sh.
#include <cstdio>
#include <string_view>

#include "common/job/text/job_sections.h"
#include "tests/common/job/setting_reference.h"

int main(int argc, char** argv) {
  const hdps::JobRegistry& registry = hdps::BuiltInRegistry();
  const bool kinds = argc > 1 && std::string_view(argv[1]) == "layers";
  const std::string text = kinds ? hdps::PrintLayerReference(registry.layers)
                                 : hdps::PrintSettingReference(hdps::JobSection(registry));
  std::fputs(text.c_str(), stdout);
}
