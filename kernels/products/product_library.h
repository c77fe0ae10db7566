// Configures oneDNN once before its first product, and tells which instructions it uses.
#pragma once

#include "kernels/vector_width.h"

namespace hdps {

// Sets the limit of vector widths once, and keeps the library from starting threads for the calling
// thread. Must be called before every call into the library.
void PrepareProductLibrary();

// Returns the vectors that it uses for fp32 products: the machine's, or what the limit allows.
VectorWidth WidthOfProductLibrary();
// Returns their name: "avx512", "avx2", "avx", "sse4.1".
const char* NameOfProductLibraryWidth();

// Return whether it has instructions for products of bf16 numbers, within the limit.
bool ProductLibraryHasAmx();
bool ProductLibraryHasAvx512Bf16();

}  // namespace hdps
