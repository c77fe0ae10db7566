// Writes the answer to an infer request.
#pragma once

#include <string>
#include <vector>

#include "tools/serve/requests/request_forms.h"
#include "tools/serve/requests/score_request.h"

namespace hdps {

// What a request says of its answer.
struct InferAnswer {
  std::string model;
  std::string id;                  // As JSON; empty: the request has none.
  std::vector<std::string> names;  // Of outputs; empty: all that the answer has.
  std::vector<bool> binary;        // [names]: the output goes behind the JSON.
  bool all_binary = false;         // The same for outputs without a name in the request.

  WrittenAnswer Write(const ScoreAnswer& answer) const;
  // Returns true if the column of this name goes behind the JSON.
  bool IsBinary(const std::string& column) const;
};

}  // namespace hdps
