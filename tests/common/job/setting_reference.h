// Prints the descriptors of settings, layers and recipes, and words of MindSpore, as Markdown.
#pragma once

#include <string>

#include "common/job/layers/layer_record.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/text/setting.h"

namespace hdps {

// Prints the section and all sections below it as tables; expert settings have a table of their
// own.
std::string PrintSettingReference(const Section& whole);

// Prints the kinds of layers as a table.
std::string PrintLayerReference(const LayerRegistry& layers);

// Prints the recipes as a table.
std::string PrintRecipeReference();

// Prints MindSpore's words and those of a job as a table, for docs/how_to/coming_from.md.
std::string PrintMindSporeWords();

}  // namespace hdps
