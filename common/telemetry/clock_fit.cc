// Finds the tightest bound of each pair of clocks, then projects the offsets onto the bounds.
#include "common/telemetry/clock_fit.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

namespace hdps {
namespace {

// Most offsets are known to less than a millisecond; one that is not known may move as it must.
constexpr double kUnknownNs = 1e12;
constexpr int kRoundsMax = 1000;
// A bound is kept by this, or by a quarter of what its pair leaves free, so that rounds end.
constexpr double kInsideNs = 200;

// [ahead, behind]: by how much the offset of the first member may exceed that of the second.
using Bounds = std::map<std::pair<size_t, size_t>, double>;

Bounds BoundsOf(const Trace& trace) {
  struct Request {
    size_t member = 0;
    const Span* span = nullptr;
  };
  std::unordered_map<uint64_t, Request> requests;
  for (size_t m = 0; m < trace.members.size(); ++m) {
    for (const SpanPart& part : trace.members[m].parts) {
      for (const Span& span : part.spans) {
        if (span.request != 0 && span.serves == 0) requests[span.request] = {m, &span};
      }
    }
  }
  Bounds bounds;
  const auto bound = [&bounds](size_t ahead, size_t behind, int64_t ns) {
    double& most =
        bounds.try_emplace({ahead, behind}, std::numeric_limits<double>::max()).first->second;
    most = std::min(most, static_cast<double>(ns));
  };
  for (size_t m = 0; m < trace.members.size(); ++m) {
    for (const SpanPart& part : trace.members[m].parts) {
      for (const Span& serving : part.spans) {
        if (serving.request == 0 || serving.serves == 0) continue;
        const auto asked = requests.find(serving.request);
        if (asked == requests.end() || asked->second.member == m) continue;
        const auto& [caller, span] = asked->second;
        bound(caller, m, serving.begin_ns - span->begin_ns);
        bound(m, caller, span->end_ns - serving.end_ns);
      }
    }
  }
  return bounds;
}

}  // namespace

void FitClocks(Trace* trace) {
  const Bounds bounds = BoundsOf(*trace);
  std::vector<double> offsets, gives;
  for (const TracedMember& member : trace->members) {
    offsets.push_back(static_cast<double>(member.offset_ns));
    gives.push_back(member.uncertainty_ns < 0 ? kUnknownNs
                                              : static_cast<double>(member.uncertainty_ns) + 1);
  }
  bool moved = true;
  for (int round = 0; moved && round < kRoundsMax; ++round) {
    moved = false;
    for (const auto& [pair, most] : bounds) {
      const auto [ahead, behind] = pair;
      const double free = most + bounds.at({behind, ahead});
      const double over = offsets[ahead] - offsets[behind] - most;
      if (free < 0 || over <= 0) continue;
      const double move = over + std::min(kInsideNs, free / 4);
      const double share = gives[ahead] / (gives[ahead] + gives[behind]);
      offsets[ahead] -= move * share;
      offsets[behind] += move * (1 - share);
      moved = true;
    }
  }
  for (size_t m = 0; m < offsets.size(); ++m) {
    trace->members[m].offset_ns = static_cast<int64_t>(offsets[m]);
  }
}

}  // namespace hdps
