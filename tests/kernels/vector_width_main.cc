// Runs the tests of a program at the vector width in HDPS_MAX_VECTOR_WIDTH, or skips them if the
// machine lacks it.
#include <gtest/gtest.h>

#include <iostream>

#include "kernels/vector_width.h"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // As configured in scripts/dev/layer.cmake for ctest.
  testing::InitGoogleTest(&argc, argv);
  const hdps::VectorWidth widest = hdps::WidestVectors();
  const hdps::VectorWidth asked = hdps::VectorWidthLimit().value_or(widest);
  if (asked != widest) {
    std::cout << "skipped: this machine has no " << hdps::VectorWidthName(asked)
              << " vectors, only " << hdps::VectorWidthName(widest) << "\n";
    return kSkipped;
  }
  return RUN_ALL_TESTS();
}
