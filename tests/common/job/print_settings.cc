// Prints the tables of one mark for scripts/dev/job_file_docs.sh: "keys", "layers" and "recipes" of
// docs/job_file.md, "mindspore" of docs/how_to/coming_from.md, "figures" of docs/watching.md.
#include <cstdio>
#include <string_view>

#include "common/job/job_registry.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/job_text.h"
#include "tests/common/job/setting_reference.h"
#include "tests/common/telemetry/figure_reference.h"

int main(int argc, char** argv) {
  const hdps::JobRegistry& registry = hdps::BuiltInRegistry();
  const std::string_view mark = argc > 1 ? argv[1] : "keys";
  const std::string text = mark == "layers"      ? hdps::PrintLayerReference(registry.layers)
                           : mark == "recipes"   ? hdps::PrintRecipeReference()
                           : mark == "mindspore" ? hdps::PrintMindSporeWords()
                           : mark == "figures"
                               ? hdps::PrintFigureReference()
                               : hdps::PrintSettingReference(hdps::JobSection(registry));
  std::fputs(text.c_str(), stdout);
}
