// Watched as JSON.
#include "common/protocol/watch_state.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hdps {
namespace {

using Json = nlohmann::json;

Json ToJson(const WatchState& state) {
  return {{"of", state.of},
          {"best_clock", state.best_clock},
          {"best", state.best},
          {"since", state.since},
          {"last_clock", state.last_clock}};
}

WatchState StateOf(const Json& json) {
  const WatchState state{.of = json.at("of").get<std::string>(),
                         .best_clock = json.at("best_clock").get<Clock>(),
                         .best = json.at("best").get<double>(),
                         .since = json.at("since").get<uint32_t>(),
                         .last_clock = json.at("last_clock").get<Clock>()};
  if (state.best_clock > state.last_clock) throw std::out_of_range("the best is behind the last");
  return state;
}

// JSON has no number for what is not finite.
Json NumberJson(double value) { return std::isfinite(value) ? Json(value) : Json(); }
double NumberOf(const Json& json) { return json.is_null() ? std::nan("") : json.get<double>(); }

}  // namespace

std::string PrintWatched(const Watched& watched) {
  const Json json = {{"best", ToJson(watched.best)},
                     {"early_stop", ToJson(watched.early_stop)},
                     {"plateau", ToJson(watched.plateau)},
                     {"rate", watched.rate},
                     {"best_auc", NumberJson(watched.best_auc)},
                     {"best_logloss", NumberJson(watched.best_logloss)}};
  return json.dump();
}

Result<Watched> ParseWatched(const std::string& json) {
  try {
    const Json read = Json::parse(json);
    const Watched watched{.best = StateOf(read.at("best")),
                          .early_stop = StateOf(read.at("early_stop")),
                          .plateau = StateOf(read.at("plateau")),
                          .rate = read.at("rate").get<double>(),
                          .best_auc = NumberOf(read.at("best_auc")),
                          .best_logloss = NumberOf(read.at("best_logloss"))};
    if (!(watched.rate > 0 && watched.rate <= 1)) throw std::out_of_range("a rate out of (0, 1]");
    return watched;
  } catch (const std::exception& error) {
    return Status(Code::kCorruption, std::string("what was watched: ") + error.what());
  }
}

}  // namespace hdps
