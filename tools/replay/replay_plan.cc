// Reads the record of each server, view by view, and joins what was kept of them.
#include "tools/replay/replay_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "common/base/counted.h"
#include "scheduler/plan/round_script.h"
#include "tools/replay/kept_order.h"

namespace hdps {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{1} << 34;

Status Refuse(std::string why) { return {Code::kInvalidArgument, std::move(why)}; }

// What all servers have recorded in one view.
struct RecordedView {
  ViewMark mark;
  std::map<ServerId, std::string> led;  // By group: the file of its primary.
  std::optional<Clock> load;            // The clock of the rows that were loaded in it.
  std::map<ServerId, std::vector<OrderEntry>> orders;
  std::map<std::string, DigestMark> digests;  // By file.
};
using RecordedViews = std::map<ViewId, RecordedView>;

bool SameMembers(const ViewMark& a, const ViewMark& b) {
  return a.workers == b.workers && a.owner == b.owner;
}

Status TakeView(const ViewMark& mark, const std::string& name, RecordedViews* views) {
  const auto [at, first] = views->try_emplace(mark.view);
  RecordedView& view = at->second;
  if (first) view.mark = mark;
  bool same = SameMembers(view.mark, mark) && !mark.owner.empty() && mark.workers > 0;
  for (const ServerId group : mark.led) {
    const auto [led, added] = view.led.try_emplace(group, name);
    same = same && (added || led->second == name);
  }
  if (same) return {};
  return Refuse(
      name + ": view " + std::to_string(mark.view.value) +
      " is another than in the other files: the folder holds the records of two runs; give "
      "--record an empty folder in each run");
}

Status TakeFile(const NamedOrderFile& file, RecordedViews* views) {
  RecordedView* view = nullptr;
  ServerId group;
  for (const OrderItem& item : file.file.items) {
    if (const auto* mark = std::get_if<ViewMark>(&item)) {
      HDPS_RETURN_IF_ERROR(TakeView(*mark, file.name, views));
      view = &views->at(mark->view);
      continue;
    }
    if (view == nullptr) return Refuse(file.name + ": the record is damaged: it begins in no view");
    if (const auto* mark = std::get_if<GroupMark>(&item)) {
      group = mark->group;
    } else if (const auto* load = std::get_if<LoadMark>(&item)) {
      view->load = std::min(view->load.value_or(load->clock), load->clock);
    } else if (const auto* digest = std::get_if<DigestMark>(&item)) {
      view->digests[file.name] = *digest;
    } else {
      const auto& entry = std::get<OrderEntry>(item);
      if (entry.worker.value >= view->mark.workers || !view->led.contains(group)) {
        return Refuse(file.name + ": the record is damaged: a request of no member");
      }
      view->orders[group].push_back(entry);
    }
  }
  return {};
}

// A segment before its end is known, with the views in which it was trained.
struct Stretch {
  Clock begin = 0, end = RoundScript::kNoStop;
  std::vector<const RecordedView*> views;
};

// A load takes the run to its clock: what was trained behind it is thrown away.
Result<std::vector<Stretch>> StretchesOf(const RecordedViews& views) {
  std::vector<Stretch> kept;
  for (const auto& [id, view] : views) {
    const bool idle = view.orders.empty() && view.digests.empty();
    if (idle && !view.load) continue;  // It has done nothing.
    if (kept.empty() || view.load) {
      const Clock begin = view.load.value_or(0);
      while (!kept.empty() && kept.back().begin >= begin) kept.pop_back();
      if (!kept.empty()) kept.back().end = begin;
      kept.push_back({begin, RoundScript::kNoStop, {&view}});
      continue;
    }
    if (!SameMembers(kept.back().views.front()->mark, view.mark)) {
      return Refuse("the record is not whole: nothing tells how the members of view " +
                    std::to_string(id.value) + " came by their rows");
    }
    kept.back().views.push_back(&view);
  }
  return kept;
}

// Returns the digest of the last view, if all its servers have told it.
std::optional<DigestMark> DigestOf(const RecordedView& last) {
  std::set<std::string> files;
  for (const auto& [group, file] : last.led) files.insert(file);
  if (last.digests.empty() || last.digests.size() < files.size()) return std::nullopt;
  DigestMark sum = last.digests.begin()->second;
  sum.sum = {};
  for (const auto& [file, digest] : last.digests) {
    sum.sum[0] += digest.sum[0];
    sum.sum[1] += digest.sum[1];
    if (digest.clock != sum.clock) return std::nullopt;
  }
  return sum;
}

Result<ReplaySegment> SegmentOf(const Stretch& stretch, bool ordered, LeftOut* left_out) {
  const ViewMark& mark = stretch.views.front()->mark;
  ReplaySegment segment;
  segment.begin = stretch.begin;
  segment.end = stretch.end;
  segment.workers = mark.workers;
  segment.shards.owner = mark.owner;
  segment.servers = std::ranges::max(mark.owner).value + 1;
  segment.orders.resize(segment.servers);
  segment.asked_whole.resize(segment.workers);
  for (uint32_t g = 0; g < segment.servers; ++g) {
    std::vector<OrderEntry> all;
    for (const RecordedView* view : stretch.views) {
      if (!view->led.contains({g})) {
        return Refuse("the record has no file of server " + std::to_string(g) + " in view " +
                      std::to_string(view->mark.view.value) +
                      "; put the files of all servers into the folder");
      }
      const auto own = view->orders.find({g});
      if (own != view->orders.end()) all.insert(all.end(), own->second.begin(), own->second.end());
    }
    if (!ordered) continue;
    segment.orders[g] = KeptOrder(all, segment.end, left_out);
    for (const OrderEntry& entry : segment.orders[g]) {
      if (entry.kind == OrderKind::kTrainPull) {
        segment.asked_whole[entry.worker.value].insert(entry.step);
      }
    }
  }
  return segment;
}

// Sets the end of the last stretch by the record, and what the plan has of it.
Status FindEnd(bool ordered, Stretch* last, ReplayPlan* plan) {
  if (const std::optional<DigestMark> end = DigestOf(*last->views.back())) {
    plan->digest = end->sum;
    plan->whole = end->whole;
    last->end = end->clock;
    return {};
  }
  plan->end_known = ordered;
  if (!ordered) return {};
  LeftOut unused;
  HDPS_ASSIGN_OR_RETURN(const ReplaySegment segment, SegmentOf(*last, ordered, &unused));
  for (const std::vector<OrderEntry>& order : segment.orders) {
    for (uint32_t w = 0; w < segment.workers; ++w) {
      last->end = std::min(last->end, AdvancedTo(order, {w}, last->begin));
    }
  }
  return {};
}

// Says that the record stops before the run did. A server that was killed, or whose disk was full,
// leaves such a file.
std::string TellNoEnd(const Stretch& last, const ReplayPlan& plan) {
  const RecordedView& view = *last.views.back();
  std::string text = "the files tell different ends of the run";
  for (const auto& [group, file] : view.led) {
    if (view.digests.contains(file)) continue;
    text = file + " ends without the run's end";
    break;
  }
  if (plan.end_known) text += ": the replay goes to step " + std::to_string(last.end);
  return text + (plan.end_known ? ", and nothing is compared" : ": nothing is compared");
}

std::string TellAgain(uint64_t requests) {
  return "a worker was replaced during the run, and its replacement sent " +
         Counted(requests, "request") +
         " of steps that a server already had; the replay makes each of these steps once, so its "
         "digest may differ";
}

// Says that the replay has other rows near its end than the run: it cannot make steps of some
// workers behind the end, though others had rows of them.
Result<std::string> TellPushes(uint64_t pushes, Stretch last, Clock begin) {
  LeftOut unused;
  const Clock end = std::exchange(last.end, RoundScript::kNoStop);
  HDPS_ASSIGN_OR_RETURN(const ReplaySegment all, SegmentOf(last, /*ordered=*/true, &unused));
  const Clock exact = ExactStep(all.orders, last.begin, end);
  std::string text = (pushes == 1 ? "1 push" : std::to_string(pushes) + " pushes") +
                     " of faster workers from step " + std::to_string(end) + " on " +
                     (pushes == 1 ? "is" : "are") + " left out, which pulls before it had seen";
  if (exact > begin) {
    text += "; the last step before it at which the rows are those of the run is --until=" +
            std::to_string(exact);
  }
  return text;
}

// Checks that every server has recorded the steps of every worker to the segment's end.
Status CheckWhole(const ReplaySegment& segment) {
  for (uint32_t g = 0; g < segment.servers; ++g) {
    for (uint32_t w = 0; w < segment.workers; ++w) {
      // A backup that went on has recorded the newest steps, and not those before that the lost
      // server did not write any more.
      const Clock has = std::min(AdvancedTo(segment.orders[g], {w}, segment.begin),
                                 PushedTo(segment.orders[g], {w}, segment.begin));
      if (has >= segment.end) continue;
      return Refuse("the record of server " + std::to_string(g) + " ends at step " +
                    std::to_string(has) + " of worker " + std::to_string(w) +
                    ", and that of the run at step " + std::to_string(segment.end) +
                    ": its process was killed while others had its rows; give --until=" +
                    std::to_string(has) + " at most");
    }
  }
  return {};
}

}  // namespace

Result<std::vector<NamedOrderFile>> ReadRecord(FileSystem& files, const std::string& folder,
                                               uint64_t* bytes) {
  std::vector<NamedOrderFile> record;
  const Result<std::vector<std::string>> names = files.List(folder);
  if (names.ok()) {
    for (const std::string& name : *names) {
      if (!name.ends_with(".order")) continue;
      const std::string path = JoinPath(folder, name);
      HDPS_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path, kFileBytesMax));
      *bytes += text.size();
      HDPS_ASSIGN_OR_RETURN(OrderFile file, DecodeOrderFile(std::as_bytes(std::span(text)), path));
      if (!file.items.empty()) record.push_back({path, std::move(file)});
    }
  }
  if (!record.empty()) return record;
  return Refuse("--record=" + folder +
                " holds no record; give the folder that the servers had as --record");
}

Result<ReplayPlan> PlanReplay(const std::vector<NamedOrderFile>& record,
                              std::optional<Clock> until) {
  ReplayPlan plan;
  plan.header = record.front().file.header;
  RecordedViews views;
  for (const NamedOrderFile& file : record) {
    const OrderHeader& header = file.file.header;
    if (header.job_digest != plan.header.job_digest || header.mode != plan.header.mode) {
      return Refuse(file.name + ": the record is of another job than " + record.front().name);
    }
    HDPS_RETURN_IF_ERROR(TakeFile(file, &views));
    plan.entries += static_cast<uint64_t>(std::ranges::count_if(
        file.file.items, [](const OrderItem& item) { return item.index() == 0; }));
  }
  HDPS_ASSIGN_OR_RETURN(std::vector<Stretch> stretches, StretchesOf(views));
  if (stretches.empty()) return Refuse(record.front().name + ": the record has no step");
  const bool ordered = plan.header.mode != Mode::kSync;
  HDPS_RETURN_IF_ERROR(FindEnd(ordered, &stretches.back(), &plan));
  if (!until && !plan.digest) plan.warnings.push_back(TellNoEnd(stretches.back(), plan));
  if (until && plan.end_known && *until > stretches.back().end) {
    return Refuse("--until=" + std::to_string(*until) + ": the record ends at step " +
                  std::to_string(stretches.back().end));
  }
  if (until && *until <= stretches.front().begin) {
    return Refuse("--until=" + std::to_string(*until) + ": the record begins at step " +
                  std::to_string(stretches.front().begin));
  }
  if (until && *until < stretches.back().end) {
    plan.digest.reset();
    plan.whole = false;
    plan.end_known = true;
    while (stretches.back().begin >= *until) stretches.pop_back();
    stretches.back().end = *until;
  }
  uint64_t again = 0, pushes = 0;  // All of them, and those of the last segment.
  for (const Stretch& stretch : stretches) {
    if (stretch.end <= stretch.begin && stretches.size() > 1) continue;
    LeftOut left_out;
    HDPS_ASSIGN_OR_RETURN(ReplaySegment segment, SegmentOf(stretch, ordered, &left_out));
    if (ordered) HDPS_RETURN_IF_ERROR(CheckWhole(segment));
    plan.segments.push_back(std::move(segment));
    again += left_out.again;
    if (&stretch == &stretches.back()) pushes = left_out.pushes;
  }
  if (again > 0) plan.warnings.push_back(TellAgain(again));
  if (pushes > 0) {
    HDPS_ASSIGN_OR_RETURN(std::string line,
                          TellPushes(pushes, stretches.back(), plan.segments.front().begin));
    plan.warnings.push_back(std::move(line));
  }
  return plan;
}

}  // namespace hdps
