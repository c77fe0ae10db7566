// Reads one input of an infer request, from its JSON or from the bytes behind it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "tools/serve/requests/json_body.h"
#include "tools/serve/requests/request_table.h"

namespace hdps {

// Returns the parameter `name` of an object of parameters; nothing if it is not there.
Result<std::optional<JsonElement>> JsonParameter(const std::optional<JsonElement>& parameters,
                                                 std::string_view name, const Place& place);

// Adds inputs[index] of a request to its table, and takes its binary data, if it has some, from the
// front of `binary`; nothing: the request has none.
Status ReadInferInput(const ModelNote& model, JsonElement input, size_t index,
                      std::optional<std::string_view>* binary, RequestTable* table);

}  // namespace hdps
