// Formats the times of steps for the worker's log.
#include "worker/step/stage.h"

#include <cstdio>

namespace hdps {

std::string Describe(const StepTimes& times) {
  if (times.steps == 0 || times.total_ns <= 0) return "0 steps";
  const auto ms = [&](int64_t ns) { return static_cast<double>(ns) * 1e-6 / times.steps; };
  const double seconds = static_cast<double>(times.total_ns) * 1e-9;
  char line[400];
  std::snprintf(
      line, sizeof(line),
      "%llu steps, %.0f examples/s; ms a step: %.2f in all, wait for reader %.2f, pull "
      "%.2f (%.2f more behind other work), compute %.2f, reduce dense %.2f (%.2f "
      "more behind other work), kept rows %.2f, push %.2f (reader: read %.2f, dedup %.2f)",
      static_cast<unsigned long long>(times.steps), static_cast<double>(times.examples) / seconds,
      ms(times.total_ns), ms(times.read_wait_ns), ms(times.pull_wait_ns), ms(times.pull_hidden_ns),
      ms(times.compute_ns), ms(times.reduce_dense_ns), ms(times.reduce_hidden_ns),
      ms(times.keep_ns), ms(times.push_wait_ns), ms(times.read_ns), ms(times.dedup_ns));
  return line;
}

}  // namespace hdps
