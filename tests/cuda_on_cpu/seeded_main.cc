// Runs tests on the emulation with the seed from --gtest_random_seed.
#include <gtest/gtest.h>

#include "tests/cuda_on_cpu/stand_in.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int seed = testing::GTEST_FLAG(random_seed);
  cuda_on_cpu::SetSeed(static_cast<uint64_t>(seed));
  cuda_on_cpu::SetDevices(4);
  return RUN_ALL_TESTS();
}
