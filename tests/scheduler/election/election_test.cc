// Tests the election against a model of etcd: lost answers, late answers, jumps of the clock.
#include "scheduler/election/election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/platform/random.h"
#include "tests/scheduler/election/etcd_model.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using Kind = EtcdRequest::Kind;
using Stand = Election::Stand;

ElectionOptions OptionsOf(const std::string& address) {
  ElectionOptions options;
  options.address = address;
  return options;
}

class ElectionTest : public testing::Test {
 protected:
  // Answers what `election` asks at once, until it asks nothing at `now_`.
  void Settle(Election& election) {
    while (const auto request = election.TakeRequest(now_)) {
      election.OnAnswer(now_, etcd_.Do(*request, now_));
    }
  }
  // Lets `ms` pass in small steps.
  void Pass(std::vector<Election*> elections, TimeMs ms) {
    for (const TimeMs until = now_ + ms; now_ < until; now_ += 50) {
      for (Election* const election : elections) Settle(*election);
    }
  }
  // Gives no answers for `ms`.
  void Fail(Election& election, TimeMs ms, Status fault = {Code::kUnavailable, "no route"}) {
    for (const TimeMs until = now_ + ms; now_ < until; now_ += 50) {
      if (election.TakeRequest(now_)) election.OnAnswer(now_, fault);
    }
  }

  EtcdModel etcd_;
  TimeMs now_ = 1000;
};

TEST_F(ElectionTest, TheFirstLeadsAndTheOtherFollowsWhenItIsGone) {
  Election a(OptionsOf("tcp://a:1"), now_), b(OptionsOf("tcp://b:1"), now_);
  Settle(a);
  ASSERT_EQ(a.stand(), Stand::kLeads);
  const int64_t reign = a.reign();
  Pass({&a, &b}, 60'000);
  EXPECT_EQ(a.stand(), Stand::kLeads);
  EXPECT_EQ(a.reign(), reign);
  ASSERT_EQ(b.stand(), Stand::kCandidate);
  EXPECT_EQ(b.Awaited(now_), "the scheduler at tcp://a:1 leads");
  const TimeMs gone = now_;
  while (b.stand() == Stand::kCandidate && now_ < gone + 60'000) Pass({&b}, 50);
  EXPECT_EQ(b.stand(), Stand::kLeads);
  EXPECT_GT(b.reign(), reign);
  EXPECT_GE(now_, a.leads_until());
  EXPECT_LE(now_ - gone, 6000);  // The lease, and one look.
  Settle(a);
  EXPECT_EQ(a.stand(), Stand::kLost);
}

TEST_F(ElectionTest, TheLeaseCountsFromTheRequestAndHasAMargin) {
  Election a(OptionsOf("a"), now_);
  Settle(a);
  EXPECT_EQ(a.leads_until(), now_ + 4500);
  now_ = a.next();
  const auto request = a.TakeRequest(now_);
  ASSERT_TRUE(request && request->kind == Kind::kKeepAlive);
  const TimeMs sent = now_;
  now_ += 2000;  // The answer takes long.
  a.OnAnswer(now_, etcd_.Do(*request, sent));
  EXPECT_EQ(a.leads_until(), sent + 4500);
}

TEST_F(ElectionTest, WhoIsSilentForItsLeaseHasLostAlsoIfEtcdAnswersAgain) {
  Election a(OptionsOf("a"), now_);
  Settle(a);
  Fail(a, 4000);
  EXPECT_EQ(a.stand(), Stand::kLeads);
  Fail(a, 700);
  EXPECT_EQ(a.stand(), Stand::kLost);
  EXPECT_THAT(a.why_lost(), HasSubstr("lease of 5 s at etcd was not renewed in time: no route"));
  EXPECT_TRUE(etcd_.Leader(now_));  // Its key is still there.
  Settle(a);
  EXPECT_EQ(a.stand(), Stand::kLost);
}

TEST_F(ElectionTest, AnAnswerThatComesAfterTheLeaseIsTooLate) {
  Election a(OptionsOf("a"), now_);
  Settle(a);
  now_ = a.next();
  const auto request = a.TakeRequest(now_);
  ASSERT_TRUE(request);
  const EtcdAnswer answer = etcd_.Do(*request, now_);
  now_ = a.leads_until();  // The process was stopped meanwhile.
  a.OnAnswer(now_, answer);
  EXPECT_EQ(a.stand(), Stand::kLost);
}

TEST_F(ElectionTest, AJumpOfTheClockEndsTheLead) {
  Election a(OptionsOf("a"), now_);
  Settle(a);
  now_ += 3'600'000;
  EXPECT_FALSE(a.TakeRequest(now_));
  EXPECT_EQ(a.stand(), Stand::kLost);
}

TEST_F(ElectionTest, ALostAnswerToTheCampaignIsFoundOut) {
  Election a(OptionsOf("a"), now_);
  for (const Kind kind : {Kind::kLook, Kind::kGrant}) {
    const auto request = a.TakeRequest(now_);
    ASSERT_TRUE(request && request->kind == kind);
    a.OnAnswer(now_, etcd_.Do(*request, now_));
  }
  const auto campaign = a.TakeRequest(now_);
  ASSERT_TRUE(campaign && campaign->kind == Kind::kCampaign);
  EXPECT_TRUE(etcd_.Do(*campaign, now_).succeeded);
  a.OnAnswer(now_, Status(Code::kUnavailable, "the answer was lost"));
  EXPECT_EQ(a.stand(), Stand::kCandidate);
  Pass({&a}, 1000);
  EXPECT_EQ(a.stand(), Stand::kLeads);
}

TEST_F(ElectionTest, WhoIsElectedTooLateForItsLeaseDoesNotLead) {
  Election a(OptionsOf("a"), now_);
  for (int i = 0; i < 3; ++i) a.OnAnswer(now_, etcd_.Do(*a.TakeRequest(now_), now_));
  const auto look = a.TakeRequest(now_);
  ASSERT_TRUE(look && look->kind == Kind::kLook);
  const EtcdAnswer answer = etcd_.Do(*look, now_);
  now_ += 4600;
  a.OnAnswer(now_, answer);
  EXPECT_EQ(a.stand(), Stand::kCandidate);
  Pass({&a}, 2000);
  EXPECT_EQ(a.stand(), Stand::kLeads);  // Under another lease.
  EXPECT_GT(a.leads_until(), now_);
}

TEST_F(ElectionTest, ALeaderWhoseKeyWasRemovedHasLost) {
  Election a(OptionsOf("a"), now_);
  Settle(a);
  etcd_.RemoveLeader();
  Pass({&a}, 2000);
  EXPECT_EQ(a.stand(), Stand::kLost);
  EXPECT_EQ(a.why_lost(), "its key was removed from etcd");
}

TEST_F(ElectionTest, TheEndIsForThoseWhoWaitAndNotForALaterRun) {
  Election a(OptionsOf("a"), now_), b(OptionsOf("b"), now_);
  Settle(a);
  Pass({&a, &b}, 500);
  EXPECT_TRUE(etcd_.Do(a.EndRequest(2, "the job\nis wrong"), now_).succeeded);
  Pass({&b}, 1000);
  ASSERT_EQ(b.stand(), Stand::kOver);
  EXPECT_EQ(b.end().exit_status, 2);
  EXPECT_EQ(b.end().reason, "the job\\x0ais wrong");
  Election c(OptionsOf("c"), now_), d(OptionsOf("d"), now_);
  Pass({&c, &d}, 1000);
  EXPECT_EQ(c.stand(), Stand::kLeads);
  EXPECT_EQ(d.stand(), Stand::kCandidate);
}

TEST_F(ElectionTest, ACandidateThatMissedTheEndDoesNotBeginAnew) {
  Election a(OptionsOf("a"), now_), b(OptionsOf("b"), now_);
  Settle(a);
  Pass({&a, &b}, 500);
  ASSERT_EQ(b.stand(), Stand::kCandidate);
  now_ += 5000;  // The lease of `a` ends, and `b` is about to campaign.
  std::optional<EtcdRequest> request;
  while ((request = b.TakeRequest(now_)) && request->kind != Kind::kCampaign) {
    b.OnAnswer(now_, etcd_.Do(*request, now_));
  }
  ASSERT_TRUE(request);
  Election c(OptionsOf("c"), now_);
  Settle(c);
  ASSERT_TRUE(etcd_.Do(c.EndRequest(0, "done"), now_).succeeded);
  EXPECT_FALSE(etcd_.Do(*request, now_).succeeded);
}

TEST_F(ElectionTest, ADamagedEndIsAFailure) {
  Election a(OptionsOf("a"), now_), b(OptionsOf("b"), now_);
  Settle(a);
  Pass({&a, &b}, 500);
  EtcdRequest end = a.EndRequest(0, "");
  end.text = "\x01 nonsense";
  etcd_.Do(end, now_);
  Pass({&b}, 1000);
  ASSERT_EQ(b.stand(), Stand::kOver);
  EXPECT_EQ(b.end().exit_status, 3);
  EXPECT_THAT(b.end().reason, HasSubstr("\\x01 nonsense"));
}

TEST_F(ElectionTest, WhoLeavesLetsAnotherLeadAtOnce) {
  Election a(OptionsOf("a"), now_), b(OptionsOf("b"), now_);
  Settle(a);
  Pass({&a, &b}, 500);
  etcd_.Do(a.LeaveRequest(), now_);
  Pass({&b}, 600);
  EXPECT_EQ(b.stand(), Stand::kLeads);
}

TEST_F(ElectionTest, ACandidateThatEtcdRefusesFailsAtOnceAndOneWithoutAnswersLater) {
  Election refused(OptionsOf("a"), now_);
  Fail(refused, 50, {Code::kInvalidArgument, "wrong password"});
  ASSERT_EQ(refused.stand(), Stand::kFailed);
  EXPECT_EQ(refused.fault().code(), Code::kInvalidArgument);
  ElectionOptions options = OptionsOf("b");
  options.patience_ms = 20'000;
  Election alone(options, now_);
  Fail(alone, 19'000);
  EXPECT_EQ(alone.stand(), Stand::kCandidate);
  EXPECT_EQ(alone.Awaited(now_), "etcd has not answered for 19 s of 20: no route");
  Fail(alone, 2000);
  ASSERT_EQ(alone.stand(), Stand::kFailed);
  EXPECT_EQ(alone.fault().code(), Code::kUnavailable);
  EXPECT_THAT(alone.fault().message(), HasSubstr("has not answered for 20 s"));
}

// A scheduler process of the random runs: it stands still at times, and what it sends and receives
// takes time or is lost.
struct Process {
  explicit Process(const ElectionOptions& options, TimeMs now) : election(options, now) {}
  Election election;
  std::optional<EtcdRequest> request;  // Under way to etcd.
  std::optional<Result<EtcdAnswer>> answer;
  TimeMs arrives = 0, answered = 0, stands_until = 0;
};

// What came of a random run.
struct RandomRun {
  int reigns = 0;       // Times that a process began to lead.
  TimeMs two_lead = 0;  // Milliseconds in which two led.
  TimeMs one_leads = 0;
  bool reigns_grow = true;
};

class RandomElections {
 public:
  RandomElections(uint64_t seed, ElectionSabotage sabotage) : random_(seed) {
    options_.sabotage = sabotage;
    for (int i = 0; i < 3; ++i) processes_.push_back(std::make_unique<Process>(options_, now_));
  }

  RandomRun Go(TimeMs for_ms) {
    RandomRun run;
    int64_t newest = 0;
    for (const TimeMs end = now_ + for_ms; now_ < end; now_ += kStepMs) {
      int leaders = 0;
      for (std::unique_ptr<Process>& process : processes_) {
        Step(*process);
        if (process->election.stand() == Stand::kLost) {  // Its unit starts it again.
          process = std::make_unique<Process>(options_, now_);
        }
        // A process that stands still leads as long as its clock says: it may wake up any time.
        const Election& election = process->election;
        if (election.stand() != Stand::kLeads || now_ >= election.leads_until()) continue;
        ++leaders;
        if (election.reign() > newest) {
          newest = election.reign();
          ++run.reigns;
        } else if (election.reign() < newest) {
          run.reigns_grow = false;
        }
      }
      run.one_leads += leaders >= 1 ? kStepMs : 0;
      run.two_lead += leaders >= 2 ? kStepMs : 0;
    }
    return run;
  }

 private:
  static constexpr TimeMs kStepMs = 10;

  TimeMs Latency() {
    return static_cast<TimeMs>(random_.Below(20) == 0 ? random_.Below(3000) : random_.Below(40));
  }

  void Step(Process& process) {
    if (process.request && now_ >= process.arrives) {
      const bool away = now_ / 20'000 % 5 == 4;
      if (!away && random_.Below(10) > 0) {  // Else the request is lost.
        process.answer = etcd_.Do(*process.request, now_);
      }
      process.answered = now_ + Latency();
      if (!process.answer || random_.Below(10) == 0) {
        process.answer = Result<EtcdAnswer>(Status(Code::kUnavailable, "lost"));
      }
      process.request.reset();
    }
    if (now_ < process.stands_until) return;
    if (random_.Below(600) == 0)
      process.stands_until = now_ + static_cast<TimeMs>(random_.Below(12'000));
    if (process.answer && now_ >= process.answered) {
      process.election.OnAnswer(now_, *process.answer);
      process.answer.reset();
    }
    if (process.request || process.answer) return;
    process.request = process.election.TakeRequest(now_);
    process.arrives = now_ + Latency();
  }

  Random random_;
  ElectionOptions options_;
  EtcdModel etcd_;
  TimeMs now_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
};

TEST(RandomElectionsTest, TwoNeverLeadAtOnceAndSomebodyLeadsMostOfTheTime) {
  constexpr int kSeeds = 40;
  constexpr TimeMs kForMs = 400'000;
  int reigns = 0;
  TimeMs led = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RandomRun run = RandomElections(seed, {}).Go(kForMs);
    EXPECT_EQ(run.two_lead, 0) << "seed " << seed;
    EXPECT_TRUE(run.reigns_grow) << "seed " << seed;
    reigns += run.reigns;
    led += run.one_leads;
  }
  std::printf("figure: elections: %d in %d runs, somebody led %.0f %% of the time\n", reigns,
              kSeeds, 100.0 * static_cast<double>(led) / (kForMs * kSeeds));
  EXPECT_GT(reigns, kSeeds * 3);
  EXPECT_GT(led, kForMs * kSeeds / 4);
}

TEST(RandomElectionsTest, ALeaseThatCountsFromItsAnswerIsNoticed) {
  TimeMs two_lead = 0;
  for (uint64_t seed = 1; seed <= 40 && two_lead == 0; ++seed) {
    two_lead = RandomElections(seed, {.leads_from_answer = true}).Go(400'000).two_lead;
  }
  EXPECT_GT(two_lead, 0);
}

TEST_F(ElectionTest, ACandidateThatIgnoresTheEndIsNoticed) {
  ElectionOptions careless = OptionsOf("b");
  careless.sabotage.end_is_ignored = true;
  Election a(OptionsOf("a"), now_), b(careless, now_);
  Settle(a);
  Pass({&a, &b}, 500);
  etcd_.Do(a.EndRequest(0, "done"), now_);
  Pass({&b}, 1000);
  EXPECT_EQ(b.stand(), Stand::kLeads);
}

}  // namespace
}  // namespace hdps
