// Explains a scheduler's answers in one sentence, from the ends of the chains of waits, the worst
// first.
#include "scheduler/why/explanation.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "scheduler/why/wait_graph.h"
#include "scheduler/why/why_facts.h"

namespace hdps {
namespace {

// Most members that a sentence names.
constexpr size_t kNamedMax = 4;

std::string PlaceOf(const std::string& name) { return name.substr(0, name.find(" (")); }

// Lists "a, b and c"; if there are many, the first ones and the number of others.
std::string Listed(const std::vector<std::string>& all) {
  std::string text;
  const size_t shown = all.size() > kNamedMax ? kNamedMax - 1 : all.size();
  for (size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == all.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + all[i];
  }
  if (shown < all.size()) text += " and " + std::to_string(all.size() - shown) + " more";
  return text;
}

std::string StateOf(const Activity& activity) {
  if (activity.wait_reason == WaitReason::kRows) return "rows after " + activity.subject;
  const std::string stage = activity.stage.empty() ? "not told" : activity.stage;
  return activity.subject.empty() ? stage : stage + " " + activity.subject;
}

// Explains why the job of the facts stands.
class Why {
 public:
  explicit Why(const WhyFacts& facts) : now_(facts.now), facts_(facts), graph_(facts.now) {}

  Explanation Answer() {
    Describe();
    if (now_.view.value == 0) return Missing();
    if (now_.want == Want::kLost) return Lost();
    Remark();
    if (Moves()) return std::move(answer_);
    Find();
    return std::move(answer_);
  }

 private:
  std::string Place(size_t m) const { return PlaceOf(now_.members[m].name); }
  std::vector<std::string> Places(const std::set<size_t>& members) const {
    std::vector<std::string> places;
    for (const size_t m : members) places.push_back(Place(m));
    return places;
  }
  const Activity& ActivityOf(size_t m) const { return now_.members[m].activity; }
  std::string AtStep(size_t m) const { return " at step " + std::to_string(now_.members[m].clock); }

  void Describe();
  Explanation Missing();
  Explanation Lost();
  void Remark();
  bool Moves();
  void Find();
  // Returns the kind of a member at the end of a chain.
  WhyKind KindOf(size_t m) const;
  std::string Clause(WhyKind kind, size_t m) const;
  void Blame(WhyKind kind, const std::set<size_t>& causes);
  void BlameCircle(const std::set<size_t>& circle);
  std::string Patience() const {
    return now_.patience_ms == 0 ? "" : ", for up to " + Duration(now_.patience_ms) + " more";
  }

  const StatusReply& now_;
  const WhyFacts& facts_;
  const WaitGraph graph_;
  Explanation answer_;
};

void Why::Describe() {
  for (size_t m = 0; m < now_.members.size(); ++m) {
    const MemberStatus& member = now_.members[m];
    Explanation::Line line;
    line.member = member.name;
    line.place = Place(m);
    line.step = member.clock;
    line.state = StateOf(member.activity);
    line.for_ms = member.activity.for_ms;
    line.waits_for = Places(graph_.of(m));
    line.pending_command = member.pending_command;
    line.pending_ms = member.pending_ms;
    line.heard_ms = member.silent_ms;
    answer_.lines.push_back(std::move(line));
  }
}

Explanation Why::Missing() {
  answer_.kind = WhyKind::kMissing;
  answer_.sentence = "the job has not begun: it has waited " + Duration(now_.missing_ms) + " for " +
                     now_.missing + " to join" + Patience();
  if (!now_.reason.empty()) answer_.sentence += "; " + now_.reason;
  answer_.notes.push_back(now_.state);
  answer_.advice =
      "is it running, and is its --scheduler the address that was asked here? Its log says whom it "
      "dials; a member whose place was asked for with --rank is missed by that rank";
  return std::move(answer_);
}

Explanation Why::Lost() {
  answer_.kind = WhyKind::kLost;
  // Whether the others stand depends on the job: a worker may be replaced in place.
  answer_.sentence = now_.reason + ". Missing for " + Duration(now_.missing_ms) +
                     ", until another process takes the place: " + now_.missing + Patience();
  for (size_t m = 0; m < now_.members.size(); ++m) {
    if (now_.reason.find(now_.members[m].name) != std::string::npos) {
      answer_.causes.push_back(Place(m));
    }
  }
  answer_.advice =
      "start the same command again where nothing does so by itself; the log of the one that was "
      "lost says why, if it could";
  return std::move(answer_);
}

void Why::Remark() {
  if (now_.want == Want::kNewcomers) {
    answer_.notes.push_back("other numbers of members were asked for: the job has waited " +
                            Duration(now_.missing_ms) + " for " + now_.missing +
                            " to join, and goes on until then");
  } else if (now_.want == Want::kCopies) {
    answer_.notes.push_back(now_.missing + ", for " + Duration(now_.missing_ms) +
                            "; a loss now means going back to the checkpoint");
  }
}

bool Why::Moves() {
  if (!facts_.before.has_value() || facts_.before->view != now_.view) return false;
  const StatusReply& before = *facts_.before;
  answer_.steps = now_.clock - before.clock;
  if (answer_.steps <= 0) return false;
  answer_.kind = WhyKind::kNothing;
  answer_.sentence = "nothing waits: " + std::to_string(answer_.steps) +
                     (answer_.steps == 1 ? " step" : " steps") + " in the last " +
                     Duration(facts_.apart_ms);
  for (size_t m = 0; m < now_.members.size(); ++m) {
    if (graph_.is_silent(m)) answer_.notes.push_back(Clause(WhyKind::kSilent, m));
    const std::string& trouble = now_.members[m].trouble;
    if (!trouble.empty()) answer_.notes.push_back(Clause(WhyKind::kTrouble, m));
  }
  return true;
}

WhyKind Why::KindOf(size_t m) const {
  const MemberStatus& member = now_.members[m];
  if (graph_.is_silent(m)) return WhyKind::kSilent;
  if (member.deaf) return WhyKind::kDeaf;
  if (!member.trouble.empty()) return WhyKind::kTrouble;
  if (graph_.in_full_group(m)) {
    return member.activity.for_ms > LateMs(now_) ? WhyKind::kGroup : WhyKind::kWork;
  }
  switch (member.activity.wait_reason) {
    case WaitReason::kData:
      return WhyKind::kData;
    case WaitReason::kDisk:
      return WhyKind::kDisk;
    case WaitReason::kCommand:
      // It has nothing to do, also after what it should have heard long ago.
      if (graph_.is_overdue(m)) return WhyKind::kLink;
      if (!member.pending_command.empty() && member.pending_ms - member.silent_ms > LateMs(now_)) {
        return WhyKind::kLink;
      }
      break;
    case WaitReason::kRows:
      return WhyKind::kRows;
    case WaitReason::kMembers:
    case WaitReason::kGroup:
    case WaitReason::kNone:
      break;
  }
  return WhyKind::kWork;
}

std::string Why::Clause(WhyKind kind, size_t m) const {
  const MemberStatus& member = now_.members[m];
  const Activity& activity = member.activity;
  const std::string place = Place(m);
  const std::string lasts = Duration(activity.for_ms);
  switch (kind) {
    case WhyKind::kSilent:
      return place + ", which has not been heard of for " + Duration(member.silent_ms) +
             "; last it was at " + StateOf(activity) + AtStep(m);
    case WhyKind::kDeaf:
      return place + ", which is heard and does not hear the scheduler";
    case WhyKind::kTrouble:
      return place + ", which says: " + member.trouble;
    case WhyKind::kData:
      return place + ", which has read no example for " + lasts + ": stage " + activity.stage +
             (activity.subject.empty() ? "" : ", file " + activity.subject) + AtStep(m);
    case WhyKind::kRows:
      return place + ", which has waited " + lasts + " for rows after " + activity.subject +
             AtStep(m);
    case WhyKind::kDisk:
      return place + ", which has been busy with its disk for " + lasts + ": " + StateOf(activity);
    case WhyKind::kLink:
      return place +
             ", which is well and has nothing to do: what is sent to it, or what it "
             "sends, does not arrive";
    default:
      return place + ", which has been at " + StateOf(activity) + " for " + lasts + AtStep(m);
  }
}

std::string AdviceFor(WhyKind kind) {
  switch (kind) {
    case WhyKind::kSilent:
      return "look at its process: is it stopped (SIGSTOP, a debugger), swapped out, or its "
             "machine or network gone? It counts as lost after cluster.dead_after_ms";
    case WhyKind::kDeaf:
    case WhyKind::kLink:
    case WhyKind::kGroup:
    case WhyKind::kCycle:
      return "look at the network between these machines: firewalls, routes, the addresses in "
             "--listen, --advertise and --collective_host";
    case WhyKind::kTrouble:
      return "make room, or mend that disk or broker: the job goes on by itself";
    case WhyKind::kData:
      return "is that file's disk or mount slow or gone, or a pipe that nobody writes to?";
    case WhyKind::kRows:
      return "does the program that writes the log run? A line without its end, and a step that is "
             "not full, wait too";
    case WhyKind::kDisk:
      return "is that disk slow or full? iostat and df on that machine say";
    case WhyKind::kWork:
      return "is that machine slower or busier than the others (top), or the work larger than "
             "usual?";
    default:
      return "";
  }
}

void Why::Blame(WhyKind kind, const std::set<size_t>& causes) {
  answer_.kind = kind;
  answer_.causes = Places(causes);
  answer_.advice = AdviceFor(kind);
  const std::vector<std::string> waiting = Places(graph_.WaitFor(causes));
  if (kind == WhyKind::kGroup) {
    const Activity& activity = ActivityOf(*causes.begin());
    answer_.sentence = Listed(answer_.causes) +
                       " wait for each other in one call of a collective, "
                       "stage " +
                       activity.stage + ", for " + Duration(activity.for_ms) +
                       AtStep(*causes.begin());
    return;
  }
  if (kind == WhyKind::kLink && causes.size() > 1) {
    answer_.sentence =
        Listed(waiting) + (waiting.size() > 1 ? " wait for " : " waits for ") +
        Listed(answer_.causes) +
        ", which are well and have nothing to do: what is sent to them, or what they "
        "send, does not arrive";
    return;
  }
  std::vector<std::string> clauses;
  for (const size_t m : causes) clauses.push_back(Clause(kind, m));
  const std::string who = waiting.empty() ? "the job" : Listed(waiting);
  answer_.sentence = who + (waiting.size() > 1 ? " wait for " : " waits for ") + Listed(clauses);
}

void Why::BlameCircle(const std::set<size_t>& circle) {
  std::set<size_t> workers, servers;
  for (const size_t m : circle) {
    (now_.members[m].name.starts_with("worker") ? workers : servers).insert(m);
  }
  Blame(WhyKind::kCycle, circle);
  const bool one_worker = workers.size() == 1, one_server = servers.size() == 1;
  const std::set<size_t>& middle = one_worker ? workers : servers;
  if (workers.empty() || servers.empty() || (!one_worker && !one_server)) {
    answer_.sentence = Listed(answer_.causes) +
                       " wait for each other in a circle: what some of "
                       "them send does not arrive at others";
    return;
  }
  const size_t m = *middle.begin();
  answer_.causes = Places(middle);
  answer_.sentence = Place(m) + " and " + Listed(Places(one_worker ? servers : workers)) +
                     " have waited for each other for " + Duration(ActivityOf(m).for_ms) +
                     ": what they send does not arrive; " + Place(m) + " is at " +
                     StateOf(ActivityOf(m)) + AtStep(m);
}

void Why::Find() {
  std::set<size_t> told, all;
  for (size_t m = 0; m < now_.members.size(); ++m) {
    all.insert(m);
    if (!now_.members[m].pending_command.empty() || graph_.is_silent(m)) told.insert(m);
  }
  if (told.empty()) {
    answer_.kind = WhyKind::kBetween;
    answer_.sentence = "the scheduler itself is at work between two commands: " + now_.state;
    return;
  }
  // The worst kind comes first, and within it the members that others wait for.
  std::map<std::pair<WhyKind, bool>, std::set<size_t>> ends;
  const std::set<size_t> at_end = graph_.EndsFrom(told);
  for (const size_t m : at_end) ends[{KindOf(m), !graph_.is_awaited(m)}].insert(m);
  const std::set<size_t> circle = graph_.CirclesFrom(told);
  const bool worse = !ends.empty() && ends.begin()->first.first <= WhyKind::kTrouble;
  if (!circle.empty() && !worse) return BlameCircle(circle);
  if (ends.empty()) {  // Waits this short are work.
    Blame(WhyKind::kWork, told);
    return;
  }
  // A member that only works and that no other waits for is a cause only if there is no other.
  for (const bool alone : {false, true}) {
    for (const auto& [of, members] : ends) {
      const bool bad = of.first <= WhyKind::kTrouble;
      if (of.second == alone || bad) return Blame(of.first, members);
    }
  }
}

}  // namespace

const char* WhyKindName(WhyKind kind) {
  constexpr std::array kNames = {"missing", "lost",  "silent",  "deaf",   "trouble",
                                 "link",    "group", "cycle",   "data",   "disk",
                                 "work",    "rows",  "between", "nothing"};
  return kNames[static_cast<size_t>(kind)];
}

Explanation Explain(const WhyFacts& facts) { return Why(facts).Answer(); }

std::string Duration(int64_t ms) {
  char text[64];
  const int64_t s = ms / 1000;
  if (s < 60) {
    std::snprintf(text, sizeof(text), "%.1f s", static_cast<double>(ms) / 1000);
  } else if (s < 3600) {
    std::snprintf(text, sizeof(text), "%lld min %lld s", static_cast<long long>(s / 60),
                  static_cast<long long>(s % 60));
  } else {
    std::snprintf(text, sizeof(text), "%lld h %lld min", static_cast<long long>(s / 3600),
                  static_cast<long long>(s % 3600 / 60));
  }
  return text;
}

}  // namespace hdps
