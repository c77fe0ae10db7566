// Nests the values of a figure by its labels.
#include "common/telemetry/figures_json.h"

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

Json NumberJson(double value) {
  constexpr double kWholeMax = 9007199254740992.0;  // 2^53: doubles are exact up to here.
  if (!std::isfinite(value)) return nullptr;
  if (std::abs(value) > kWholeMax || value != std::trunc(value)) return value;
  return static_cast<int64_t>(value);
}

Json ValueJson(const Sample& sample) {
  if (RecordOf(sample.figure).kind != FigureKind::kHistogram) return NumberJson(sample.value);
  return {{"count", CountOf(sample)},
          {"sum", NumberJson(sample.sum)},
          {"p50", NumberJson(QuantileOf(sample, 0.5))},
          {"p90", NumberJson(QuantileOf(sample, 0.9))},
          {"p99", NumberJson(QuantileOf(sample, 0.99))}};
}

}  // namespace

std::string FiguresJson(const std::vector<Sample>& samples) {
  Json figures = Json::object();
  for (const Sample& sample : samples) {
    Json* place = &figures[std::string(RecordOf(sample.figure).name)];
    for (const auto& [name, value] : sample.labels) place = &(*place)[value];
    *place = ValueJson(sample);
  }
  // Names of tables come from a job file that was read as UTF-8; other bytes are replaced.
  return figures.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hdps
