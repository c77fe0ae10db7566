// Tests every implementation of DenseOps with one suite: each operation against its plain loop.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "kernels/dense_ops.h"

namespace hdps {

// Makes the ops under test. Returns null if the machine lacks the device; the tests are then
// skipped with `why`.
struct OpsUnderTest {
  const char* name;
  std::unique_ptr<DenseOps> (*make)(std::string* why);
};

class DenseOpsTest : public testing::TestWithParam<OpsUnderTest> {
 protected:
  void SetUp() override {
    std::string why;
    ops_ = GetParam().make(&why);
    if (ops_ == nullptr) GTEST_SKIP() << why;
  }
  std::unique_ptr<DenseOps> ops_;
};

}  // namespace hdps
