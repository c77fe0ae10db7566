// Tests a worker that sends each field of each message at its extremes: it loses at most its own
// place, and the job ends like one in which that worker died.
#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>

#include "common/platform/file_system.h"
#include "common/protocol/row_messages.h"
#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/extremes/extreme_member.h"
#include "tests/sim/extremes/extreme_messages.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

constexpr TimeMs kForgivenMs = 600'000;
constexpr uint32_t kAttacker = 1;

enum class Expected { kGood, kRows, kEnd };

// Some extremes are valid: requests that a member may make, and what a worker reports about its
// data and gradients, which it could change anyway. Then the job ends well, but perhaps with other
// rows. A push that names the next step may be read as that before its worker is lost, but not
// after; a pull that names another step reads the rows of that, and changes none.
Expected ExpectedOf(const Extreme& extreme) {
  const std::string what = extreme.message + (extreme.path.empty() ? "" : "." + extreme.path[0]);
  const auto is = [&what](std::initializer_list<const char*> names) {
    return std::ranges::count(names, what) > 0;
  };
  const bool asks =
      extreme.kind == MessageKind::kStopRequest || extreme.kind == MessageKind::kLeaveRequest ||
      extreme.kind == MessageKind::kScaleRequest || extreme.kind == MessageKind::kKvPut;
  if (asks || is({"PullRequest.mode", "PushRequest.rate", "PushRequest.num_examples",
                  "PushRequest.scale_exponent", "CommandDone.end_of_epoch"})) {
    return Expected::kEnd;
  }
  return is({"PushRequest.clock", "PullRequest.clock"}) ? Expected::kRows : Expected::kGood;
}

bool IsAs(const Outcome& outcome, Expected expected) {
  if (expected == Expected::kGood) return outcome.good();
  return outcome.finished && (outcome.exact || expected == Expected::kEnd);
}

ClusterOptions OptionsOf(uint64_t seed) {
  ClusterOptions options;
  options.seed = seed;
  options.mode = Mode::kSync;
  options.num_servers = 2;
  options.num_workers = 3;
  options.weather = {.loss_percent = 0, .repeat_percent = 0, .delay_ms_max = 5, .slow_percent = 0};
  options.checkpoint_every = 4;
  options.replicas = seed % 3 == 0 ? 1 : 0;
  options.judged = seed % 2 == 0;
  if (options.judged) options.epochs = 8;
  options.lookahead = seed % 2 == 0 ? 1 : 0;
  options.restart_after_ms = 300;
  return options;
}

struct Said {
  Outcome outcome;
  bool sent = false, itself_lost = false;
  std::string others_lost;
};

Said Say(const ExtremeMessages& messages, const Extreme& extreme, uint64_t seed) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const ClusterOptions options = OptionsOf(seed);
  Cluster cluster(options, files.get());
  std::map<Place, PeerId> before;
  for (uint32_t s = 0; s < options.num_servers; ++s) {
    before[{Role::kServer, s}] = cluster.PeerOf(Role::kServer, s);
  }
  for (uint32_t w = 0; w < options.num_workers; ++w) {
    before[{Role::kWorker, w}] = cluster.PeerOf(Role::kWorker, w);
  }
  const PeerId attacker = before.at({Role::kWorker, kAttacker});
  const PeerId to[] = {kSchedulerPeer, before.at({Role::kServer, 0}),
                       before.at({Role::kWorker, 0})};
  const bool to_all = seed % 4 == 0;
  const std::vector<PeerId> whom =
      to_all ? std::vector<PeerId>(to, to + 3) : std::vector<PeerId>{to[seed % 4 - 1]};
  const ExtremeMember member(&cluster.network(), messages, extreme, attacker, whom,
                             1 + static_cast<uint32_t>(MixBits(seed) % 4));
  Said said;
  said.outcome = cluster.Run(kForgivenMs);
  said.sent = member.sent();
  for (const auto& [place, peer] : before) {
    if (cluster.PeerOf(place.first, place.second) == peer) continue;
    if (peer == attacker) {
      said.itself_lost = true;
    } else {
      said.others_lost +=
          std::string(RoleName(place.first)) + " " + std::to_string(place.second) + " ";
    }
  }
  return said;
}

// Runs each extreme once; the environment variable HDPS_SIM_SEEDS sets how many, at other times.
TEST(Extreme, AWordCostsItsMemberAlone) {
  const ExtremeMessages messages;
  uint64_t runs = 0, sent = 0, lost = 0;
  const std::vector<Extreme>& all = messages.all();
  constexpr uint64_t kStride = 4;  // Spreads a part of them over all messages.
  for (const uint64_t seed : SeedsOfPart(all.size(), 0, 1)) {
    const Extreme& extreme = all[(seed * kStride + seed * kStride / all.size()) % all.size()];
    const Said said = Say(messages, extreme, seed);
    ++runs;
    sent += said.sent;
    lost += said.itself_lost;
    EXPECT_EQ(said.others_lost, "") << extreme.Describe() << "\n" << RepeatCommand(seed);
    EXPECT_TRUE(IsAs(said.outcome, ExpectedOf(extreme))) << extreme.Describe() << "\n"
                                                         << said.outcome.Describe() << "\n"
                                                         << RepeatCommand(seed);
  }
  EXPECT_GT(lost, 0u) << "nothing that was said cost its member its place";
  std::printf(
      "figure: a worker's messages at their extremes: %llu of %llu tried, %llu sent, it was lost "
      "%llu times, nobody else\n",
      static_cast<unsigned long long>(runs), static_cast<unsigned long long>(all.size()),
      static_cast<unsigned long long>(sent), static_cast<unsigned long long>(lost));
}

}  // namespace
}  // namespace hdps::sim
