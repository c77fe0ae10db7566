// Tests schedules of learning rates against their formulas.
#include "common/job/schedule.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hdps {
namespace {

constexpr double kTolerance = 1e-14;  // The documented tolerance, for numbers of at most 1.

TEST(ScheduleTest, EachKindIsItsFormula) {
  const double pi = std::acos(-1.0);
  for (const uint64_t warmup : {0, 1, 7}) {
    for (const uint64_t steps : {1, 3, 40, 1000}) {
      for (int64_t step = static_cast<int64_t>(warmup) + 1; step < 1200; ++step) {
        const double t = static_cast<double>(step - 1) - static_cast<double>(warmup);
        const double whole = static_cast<double>(steps), p = std::min(t / whole, 1.0);
        const auto factor = [&](ScheduleSpec spec) {
          spec.warmup_steps = warmup;
          spec.decay_steps = steps;
          return ScheduleFactor(spec, step);
        };
        using enum ScheduleKind;
        SCOPED_TRACE(testing::Message() << warmup << " " << steps << " " << step);
        EXPECT_EQ(factor({.kind = kConstant}), 1);
        EXPECT_NEAR(factor({.kind = kStep, .decay = 0.3}), std::pow(0.3, std::floor(t / whole)),
                    kTolerance);
        EXPECT_NEAR(factor({.kind = kExponential, .decay = 0.3}), std::pow(0.3, t / whole),
                    kTolerance);
        EXPECT_NEAR(factor({.kind = kCosine, .least = 0.1}), 0.1 + 0.9 * (1 + std::cos(pi * p)) / 2,
                    kTolerance);
        EXPECT_NEAR(factor({.kind = kPolynomial, .power = 0.7, .least = 0.2}),
                    0.2 + 0.8 * std::pow(1 - p, 0.7), kTolerance);
      }
    }
  }
}

TEST(ScheduleTest, WarmsUpLinearlyToTheWhole) {
  const ScheduleSpec spec = {.kind = ScheduleKind::kCosine, .warmup_steps = 8, .decay_steps = 100};
  for (int64_t step = 1; step <= 8; ++step) {
    EXPECT_EQ(ScheduleFactor(spec, step), static_cast<double>(step) / 8);
  }
  EXPECT_EQ(ScheduleFactor(spec, 9), 1);
  EXPECT_LT(ScheduleFactor(spec, 10), 1);
  EXPECT_EQ(ScheduleFactor(spec, 109), 0);
  EXPECT_EQ(ScheduleFactor(spec, int64_t{1} << 50), 0);
}

TEST(ScheduleTest, FarBehindItsEndItIsStillANumber) {
  using enum ScheduleKind;
  for (const ScheduleKind kind : {kConstant, kStep, kExponential, kCosine, kPolynomial}) {
    const ScheduleSpec spec = {.kind = kind, .decay_steps = 1, .decay = 1e-9};
    for (const int64_t step : {int64_t{100}, int64_t{1} << 40, int64_t{1} << 62}) {
      const double factor = ScheduleFactor(spec, step);
      EXPECT_GE(factor, 0);
      EXPECT_LE(factor, 1);
    }
  }
}

TEST(ScheduleTest, MovesTheRatesOfAllOptimizersButFtrl) {
  TableSpec table;
  table.schedule = {.kind = ScheduleKind::kStep, .decay_steps = 10, .decay = 0.5};
  for (const OptimizerRecord& record : kOptimizers) {
    table.optimizer = DefaultsOf(record.kind);
    const float rate = table.optimizer.learning_rate;
    const bool moves = record.kind != OptimizerKind::kFtrl;
    EXPECT_EQ(OptimizerAt(table, 10, 1), table.optimizer) << record.name;
    EXPECT_EQ(OptimizerAt(table, 11, 1).learning_rate, moves ? rate * 0.5f : rate) << record.name;
    EXPECT_EQ(OptimizerAt(table, 11, 0.5).learning_rate, moves ? rate * 0.25f : rate);
  }
}

}  // namespace
}  // namespace hdps
