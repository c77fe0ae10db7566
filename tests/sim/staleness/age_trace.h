// Counts, from the frames of a simulated run alone, how old the rows of each push were.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/protocol/row_messages.h"
#include "common/telemetry/figure_layout.h"
#include "tests/sim/network.h"

namespace hdps::sim {

// Sees what each server sends, in order, and which answer each worker was given first. A push is
// taken when it is first acknowledged. The ages that the servers count themselves are not looked
// at, nor are the marks of rows in their messages.
//
// Invariant: of runs of async and ssp in which no member is lost and workers stay `workers`.
class AgeTrace {
 public:
  AgeTrace(SimNetwork& network, uint32_t workers);

  // Returns where the figures of a server differ from the trace; empty if nowhere.
  std::string Compare(PeerId server, const Readings& readings) const;
  uint64_t pushes() const { return pushes_; }          // Ages counted, one a table of a push.
  uint64_t old_pushes() const { return old_pushes_; }  // Those above one clock.

 private:
  static constexpr uint32_t kTables = 2;
  using Request = std::tuple<PeerId, PeerId, uint64_t>;  // Worker, server, request id.
  using Step = std::tuple<PeerId, PeerId, Clock>;        // Worker, server, clock.
  struct Pull {
    Clock clock = 0;
    // Answers, by their bytes, with the number of pushes that the server had taken.
    std::vector<std::pair<uint64_t, uint64_t>> answers;
    bool given = false;
  };
  // The rows of a step: the newest request for them, and the pushes taken before its answer.
  struct Read {
    uint64_t request = 0, taken = 0;
  };
  struct Ages {
    std::vector<uint64_t> buckets;
    uint64_t sum = 0;
  };

  void Sent(PeerId from, PeerId to, const Frame& frame);
  void Given(PeerId to, PeerId from, const Frame& frame);
  void Taken(PeerId worker, PeerId server, Clock clock);

  const uint32_t workers_;
  std::map<Request, Pull> pulls_;
  std::map<Step, std::set<uint32_t>> tables_;
  std::map<Step, Read> reads_;
  std::map<Request, Clock> push_clocks_;  // By sequence instead of request id.
  std::set<Request> acknowledged_;        // Likewise.
  std::map<PeerId, uint64_t> taken_;
  std::map<std::pair<PeerId, uint32_t>, Ages> ages_;
  uint64_t pushes_ = 0, old_pushes_ = 0;
};

}  // namespace hdps::sim
