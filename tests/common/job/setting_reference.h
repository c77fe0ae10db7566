// The descriptors of settings, layers and recipes as Markdown, for docs/job_file.md.
#pragma once

#include <string>

#include "common/job/layers/layer_record.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/text/setting.h"

namespace hdps {

// The section and all below it as tables, settings for experts in one of their own.
std::string PrintSettingReference(const Section& whole);

// The kinds of layers as a table.
std::string PrintLayerReference(const LayerRegistry& layers);

// The recipes as a table.
std::string PrintRecipeReference();

}  // namespace hdps
