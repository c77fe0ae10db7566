// Runs everything that `hdps-bench device` does with small sizes, so that no line of it runs first
// on a rented machine. Checks no speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <set>

#include "benchmarks/cases/device_bench.h"
#include "benchmarks/yardsticks/device_yardsticks.h"
#include "common/job/spec/precision.h"
#include "tests/cuda_on_cpu/stand_in.h"

namespace hdps {
namespace {

using cuda_on_cpu::Counters;
using cuda_on_cpu::CountersNow;

// Odd sizes: the last product has one unit.
const Product kProducts[] = {{.inputs = 13, .units = 5}, {.inputs = 5, .units = 1}};

TEST(DeviceYardsticks, ProductsAreThreeOfEachLayerInEveryPrecision) {
  const auto yardsticks = DeviceYardsticks::Make();
  ASSERT_TRUE(yardsticks.ok()) << yardsticks.status().message();
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    const uint64_t once = [&] {
      const uint64_t before = CountersNow().products;
      EXPECT_GT(*(*yardsticks)->Products(kProducts, 7, precision, 1), 0);
      return CountersNow().products - before;
    }();
    const uint64_t before = CountersNow().products;
    EXPECT_GT(*(*yardsticks)->Products(kProducts, 7, precision, 4), 0);
    EXPECT_EQ(CountersNow().products - before, once + 3 * 6) << WordOf(precision);
  }
}

TEST(DeviceYardsticks, CopiesMoveTheBytesThatTheyAreAskedFor) {
  const auto yardsticks = DeviceYardsticks::Make();
  ASSERT_TRUE(yardsticks.ok());
  const Counters before = CountersNow();
  EXPECT_GT((*yardsticks)->BusCopies(1000, 300, 3), 0);
  const Counters after = CountersNow();
  // One copy each way allocates memory.
  EXPECT_EQ(after.up_bytes - before.up_bytes, 4 * 1000u);
  EXPECT_EQ(after.down_bytes - before.down_bytes, 4 * 300u);
  EXPECT_GT((*yardsticks)->BusCopies(0, 300, 1), 0);
  EXPECT_EQ(CountersNow().up_bytes, after.up_bytes);
  EXPECT_GT((*yardsticks)->MemoryCopies(4096, 2), 0);
  const uint64_t kernels = CountersNow().kernels;
  EXPECT_GT((*yardsticks)->MemoryReads(10000, 2), 0);
  EXPECT_EQ(CountersNow().kernels - kernels, 3u);
}

TEST(DeviceBench, EveryCaseGivesFiguresBesideItsYardstick) {
  const ModelCase model = {"ref_l_small",
                           48,
                           2,
                           R"("format": "libffm", "num_fields": 3)",
                           R"("embedding_dim": 8, "hidden": [16, 4])",
                           false,
                           20};
  BenchSetting setting;
  setting.repeats = 2;
  BenchReport report;
  const Status status = RunDeviceCases({model, 1 << 14, 1 << 12, 2}, setting, report);
  ASSERT_TRUE(status.ok()) << status.message();
  std::set<std::string> cases;
  for (const BenchResult& result : report.results()) {
    cases.insert(result.name);
    ASSERT_EQ(result.samples.size(), 2u);
    EXPECT_GT(result.median(), 0) << result.name << " " << result.figure;
    EXPECT_TRUE(std::isfinite(result.median()));
    if (!result.yardstick.empty()) {
      EXPECT_GT(result.ratio(), 0) << result.figure;
    }
  }
  EXPECT_THAT(cases, testing::ElementsAre("bus", "memory", "ref_l_small_bf16", "ref_l_small_fp32",
                                          "ref_l_small_tf32", "rows"));
  std::printf("hdps-bench device on the stand-ins: %zu figures of %zu cases\n",
              report.results().size(), cases.size());
}

TEST(DeviceBench, WithoutAGpuItLeavesOutEverythingAndIsNoMistake) {
  cuda_on_cpu::SetDevices(0);
  BenchReport report;
  EXPECT_TRUE(RunDeviceCases({}, {}, report).ok());
  EXPECT_TRUE(report.results().empty());
  cuda_on_cpu::SetDevices(1);
}

}  // namespace
}  // namespace hdps
