// Tests hangs as a scheduler reports them: each is explained with the name of the member at fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/why/explanation.h"
#include "scheduler/why/wait_graph.h"
#include "scheduler/why/why_facts.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

// Members are 0, 1 (servers) and 2, 3, 4 (workers); these numbers are also their peer ids.
constexpr uint64_t kServer0 = 0, kServer1 = 1, kWorker0 = 2, kWorker1 = 3, kWorker2 = 4;

Activity At(const std::string& stage, WaitReason reason, int64_t for_ms,
            std::vector<uint64_t> awaited) {
  Activity activity;
  activity.stage = stage;
  activity.wait_reason = reason;
  activity.for_ms = for_ms;
  for (const uint64_t peer : awaited) activity.awaited.push_back({PeerId{peer}, for_ms});
  return activity;
}

// Returns the status of a job in training in which no member waits.
StatusReply Training() {
  StatusReply status;
  status.job = "census";
  status.state = "train";
  status.view = {1};
  status.clock = 40;
  status.heartbeat_ms = 100;
  for (uint64_t m = kServer0; m <= kWorker2; ++m) {
    MemberStatus member;
    const bool server = m < kWorker0;
    member.name = (server ? "server " + std::to_string(m) : "worker " + std::to_string(m - 2)) +
                  " (host " + std::to_string(m) + ")";
    member.clock = 40;
    member.silent_ms = 40;
    member.number = m;
    member.activity = server ? At("serve", WaitReason::kCommand, 100, {})
                             : At("compute", WaitReason::kNone, 100, {});
    if (!server) member.pending_command = "train";
    status.members.push_back(std::move(member));
  }
  return status;
}

struct Hang {
  const char* name;
  std::function<void(StatusReply&)> make;
  WhyKind kind;
  std::vector<std::string> causes;
  std::vector<const char*> said;
};

void Waits(StatusReply& s, uint64_t member, const std::string& stage, std::vector<uint64_t> awaited,
           WaitReason reason = WaitReason::kMembers, int64_t for_ms = 3200) {
  s.members[member].activity = At(stage, reason, for_ms, std::move(awaited));
}

// All workers but `late` have pushed and wait for rows.
void WaitsForTheStepOf(StatusReply& s, uint64_t late) {
  for (const uint64_t server : {kServer0, kServer1}) Waits(s, server, "serve", {late});
  for (const uint64_t worker : {kWorker0, kWorker1, kWorker2}) {
    if (worker != late) Waits(s, worker, "pull", {kServer0, kServer1});
  }
}

// The job stands, or a member is not well.
std::vector<Hang> HangsOfTheUnwell() {
  return {
      {"a member has not come",
       [](StatusReply& s) {
         s.view = {0};
         s.members.clear();
         s.want = Want::kFirst;
         s.missing = "1 of 3 workers (worker 1)";
         s.missing_ms = 61'500;
         s.patience_ms = 500'000;
         s.reason = "host-b 17 was refused: another job";
       },
       WhyKind::kMissing,
       {},
       {"has waited 1 min 1 s for 1 of 3 workers (worker 1) to join, for up to 8 min 20 s more",
        "host-b 17 was refused"}},
      {"a lost worker is waited for",
       [](StatusReply& s) {
         s.want = Want::kLost;
         s.missing = "1 of 3 workers (worker 1)";
         s.missing_ms = 4000;
         s.reason = "worker 1 (host 3) is lost: its process has ended";
       },
       WhyKind::kLost,
       {"worker 1"},
       {"worker 1 (host 3) is lost: its process has ended", "Missing for 4.0 s"}},
      {"a worker is silent",
       [](StatusReply& s) {
         WaitsForTheStepOf(s, kWorker1);
         s.members[kWorker1].silent_ms = 4200;
       },
       WhyKind::kSilent,
       {"worker 1"},
       {"server 0, server 1, worker 0 and worker 2 wait for worker 1, which has not been heard of "
        "for 4.2 s; last it was at compute at step 40"}},
      {"a silent server that was waiting itself",
       [](StatusReply& s) {
         WaitsForTheStepOf(s, kWorker1);
         Waits(s, kWorker1, "pull", {kServer1});
         s.members[kServer1].silent_ms = 9000;
       },
       WhyKind::kSilent,
       {"server 1"},
       {"for server 1, which has not been heard of for 9.0 s"}},
      {"two are silent",
       [](StatusReply& s) {
         s.members[kServer1].silent_ms = 5000;
         s.members[kWorker2].silent_ms = 6000;
       },
       WhyKind::kSilent,
       {"server 1", "worker 2"},
       {"the job waits for server 1, which has not been heard of for 5.0 s",
        "and worker 2, which has not been heard of for 6.0 s"}},
      {"a member does not hear the scheduler",
       [](StatusReply& s) { s.members[kWorker2].deaf = true; },
       WhyKind::kDeaf,
       {"worker 2"},
       {"worker 2, which is heard and does not hear the scheduler"}},
      {"a disk is full",
       [](StatusReply& s) {
         for (const uint64_t w : {kWorker0, kWorker1, kWorker2}) Waits(s, w, "pull", {kServer0});
         s.members[kServer0].trouble = "no space for spilled rows";
       },
       WhyKind::kTrouble,
       {"server 0"},
       {"worker 0, worker 1 and worker 2 wait for server 0, which says: no space for spilled "
        "rows"}},
  };
}

// All are well, and one is late.
std::vector<Hang> HangsOfTheLate() {
  return {
      {"a data file hangs",
       [](StatusReply& s) {
         WaitsForTheStepOf(s, kWorker1);
         s.members[kWorker1].activity = At("read", WaitReason::kData, 12'000, {});
         s.members[kWorker1].activity.subject = "part-3.gz";
       },
       WhyKind::kData,
       {"worker 1"},
       {"for worker 1, which has read no example for 12.0 s: stage read, file part-3.gz at step "
        "40"}},
      {"a log has no more rows",
       [](StatusReply& s) {
         for (const uint64_t w : {kWorker0, kWorker1, kWorker2}) {
           s.members[w].activity = At("train", WaitReason::kRows, 61'000, {});
           s.members[w].activity.subject = "log/a.csv:7";
         }
       },
       WhyKind::kRows,
       {"worker 0", "worker 1", "worker 2"},
       {"the job waits for worker 0, which has waited 1 min 1 s for rows after log/a.csv:7"}},
      {"a slow worker under ssp",
       [](StatusReply& s) {
         WaitsForTheStepOf(s, kWorker2);
         s.members[kWorker2].activity.for_ms = 7000;
       },
       WhyKind::kWork,
       {"worker 2"},
       {"for worker 2, which has been at compute for 7.0 s at step 40"}},
      {"all compute",
       [](StatusReply& s) {
         for (const uint64_t w : {kWorker0, kWorker1, kWorker2}) {
           s.members[w].activity.for_ms = 9000;
         }
       },
       WhyKind::kWork,
       {"worker 0", "worker 1", "worker 2"},
       {"the job waits for worker 0, which has been at compute for 9.0 s"}},
      {"a rank does not come to an allreduce",
       [](StatusReply& s) {
         Waits(s, kWorker0, "reduce_dense", {kWorker1, kWorker2}, WaitReason::kGroup);
         Waits(s, kWorker1, "reduce_dense", {kWorker0, kWorker2}, WaitReason::kGroup);
       },
       WhyKind::kWork,
       {"worker 2"},
       {"worker 0 and worker 1 wait for worker 2"}},
  };
}

// No member is late, but messages do not arrive.
std::vector<Hang> OtherHangs() {
  return {
      {"all ranks are in one call",
       [](StatusReply& s) {
         Waits(s, kWorker0, "meet", {kWorker1, kWorker2}, WaitReason::kGroup);
         Waits(s, kWorker1, "meet", {kWorker0, kWorker2}, WaitReason::kGroup);
         Waits(s, kWorker2, "meet", {kWorker0, kWorker1}, WaitReason::kGroup);
       },
       WhyKind::kGroup,
       {"worker 0", "worker 1", "worker 2"},
       {"wait for each other in one call of a collective, stage meet, for 3.2 s"}},
      {"a server hears no request of anybody",
       [](StatusReply& s) {
         for (const uint64_t w : {kWorker0, kWorker1, kWorker2}) Waits(s, w, "pull", {kServer1});
       },
       WhyKind::kLink,
       {"server 1"},
       {"worker 0, worker 1 and worker 2 wait for server 1, which is well and has nothing to do"}},
      {"a worker does not hear its servers",
       [](StatusReply& s) {
         WaitsForTheStepOf(s, kWorker1);
         Waits(s, kWorker1, "push", {kServer0, kServer1});
       },
       WhyKind::kCycle,
       {"worker 1"},
       {"worker 1 and server 0 and server 1 have waited for each other for 3.2 s"}},
  };
}

// The awaited thing is at a server, or nowhere.
std::vector<Hang> HangsBesideSteps() {
  return {
      {"a backup is behind",
       [](StatusReply& s) {
         for (const uint64_t w : {kWorker0, kWorker1, kWorker2}) Waits(s, w, "push", {kServer0});
         Waits(s, kServer0, "serve", {kServer1});
         s.members[kServer1].activity = At("serve", WaitReason::kDisk, 4000, {});
       },
       WhyKind::kDisk,
       {"server 1"},
       {"server 0, worker 0, worker 1 and worker 2 wait for server 1, which has been busy with its "
        "disk for 4.0 s: serve"}},
      {"a checkpoint stalls",
       [](StatusReply& s) {
         s.state = "save";
         for (MemberStatus& member : s.members) member.pending_command = "";
         for (const uint64_t w : {kWorker0, kWorker1, kWorker2}) {
           s.members[w].activity = At("train", WaitReason::kCommand, 5000, {});
         }
         s.members[kServer1].pending_command = "save";
         s.members[kServer1].activity = At("save", WaitReason::kDisk, 5000, {});
         s.members[kServer1].activity.subject = "out/checkpoint/step_40";
       },
       WhyKind::kDisk,
       {"server 1"},
       {"the job waits for server 1, which has been busy with its disk for 5.0 s: save "
        "out/checkpoint/step_40"}},
      {"an answer to the scheduler is lost",
       [](StatusReply& s) {
         for (const uint64_t w : {kWorker0, kWorker2}) s.members[w].pending_command = "";
         for (const uint64_t w : {kWorker0, kWorker1, kWorker2}) {
           s.members[w].activity = At("train", WaitReason::kCommand, 5000, {});
         }
         s.members[kWorker1].pending_ms = 5000;
       },
       WhyKind::kLink,
       {"worker 1"},
       {"the job waits for worker 1, which is well and has nothing to do"}},
      {"the scheduler is at work itself",
       [](StatusReply& s) {
         s.state = "between two commands";
         for (MemberStatus& member : s.members) member.pending_command = "";
       },
       WhyKind::kBetween,
       {},
       {"the scheduler itself is at work between two commands"}},
  };
}

TEST(Why, HangsAreExplainedByName) {
  std::vector<Hang> hangs;
  for (const auto& some :
       {HangsOfTheUnwell(), HangsOfTheLate(), OtherHangs(), HangsBesideSteps()}) {
    hangs.insert(hangs.end(), some.begin(), some.end());
  }
  for (const Hang& hang : hangs) {
    WhyFacts facts{.now = Training(), .before = Training(), .apart_ms = 1000};
    hang.make(facts.now);
    hang.make(*facts.before);
    const Explanation explanation = Explain(facts);
    SCOPED_TRACE(std::string(hang.name) + ": " + explanation.sentence);
    EXPECT_STREQ(WhyKindName(explanation.kind), WhyKindName(hang.kind));
    EXPECT_EQ(explanation.causes, hang.causes);
    EXPECT_TRUE(explanation.waits());
    for (const char* said : hang.said) EXPECT_THAT(explanation.sentence, HasSubstr(said));
    EXPECT_EQ(explanation.sentence.find('\n'), std::string::npos);
    // Without a second answer nothing else is known.
    facts.before.reset();
    EXPECT_EQ(Explain(facts).sentence, explanation.sentence);
  }
  std::printf("[ measured ] %zu hangs explained by name from what a scheduler tells\n",
              hangs.size());
}

TEST(Why, StepsThatAreMadeAreNoWait) {
  WhyFacts facts{.now = Training(), .before = Training(), .apart_ms = 1000};
  facts.before->clock = 28;
  EXPECT_EQ(Explain(facts).sentence, "nothing waits: 12 steps in the last 1.0 s");
  EXPECT_FALSE(Explain(facts).waits());
  EXPECT_EQ(Explain(facts).steps, 12);
  // Other problems are noted too.
  facts.now.want = Want::kNewcomers;
  facts.now.missing = "1 of 3 servers (server 2)";
  facts.now.members[kWorker1].silent_ms = 5000;
  facts.now.members[kServer1].trouble = "a slow disk";
  EXPECT_THAT(Explain(facts).notes,
              ElementsAre(HasSubstr("1 of 3 servers (server 2) to join"),
                          HasSubstr("server 1, which says: a slow disk"),
                          HasSubstr("worker 1, which has not been heard of for 5.0 s")));
  facts.now.want = Want::kCopies;
  facts.now.missing = "group 1 has no copy until a server joins";
  EXPECT_THAT(Explain(facts).notes[0], HasSubstr("group 1 has no copy"));
  // Steps of an earlier view are not progress in this one.
  facts.before->view = {0};
  EXPECT_TRUE(Explain(facts).waits());
}

// Members' reports are some heartbeats old.
TEST(Why, AWaitThatHasJustBegunBlamesNoLink) {
  StatusReply idle = Training();
  for (const uint64_t w : {kWorker0, kWorker1, kWorker2}) {
    Waits(idle, w, "pull", {kServer0}, WaitReason::kMembers, 200);
  }
  EXPECT_EQ(Explain({.now = idle, .before = {}, .apart_ms = 0}).kind, WhyKind::kWork);
  StatusReply told = Training();
  for (const uint64_t w : {kWorker0, kWorker1, kWorker2}) {
    told.members[w].activity = At("train", WaitReason::kCommand, 5000, {});
    told.members[w].pending_ms = 50;
  }
  EXPECT_EQ(Explain({.now = told, .before = {}, .apart_ms = 0}).kind, WhyKind::kWork);
  StatusReply circle = Training();
  WaitsForTheStepOf(circle, kWorker1);
  Waits(circle, kWorker1, "push", {kServer0, kServer1}, WaitReason::kMembers, 20);
  EXPECT_EQ(Explain({.now = circle, .before = {}, .apart_ms = 0}).kind, WhyKind::kWork);
}

TEST(Why, WhatNobodyKnowsLeadsNowhere) {
  StatusReply status = Training();
  Waits(status, kWorker0, "pull", {99, kWorker0});  // A stranger, and itself.
  const WaitGraph graph(status);
  EXPECT_THAT(graph.of(kWorker0), IsEmpty());
  Explain({.now = status, .before = {}, .apart_ms = 0});
  Explain({});
  // Chains of any length, with a cycle at any place.
  StatusReply ring;
  ring.view = {1};
  for (uint64_t m = 0; m < 500; ++m) {
    MemberStatus& member = ring.members.emplace_back();
    member.name = "worker " + std::to_string(m);
    member.number = m;
    member.pending_command = "train";
    member.activity = At("pull", WaitReason::kMembers, 1000, {(m + 1) % 500});
  }
  ring.heartbeat_ms = 100;
  const Explanation explanation = Explain({.now = ring, .before = {}, .apart_ms = 0});
  EXPECT_EQ(explanation.kind, WhyKind::kCycle);
  EXPECT_EQ(explanation.causes.size(), 500u);
  EXPECT_LT(explanation.sentence.size(), 300u);
}

TEST(Why, ATableForPeopleAndJsonForScripts) {
  WhyFacts facts{.now = Training(), .before = {}, .apart_ms = 0};
  WaitsForTheStepOf(facts.now, kWorker1);
  facts.now.members[kWorker1].silent_ms = 64'200;
  const Explanation explanation = Explain(facts);
  const std::string text = ToText(facts.now, explanation);
  EXPECT_THAT(text, HasSubstr("job 'census', view 1, train, every worker has finished step 40\n"));
  EXPECT_THAT(text, HasSubstr("\n  member             step  state    for    waits for           "
                              "told             heard\n"));
  EXPECT_THAT(text, HasSubstr("\n  worker 1 (host 3)  40    compute  0.1 s  -                   "
                              "train 0.0 s ago  1 min 4 s ago\n"));
  const std::string json = ToJson(facts.now, explanation);
  EXPECT_THAT(json, HasSubstr("\"kind\": \"silent\""));
  EXPECT_THAT(json, HasSubstr("\"causes\": [\n    \"worker 1\"\n  ]"));
  EXPECT_EQ(Duration(0), "0.0 s");
  EXPECT_EQ(Duration(3'600'000 * 5 + 60'000 * 7), "5 h 7 min");
}

}  // namespace
}  // namespace hdps
