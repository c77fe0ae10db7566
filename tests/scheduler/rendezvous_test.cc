// Tests which processes are admitted, with which rank, and what the others are told.
#include "scheduler/members/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/net/address.h"
#include "common/platform/random.h"
#include "common/protocol/message_frames.h"
#include "scheduler/members/membership.h"
#include "scheduler/members/validate_cluster.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RendezvousOptions Options(uint32_t servers, uint32_t workers) {
  return {.num_servers = servers,
          .num_workers = workers,
          .num_shards = 8,
          .job_digest = 77,
          .dead_after_ms = 1000};
}

JoinRequest Request(Role role, const std::string& host, int32_t rank = -1) {
  JoinRequest request;
  request.role = role;
  request.rank = rank;
  request.job_digest = 77;
  request.host = host;
  if (role == Role::kServer) request.address = "tcp://" + host + ":1";
  return request;
}

std::string Refusal(Rendezvous& rendezvous, uint64_t peer, const JoinRequest& request) {
  const std::optional<JoinRefused> refused = rendezvous.Admit({peer}, request, 0);
  if (!refused) return "";
  EXPECT_EQ(refused->exit_status, 2);
  return refused->message;
}

TEST(Rendezvous, RanksDoNotDependOnTheOrderOfArrival) {
  std::vector<std::pair<uint64_t, JoinRequest>> arrivals = {
      {11, Request(Role::kServer, "b")},  {12, Request(Role::kServer, "a")},
      {21, Request(Role::kWorker, "w2")}, {22, Request(Role::kWorker, "w1")},
      {23, Request(Role::kWorker, "w1")}, {24, Request(Role::kWorker, "w0", 2)},
  };
  std::sort(arrivals.begin(), arrivals.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  do {
    Rendezvous rendezvous(Options(2, 4));
    for (const auto& [peer, request] : arrivals) {
      EXPECT_FALSE(rendezvous.complete());
      EXPECT_EQ(Refusal(rendezvous, peer, request), "");
    }
    ASSERT_TRUE(rendezvous.complete());
    const View view = rendezvous.FormView({1});
    ASSERT_EQ(view.servers.size(), 2u);
    EXPECT_EQ(view.servers[0].peer, PeerId{12});
    EXPECT_EQ(view.servers[1].peer, PeerId{11});
    ASSERT_EQ(view.workers.size(), 4u);
    // Rank 2 was requested; the others stand by (host, peer).
    const uint64_t expected[] = {22, 23, 24, 21};
    for (uint32_t r = 0; r < 4; ++r) {
      EXPECT_EQ(view.workers[r].rank, r);
      EXPECT_EQ(view.workers[r].peer.value, expected[r]);
    }
  } while (std::next_permutation(arrivals.begin(), arrivals.end(),
                                 [](const auto& a, const auto& b) { return a.first < b.first; }));
}

TEST(Rendezvous, ShardsAreSpreadInEvenContiguousRuns) {
  for (uint32_t servers = 1; servers <= 8; ++servers) {
    Rendezvous rendezvous(Options(servers, 1));
    for (uint32_t s = 0; s < servers; ++s) {
      ASSERT_EQ(Refusal(rendezvous, 10 + s, Request(Role::kServer, "h" + std::to_string(s))), "");
    }
    ASSERT_EQ(Refusal(rendezvous, 99, Request(Role::kWorker, "w")), "");
    const ShardMap shards = rendezvous.FormView({1}).shards;
    ASSERT_EQ(shards.num_shards(), 8u);
    std::map<uint32_t, uint32_t> counts;
    for (uint32_t s = 0; s < 8; ++s) {
      ++counts[shards.owner[s].value];
      if (s > 0) {
        EXPECT_GE(shards.owner[s], shards.owner[s - 1]);
      }
    }
    EXPECT_EQ(counts.size(), servers);
    for (const auto& [server, count] : counts) {
      EXPECT_GE(count, 8 / servers);
      EXPECT_LE(count, (8 + servers - 1) / servers);
    }
  }
}

TEST(Rendezvous, ExplicitRanksAreHonouredAndAnotherJobsMembersRefused) {
  Rendezvous rendezvous(Options(1, 4));
  EXPECT_EQ(Refusal(rendezvous, 1, Request(Role::kWorker, "first:1", 3)), "");
  // The same request again is accepted too.
  EXPECT_EQ(Refusal(rendezvous, 1, Request(Role::kWorker, "first:1", 3)), "");
  EXPECT_THAT(
      Refusal(rendezvous, 2, Request(Role::kWorker, "second:2", 3)),
      AllOf(HasSubstr("rank 3"), HasSubstr("first:1"), HasSubstr("second:2"), HasSubstr("--rank")));
  EXPECT_THAT(Refusal(rendezvous, 3, Request(Role::kWorker, "x", 4)),
              AllOf(HasSubstr("rank 4"), HasSubstr("0 to 3")));
  JoinRequest other = Request(Role::kWorker, "x");
  other.job_digest = 0xabc;
  // A message with the scheduler's digest, 4d, would let any reader in.
  EXPECT_THAT(Refusal(rendezvous, 4, other),
              AllOf(HasSubstr("0000000000000abc"), Not(HasSubstr("4d"))));
  JoinRequest told = Request(Role::kWorker, "x");
  told.num_workers = 5;
  EXPECT_THAT(Refusal(rendezvous, 5, told),
              AllOf(HasSubstr("--workers=5"), HasSubstr("--workers=4")));
  told = Request(Role::kServer, "x");
  told.num_servers = 2;
  EXPECT_THAT(Refusal(rendezvous, 6, told),
              AllOf(HasSubstr("--servers=2"), HasSubstr("--servers=1")));
  JoinRequest nowhere = Request(Role::kServer, "x");
  nowhere.address.clear();
  EXPECT_THAT(Refusal(rendezvous, 7, nowhere), HasSubstr("listens"));
}

TEST(Rendezvous, SurplusMembersAreRefusedBeforeAndAfterItIsComplete) {
  Rendezvous rendezvous(Options(1, 2));
  EXPECT_EQ(Refusal(rendezvous, 1, Request(Role::kWorker, "a")), "");
  EXPECT_EQ(Refusal(rendezvous, 2, Request(Role::kWorker, "b")), "");
  EXPECT_THAT(Refusal(rendezvous, 3, Request(Role::kWorker, "c")),
              HasSubstr("the job has its 2 workers"));
  EXPECT_EQ(Refusal(rendezvous, 4, Request(Role::kServer, "d")), "");
  ASSERT_TRUE(rendezvous.complete());
  EXPECT_THAT(Refusal(rendezvous, 3, Request(Role::kWorker, "c")), HasSubstr("has its 2 workers"));
  EXPECT_THAT(Refusal(rendezvous, 5, Request(Role::kServer, "e")), HasSubstr("has its 1 server"));
  EXPECT_EQ(Refusal(rendezvous, 1, Request(Role::kWorker, "a")), "");
}

TEST(Rendezvous, WhoGivesNoNameIsCalledByItsRole) {
  Rendezvous rendezvous(Options(1, 1));
  EXPECT_EQ(Refusal(rendezvous, 1, Request(Role::kWorker, "", 0)), "");
  EXPECT_THAT(Refusal(rendezvous, 2, Request(Role::kWorker, "", 0)),
              HasSubstr("is taken: by a worker, and a worker asks for it too"));
  EXPECT_THAT(Refusal(rendezvous, 3, Request(Role::kWorker, "")),
              HasSubstr("has its 1 worker, so a worker is one too many"));
  EXPECT_EQ(rendezvous.Present(), "worker 0");
  EXPECT_THAT(rendezvous.Expire(1001), ElementsAre("worker"));
}

TEST(Rendezvous, TellsWhoIsMissing) {
  Rendezvous rendezvous(Options(2, 4));
  EXPECT_EQ(rendezvous.Missing(), "2 of 2 servers and 4 of 4 workers");
  EXPECT_EQ(rendezvous.Present(), "nobody");
  Refusal(rendezvous, 1, Request(Role::kWorker, "a", 0));
  Refusal(rendezvous, 2, Request(Role::kWorker, "b", 2));
  Refusal(rendezvous, 3, Request(Role::kServer, "c"));
  EXPECT_EQ(rendezvous.Missing(), "1 of 2 servers and 2 of 4 workers (worker 1, worker 3)");
  EXPECT_EQ(rendezvous.Present(), "server (c), worker 0 (a), worker 2 (b)");
  Refusal(rendezvous, 4, Request(Role::kWorker, "d"));
  EXPECT_EQ(rendezvous.Missing(), "1 of 2 servers and 1 of 4 workers");
}

TEST(Rendezvous, ASilentCandidateGivesUpItsPlace) {
  Rendezvous rendezvous(Options(1, 1));
  EXPECT_FALSE(rendezvous.Admit({1}, Request(Role::kWorker, "a", 0), 100));
  EXPECT_TRUE(rendezvous.Admit({2}, Request(Role::kWorker, "b", 0), 1000));
  EXPECT_THAT(rendezvous.Expire(1100), IsEmpty());
  EXPECT_THAT(rendezvous.Expire(1101), ElementsAre("worker (a)"));
  EXPECT_FALSE(rendezvous.Admit({2}, Request(Role::kWorker, "b", 0), 1200));
  rendezvous.ForgiveSilence(5000);
  EXPECT_THAT(rendezvous.Expire(7000), IsEmpty());
  EXPECT_FALSE(rendezvous.Admit({3}, Request(Role::kServer, "c"), 7000));
  // The members of a view keep their places: Membership watches for their silence.
  rendezvous.Settle(rendezvous.FormView({1}));
  EXPECT_THAT(rendezvous.Expire(90000), IsEmpty());
}

TEST(Rendezvous, WhoWentSilentBeforeAViewHadItGivesUpItsPlaceAlsoWhereNobodyIsMissing) {
  Rendezvous rendezvous(Options(1, 1));
  rendezvous.Admit({11}, Request(Role::kServer, "a"), 0);
  rendezvous.Admit({21}, Request(Role::kWorker, "b"), 0);
  rendezvous.Settle(rendezvous.FormView({1}));
  rendezvous.OpenPlaces(Role::kWorker, 2);
  rendezvous.Admit({22}, Request(Role::kWorker, "c"), 5000);
  ASSERT_TRUE(rendezvous.complete());
  EXPECT_THAT(rendezvous.Expire(6000), IsEmpty());
  EXPECT_THAT(rendezvous.Expire(6001), ElementsAre("worker (c)"));
  EXPECT_FALSE(rendezvous.complete());
  EXPECT_EQ(Refusal(rendezvous, 23, Request(Role::kWorker, "d")), "");
  EXPECT_TRUE(rendezvous.complete());
}

TEST(Rendezvous, OneThatWasOnlySilentGetsAnotherPlaceIfItsOwnIsTaken) {
  Rendezvous rendezvous(Options(1, 2));
  rendezvous.Admit({11}, Request(Role::kServer, "a"), 0);
  rendezvous.Admit({21}, Request(Role::kWorker, "b", 0), 0);
  rendezvous.Admit({22}, Request(Role::kWorker, "c", 1), 0);
  rendezvous.Settle(rendezvous.FormView({1}));
  rendezvous.Vacate({21});
  rendezvous.Vacate({22});
  EXPECT_EQ(Refusal(rendezvous, 23, Request(Role::kWorker, "d", 0)), "");
  EXPECT_TRUE(rendezvous.Return({21}, 2000));
  EXPECT_FALSE(rendezvous.Return({22}, 2000)) << "there is no third place";
  const View view = rendezvous.FormView({2});
  EXPECT_EQ(view.workers[0].peer, PeerId{23});
  EXPECT_EQ(view.workers[1].peer, PeerId{21});
}

TEST(Rendezvous, AMemberThatCameBackAndWentSilentAgainMayComeBackOnceMore) {
  Rendezvous rendezvous(Options(1, 2));
  EXPECT_EQ(Refusal(rendezvous, 11, Request(Role::kServer, "a")), "");
  EXPECT_EQ(Refusal(rendezvous, 21, Request(Role::kWorker, "b")), "");
  EXPECT_EQ(Refusal(rendezvous, 22, Request(Role::kWorker, "c")), "");
  ASSERT_TRUE(rendezvous.complete());
  rendezvous.Settle(rendezvous.FormView({1}));
  rendezvous.Vacate({21});
  rendezvous.Vacate({22});
  ASSERT_TRUE(rendezvous.Return({21}, 2000));
  EXPECT_EQ(rendezvous.Expire(3500).size(), 1u);
  EXPECT_FALSE(rendezvous.Has({21}));
  EXPECT_TRUE(rendezvous.Return({21}, 4000));
  EXPECT_TRUE(rendezvous.Return({22}, 4000));
  EXPECT_TRUE(rendezvous.complete());
}

TEST(Rendezvous, AnotherProcessOfTheSchedulerKnowsThatTheRunIsRecorded) {
  for (const bool records : {false, true}) {
    JoinRequest server = Request(Role::kServer, "a");
    server.records = records;
    Rendezvous before(Options(1, 1));
    EXPECT_EQ(Refusal(before, 11, server), "");
    EXPECT_EQ(Refusal(before, 21, Request(Role::kWorker, "w")), "");
    std::map<PeerId, MemberProcess> processes;
    for (const PeerId peer : before.peers()) processes[peer] = before.ProcessOf(peer);
    Rendezvous after(Options(1, 1));
    after.Restore(before.FormView({1}), processes, 0);
    EXPECT_EQ(after.recorded(), records);
  }
}

TEST(Rendezvous, RefusesAddressesThatNobodyCanDial) {
  Rendezvous rendezvous(Options(1, 1));
  JoinRequest server = Request(Role::kServer, "a");
  for (const auto& [address, needle] : std::map<std::string, std::string>{
           {"", "must say where it listens"},
           {"tcp://a:70000", "no port of 0..65535"},
           {"tcp://a:0", "cannot be dialed"},
           {"tcp://*:7", "cannot be dialed"},
           {"carrier://pigeon", "not known"},
           {"tcp://" + std::string(300, 'h') + ":1", "longer than 272 bytes"},
           {"tcp://a:" + std::string(65000, '0') + "1", "longer than 272 bytes"}}) {
    server.address = address;
    const std::string refusal = Refusal(rendezvous, 10, server);
    EXPECT_THAT(refusal, HasSubstr(needle)) << address.substr(0, 80);
    EXPECT_LT(refusal.size(), 300u);
  }
  JoinRequest worker = Request(Role::kWorker, "w");
  worker.address = "tcp://w:1";
  EXPECT_THAT(Refusal(rendezvous, 20, worker), HasSubstr("listens nowhere"));
}

// The largest cluster that is admitted, each server with the longest possible address.
TEST(Rendezvous, AViewFitsIntoItsMessage) {
  Job job;
  job.cluster.shards = 1u << 15;
  job.train.batch_size = 1u << 20;
  uint32_t servers = job.cluster.shards;
  EXPECT_TRUE(ValidateCluster(job, servers, 1000).ok());
  View view;
  for (uint32_t s = 0; s < servers; ++s) {
    view.servers.push_back({{s + 100}, s, std::string(kAddressBytesMax, 'a')});
  }
  for (uint32_t w = 0; w < 1000; ++w) view.workers.push_back({{w + 1000000}, w, ""});
  for (uint32_t s = 0; s < servers; ++s) view.shards.owner.push_back({s});
  Frame frame = EncodeMessage(view);
  ChecksumFrame(frame);  // Ends the process if it is too long.
  job.cluster.shards = 1u << 16;
  const Status refused = ValidateCluster(job, 1u << 16, 1000);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("--servers=65536 --workers=1000"));
}

class MembershipTest : public ::testing::Test {
 protected:
  MembershipTest() : members_(1000) {
    members_.Enter({.view = {1},
                    .servers = {{{10}, 0, "tcp://a:1"}},
                    .workers = {{{20}, 0, ""}, {{21}, 1, ""}},
                    .shards = {{{0}}},
                    .backups = {}},
                   {{{10}, {"a:1", ""}}, {{20}, {"b:2", ""}}, {{21}, {"c:3", ""}}}, 0);
  }
  static Heartbeat Beat(Clock clock, uint64_t examples, double loss_sum) {
    Heartbeat beat;
    beat.view = {1};
    beat.clock = clock;
    beat.examples = examples;
    beat.loss_sum = loss_sum;
    return beat;
  }
  Membership members_;
};

TEST_F(MembershipTest, WhoIsSilentIsLost) {
  members_.Heard({10}, 500);
  members_.Heard({20}, 900);
  EXPECT_THAT(members_.Lost(1000), IsEmpty());
  EXPECT_THAT(members_.Lost(1200), ElementsAre(PeerId{21}));
  EXPECT_EQ(members_.SilentFor({21}, 1200), 1200);
  EXPECT_THAT(members_.Lost(1501), ElementsAre(PeerId{10}, PeerId{21}));
  members_.Release({21});
  EXPECT_THAT(members_.Lost(1501), ElementsAre(PeerId{10}));
  members_.ForgiveSilence(600);
  EXPECT_THAT(members_.Lost(1501), IsEmpty());
}

TEST_F(MembershipTest, ARestartForgetsWhatWasDoneAndWhatIsSaidOfItLater) {
  Heartbeat beat = Beat(5, 50, 5.5);
  beat.view = {1};
  members_.OnHeartbeat({20}, beat, 0);
  members_.OnHeartbeat({21}, beat, 0);
  Heartbeat server;
  server.view = {1};
  server.staleness_max = 3;
  members_.OnHeartbeat({10}, server, 0);
  members_.Enter({.view = {2},
                  .servers = {{{11}, 0, "tcp://a:2"}},
                  .workers = {{{20}, 0, ""}, {{21}, 1, ""}},
                  .shards = {{{0}}},
                  .restarts = 1,
                  .backups = {}},
                 {{{11}, {"a:2", ""}}, {{20}, {"b:2", ""}}, {{21}, {"c:3", ""}}}, 700);
  EXPECT_FALSE(members_.Has({10}));
  EXPECT_EQ(members_.NameOf({11}), "server 0 (a:2)");
  EXPECT_EQ(members_.progress().clock, 0);
  members_.OnHeartbeat({20}, beat, 0);  // It was on its way.
  EXPECT_EQ(members_.WorkerClock(0), 0);
  beat = Beat(2, 20, 2.5);
  beat.view = {2};
  members_.OnHeartbeat({20}, beat, 0);
  EXPECT_EQ(members_.WorkerClock(0), 2);
  EXPECT_EQ(members_.staleness_max(), 3u);  // From a server that is gone.
  EXPECT_EQ(members_.SilentFor({11}, 800), 100);
}

TEST_F(MembershipTest, ProgressNeverGoesBack) {
  members_.OnHeartbeat({20}, Beat(5, 50, 5.5), 0);
  members_.OnHeartbeat({21}, Beat(4, 40, 4.5), 0);
  members_.OnHeartbeat({20}, Beat(3, 30, 3.5), 0);  // Overtaken on the way.
  EXPECT_EQ(members_.progress().clock, 4);
  EXPECT_EQ(members_.progress().examples, 90u);
  EXPECT_DOUBLE_EQ(members_.progress().loss_sum, 10);
  EXPECT_EQ(members_.WorkerClock(0), 5);
  Heartbeat server;
  server.view = {1};
  server.staleness_max = 3;
  members_.OnHeartbeat({10}, server, 0);
  server.staleness_max = 0;
  members_.OnHeartbeat({10}, server, 0);
  EXPECT_EQ(members_.staleness_max(), 3u);
}

TEST_F(MembershipTest, TalliesOfKeptRowsAddUpOverWorkers) {
  EXPECT_EQ(members_.cache(), CacheTally());
  Heartbeat beat = Beat(5, 50, 5.5);
  beat.cache = {100, 60, 7, 4096};
  members_.OnHeartbeat({20}, beat, 0);
  members_.OnCache({21}, {200, 150, 7, 4096});
  members_.OnHeartbeat({21}, Beat(6, 60, 6.5), 0);  // Sent before the answer, arrived after it.
  EXPECT_EQ(members_.cache(), (CacheTally{300, 210, 14, 8192}));
}

}  // namespace
}  // namespace hdps
