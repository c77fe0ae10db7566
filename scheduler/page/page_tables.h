// Shows JSON as plain tables, for browsers without scripts.
#pragma once

#include <string>
#include <string_view>

namespace hdps {

// Escapes text for HTML: no character of it is markup.
std::string Escaped(std::string_view text);

// Returns a section of HTML for each object in the JSON object `json`: a table of its plain values,
// and a table for each list of objects. Long lists of plain values are cut to their end. Returns a
// sentence if `json` is no object.
std::string TablesOf(const std::string& json);

// Returns a whole page of the tables, which a browser loads again every five seconds.
std::string TablesPage(const std::string& json);

}  // namespace hdps
