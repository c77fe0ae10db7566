// Forms views from the present and the former members.
#include "scheduler/members/forming.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/protocol/view.h"
#include "scheduler/members/rendezvous.h"
#include "scheduler/members/replica_plan.h"

namespace hdps {
namespace {

// Makes `view` the successor of `before`, with all rows placed anew.
View Behind(const View& before, View view) {
  view.view = {before.view.value + 1};
  view.restarts = before.restarts;
  view.placed = view.view;
  return view;
}

}  // namespace

View FirstView(const Rendezvous& rendezvous, uint32_t replicas) {
  View view = rendezvous.FormView(kFirstView);
  view.placed = kFirstView;
  PlaceGroups(&view, view.servers, replicas);
  return view;
}

View ViewOfRestart(const View& before, const Rendezvous& rendezvous, uint32_t replicas) {
  View view = before;
  if (rendezvous.complete()) {
    view = rendezvous.FormView(before.view);
    PlaceGroups(&view, view.servers, replicas);
  }
  view = Behind(before, std::move(view));
  ++view.restarts;
  return view;
}

View ViewOfReplacements(const View& before, const Rendezvous& rendezvous) {
  View view = before;
  ++view.view.value;
  view.workers = rendezvous.Workers();
  return view;
}

View ViewOfNewNumbers(const View& before, const Rendezvous& rendezvous, uint32_t replicas) {
  View view = rendezvous.FormView(before.view, &before.shards);
  PlaceGroups(&view, view.servers, replicas);
  return Behind(before, std::move(view));
}

View ViewOfMovedShards(const View& before, ShardMap shards) {
  View view = before;
  view.shards = std::move(shards);
  return Behind(before, std::move(view));
}

View ViewOfThoseLeft(const View& before, uint32_t replicas) {
  View view = before;
  std::vector<Member> left = view.Holders();
  std::ranges::sort(left, {}, &Member::rank);
  PlaceGroups(&view, left, replicas);
  return Behind(before, std::move(view));
}

}  // namespace hdps
