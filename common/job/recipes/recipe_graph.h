// The graph that a recipe makes from the short form of a model.
#pragma once

#include <optional>
#include <vector>

#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

enum class LossKind : uint8_t;

// The result of a recipe.
struct ModelGraph {
  std::vector<TableSpec> tables;  // Without the dense table.
  std::vector<LayerSpec> layers;
  // The recipe's loss for a job that names none; the default is logloss.
  std::optional<LossKind> loss;
  RecipeProblem problem;  // If set, the rest is unusable.
};

}  // namespace hdps
