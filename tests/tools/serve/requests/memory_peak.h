// Counts the bytes that a test's program holds by operator new.
#pragma once

#include <cstddef>

namespace hdps {

// Returns false if memory is not counted, under a sanitizer with an operator new of its own.
bool CountsMemory();
// Begins to measure from the bytes that are held now.
void BeginMemoryPeak();
// Returns the most bytes that were held at once since then, beyond those at the beginning. Threads
// are counted together.
size_t MemoryPeak();

}  // namespace hdps
