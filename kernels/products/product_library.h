// What oneDNN is told once before its first product, and what it computes with.
#pragma once

#include "kernels/vector_width.h"

namespace hdps {

// Sets the limit of vector widths, once, and keeps the library from starting threads of its own
// for the thread that calls: so before every call into it.
void PrepareProductLibrary();

// The vectors that it computes products in fp32 with: the machine's, or what the limit leaves.
VectorWidth WidthOfProductLibrary();
// The same as a word: "avx512", "avx2", "avx", "sse4.1".
const char* NameOfProductLibraryWidth();

// Instructions for products of numbers in bf16, within the limit.
bool ProductLibraryHasAmx();
bool ProductLibraryHasAvx512Bf16();

}  // namespace hdps
