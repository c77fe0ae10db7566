// Reads which model, which version and what of it the path of a request asks for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/manifest.h"

namespace hdps {

struct ModelTarget {
  std::string model;
  Clock step = kNoClock;  // kNoClock: whichever version answers.
  std::string verb;       // "infer", "predict"; empty: the model itself.
};

// How a protocol writes its paths: NAME[/versions/STEP], and behind it '/' and a verb (the Open
// Inference Protocol) or ':' and a verb (TensorFlow Serving).
struct TargetForm {
  std::string_view before;  // "/v2/models/"
  char before_verb = '/';
};
inline constexpr TargetForm kInferTargets = {"/v2/models/", '/'};
inline constexpr TargetForm kPredictTargets = {"/v1/models/", ':'};

// A model's name stands in paths, so it has letters, digits, '_', '-' and '.' alone, and no more
// than 128 of them.
bool IsModelName(std::string_view name);

// Requires: `path` begins with form.before. Errors: kNotFound says how a path is written.
Result<ModelTarget> ReadTarget(const TargetForm& form, std::string_view path);

}  // namespace hdps
