// Evaluates schedules with its own elementary functions, because those of the library differ
// between machines.
#include "common/job/schedule.h"

#include <algorithm>
#include <cmath>

#include "common/job/optimizers/adam.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"

namespace hdps {
namespace {

constexpr double kLn2 = 0.693147180559945309417;
constexpr double kPi = 3.14159265358979323846;

// Returns the natural logarithm of x > 0: the exponent of frexp, and the series of 2 atanh((m - 1)
// / (m + 1)) of its mantissa m.
double Log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), square = s * s;  // |s| < 0.172
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * s * sum + exponent * kLn2;
}

double Exp(double x) {
  if (x < -700) return 0;
  const double n = std::floor(x / kLn2 + 0.5);
  const double r = x - n * kLn2;  // |r| < 0.35
  double sum = 1;
  for (int k = 17; k >= 1; --k) sum = 1 + sum * r / k;
  return std::ldexp(sum, static_cast<int>(n));
}

// Returns base^exponent; both must be at least 0.
double Power(double base, double exponent) {
  if (exponent == 0) return 1;
  return base == 0 ? 0 : Exp(exponent * Log(base));
}

// Returns cos(pi p) for p in [0, 1].
double CosineOfHalfTurns(double p) {
  if (p > 0.5) return -CosineOfHalfTurns(1 - p);
  const double square = (kPi * p) * (kPi * p);
  double sum = 1;
  for (int k = 26; k >= 2; k -= 2) sum = 1 - sum * square / (k * (k - 1));
  return sum;
}

double DecayAt(const ScheduleSpec& schedule, double t) {
  const double passed = t / static_cast<double>(std::max<uint64_t>(schedule.decay_steps, 1));
  const double p = std::min(passed, 1.0);
  const double least = schedule.least;
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return 1;
    case ScheduleKind::kStep:
      return optimizers::PowerBySquaring(schedule.decay, static_cast<int64_t>(passed));
    case ScheduleKind::kExponential:
      return Power(schedule.decay, passed);
    case ScheduleKind::kCosine:
      return least + (1 - least) * 0.5 * (1 + CosineOfHalfTurns(p));
    case ScheduleKind::kPolynomial:
      return least + (1 - least) * Power(1 - p, schedule.power);
  }
  __builtin_unreachable();
}

}  // namespace

double ScheduleFactor(const ScheduleSpec& schedule, int64_t step) {
  const auto done = static_cast<uint64_t>(std::max<int64_t>(step, 1) - 1);
  if (done < schedule.warmup_steps) {
    return static_cast<double>(done + 1) / static_cast<double>(schedule.warmup_steps);
  }
  return DecayAt(schedule, static_cast<double>(done - schedule.warmup_steps));
}

bool FollowsSchedule(const OptimizerSpec& optimizer) {
  return optimizer.record->kind != OptimizerKind::kFtrl;
}

OptimizerSpec OptimizerAt(const TableSpec& table, int64_t step, double rate, int64_t steps_before) {
  OptimizerSpec optimizer = table.optimizer;
  optimizer.steps_before = steps_before;
  if (!FollowsSchedule(optimizer)) return optimizer;
  const double factor = ScheduleFactor(table.schedule, step) * rate;
  if (factor != 1) {
    optimizer.learning_rate = static_cast<float>(optimizer.learning_rate * factor);
  }
  return optimizer;
}

}  // namespace hdps
