// Keeps Markdown narrow enough to be read: lines of at most 160 columns, cells of at most 40 words.
#pragma once

#include <string>

namespace hdps {

// Returns `page` with each cell that is too long replaced by its first sentence or "see below", and
// its whole text in a list under the table, by the row's first cell. Paragraphs are wrapped at 120
// columns.
std::string NarrowPage(const std::string& page);

}  // namespace hdps
