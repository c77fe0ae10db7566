// Finds outputs by their names, and writes their values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/serve/requests/score_request.h"

namespace hdps {

// Returns the output that a column of this name belongs to. Predictions may have the names of
// labels, so any other name is one.
ScoreOutput OutputOfName(std::string_view name);

// Returns the columns of these names, in their order, or all of them if there are no names.
// "top_k" stands for its scores too, if they are not asked for by their own name.
std::vector<const OutputColumn*> ColumnsOf(const ScoreAnswer& answer,
                                           const std::vector<std::string>& names);

// Returns true if the column's shape is [rows, width]; else it is [rows].
bool HasWidth(const OutputColumn& column);
// Appends value `index` of the column as JSON.
void AppendJsonValue(const OutputColumn& column, uint64_t index, std::string* json);
// Appends the values of a row: a value, or a list of `width`.
void AppendJsonRow(const OutputColumn& column, uint64_t row, std::string* json);

}  // namespace hdps
