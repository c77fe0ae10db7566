// What a recipe makes of the short form of a model.
#pragma once

#include <optional>
#include <vector>

#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

enum class LossKind : uint8_t;

// What a recipe makes.
struct ModelGraph {
  std::vector<TableSpec> tables;  // Without the dense table.
  std::vector<LayerSpec> layers;
  std::optional<LossKind> loss;  // Where the job names none; none: logloss.
  RecipeProblem problem;         // Where there is one, the rest is of no use.
};

}  // namespace hdps
