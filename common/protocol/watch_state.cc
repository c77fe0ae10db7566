// Reads and writes Watched as JSON.

#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/checkpoints/json_numbers.h"
#include "common/protocol/watch_state.h"

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
                         .best_clock = WholeOf<Clock>(json.at("best_clock")),
                         .best = json.at("best").get<double>(),
                         .since = WholeOf<uint32_t>(json.at("since")),
                         .last_clock = WholeOf<Clock>(json.at("last_clock"))};
  if (state.best_clock > state.last_clock) throw std::out_of_range("the best is behind the last");
  return state;
}

}  // namespace

std::string PrintWatched(const Watched& watched) {
  const Json json = {{"best", ToJson(watched.best)},
                     {"early_stop", ToJson(watched.early_stop)},
                     {"plateau", ToJson(watched.plateau)},
                     {"rate", watched.rate},
                     {"best_auc", NumberJson<Json>(watched.best_auc)},
                     {"best_logloss", NumberJson<Json>(watched.best_logloss)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
  } catch (const std::bad_alloc&) {
    throw;  // Not caused by the text.
  } catch (const std::exception& error) {
    return Status(Code::kCorruption, std::string("what was watched: ") + error.what());
  }
}

}  // namespace hdps
