// Tests the transport that injects faults, over mailboxes.
#include "common/net/fault_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/common/platform/settable_clock.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr PeerId kOne{11}, kTwo{22};

class FaultTransportTest : public ::testing::Test {
 protected:
  FaultTransportTest() : hub_(NewInprocHub()), two_(MakePlain(kTwo)) {
    EXPECT_TRUE(two_->Listen("inproc://two").ok());
  }
  std::unique_ptr<Transport> MakePlain(PeerId self) {
    TransportOptions options;
    options.self = self;
    options.queue_frames_max = 1 << 20;
    return NewInprocTransport(hub_, options);
  }
  void Make(const FrameFaults& faults) {
    one_ = std::make_unique<FaultTransport>(MakePlain(kOne), faults, clock_);
    ASSERT_TRUE(one_->Connect(kTwo, "inproc://two").ok());
    ASSERT_TRUE(one_->Connect(kSchedulerPeer, "inproc://two").ok());
  }
  void Send(uint64_t number, PeerId to = kTwo) {
    Frame frame;
    frame.header.request_id = number;
    one_->Send(to, std::move(frame));
  }
  // Sends what is due; nothing arrives here.
  void Turn() {
    PeerId from;
    Frame frame;
    EXPECT_FALSE(one_->Receive(0, &from, &frame));
  }
  std::vector<uint64_t> Arrived() {
    std::vector<uint64_t> numbers;
    PeerId from;
    Frame frame;
    while (two_->Receive(0, &from, &frame)) numbers.push_back(frame.header.request_id);
    return numbers;
  }

  std::shared_ptr<SettableClock> clock_ = std::make_shared<SettableClock>();
  std::shared_ptr<InprocHub> hub_;
  std::unique_ptr<Transport> two_;
  std::unique_ptr<FaultTransport> one_;
};

TEST_F(FaultTransportTest, WithoutFaultsEverythingArrivesInOrder) {
  Make({});
  for (uint64_t i = 1; i <= 4; ++i) Send(i);
  EXPECT_THAT(Arrived(), ElementsAre(1, 2, 3, 4));
}

TEST_F(FaultTransportTest, LosesAndRepeatsAsManyAsItIsTold) {
  FrameFaults faults;
  faults.drop = 0.05;
  faults.repeat = 0.1;
  Make(faults);
  constexpr uint64_t kFrames = 20000;
  for (uint64_t i = 0; i < kFrames; ++i) Send(i);
  const std::vector<uint64_t> arrived = Arrived();
  const FaultCounters& counters = one_->faults();
  EXPECT_EQ(counters.sent, kFrames);
  EXPECT_EQ(arrived.size(), kFrames - counters.dropped + counters.repeated);
  const std::set<uint64_t> different(arrived.begin(), arrived.end());
  EXPECT_EQ(different.size(), kFrames - counters.dropped);
  // Five standard deviations of a binomial: sqrt(n p (1 - p)) is 31 and 41.
  EXPECT_NEAR(static_cast<double>(counters.dropped), 0.05 * kFrames, 5 * 31);
  EXPECT_NEAR(static_cast<double>(counters.repeated), 0.1 * 0.95 * kFrames, 5 * 42);
}

TEST_F(FaultTransportTest, TheSameSeedDoesTheSame) {
  FrameFaults faults;
  faults.drop = faults.repeat = faults.reorder = faults.late = 0.3;
  faults.late_ms_max = 20;
  std::vector<std::vector<uint64_t>> runs;
  for (const uint64_t seed : {7u, 7u, 8u}) {
    faults.seed = seed;
    Make(faults);
    for (uint64_t i = 0; i < 200; ++i) {
      Send(i);
      ++clock_->now_ms;
    }
    clock_->now_ms += 100;
    Turn();
    runs.push_back(Arrived());
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST_F(FaultTransportTest, OneThatIsOvertakenGoesBehindTheNext) {
  FrameFaults faults;
  faults.reorder = 1;
  Make(faults);
  for (uint64_t i = 1; i <= 4; ++i) Send(i);
  EXPECT_THAT(Arrived(), ElementsAre(2, 1, 4, 3));
}

TEST_F(FaultTransportTest, OneThatNobodyOvertakesGoesInTheEnd) {
  FrameFaults faults;
  faults.reorder = 1;
  Make(faults);
  Send(1);
  Turn();
  EXPECT_THAT(Arrived(), IsEmpty());
  clock_->now_ms += 50;
  Turn();
  EXPECT_THAT(Arrived(), ElementsAre(1));
}

TEST_F(FaultTransportTest, LateFramesGoWhenTheirTimeHasCome) {
  FrameFaults faults;
  faults.late = 1;
  faults.late_ms_min = faults.late_ms_max = 200;
  Make(faults);
  Send(1);
  clock_->now_ms += 199;
  Turn();
  EXPECT_THAT(Arrived(), IsEmpty());
  clock_->now_ms += 1;
  Turn();
  EXPECT_THAT(Arrived(), ElementsAre(1));
  EXPECT_EQ(one_->faults().late, 1u);
}

TEST_F(FaultTransportTest, ACutLinkCarriesNothingUntilItIsMended) {
  FrameFaults faults;
  faults.cuts = {
      {.whom = FrameFaults::Whom::kMembers, .in = false, .out = true, .window = {100, 50, ""}}};
  Make(faults);
  Send(1);
  clock_->now_ms += 100;
  Send(2);
  Send(3, kSchedulerPeer);
  clock_->now_ms += 50;
  Send(4);
  EXPECT_THAT(Arrived(), ElementsAre(1, 3, 4));
  EXPECT_EQ(one_->faults().cut_out, 1u);
}

TEST_F(FaultTransportTest, ALinkIsCutInwardsToo) {
  FrameFaults faults;
  faults.cuts = {
      {.whom = FrameFaults::Whom::kAll, .in = true, .out = false, .window = {0, 10, ""}}};
  Make(faults);
  Send(1);
  ASSERT_THAT(Arrived(), ElementsAre(1));
  PeerId from;
  Frame frame;
  two_->Send(kOne, Frame());
  EXPECT_FALSE(one_->Receive(1000, &from, &frame));
  EXPECT_EQ(one_->faults().cut_in, 1u);
  clock_->now_ms += 10;
  two_->Send(kOne, Frame());
  EXPECT_TRUE(one_->Receive(1000, &from, &frame));
  EXPECT_EQ(from, kTwo);
}

}  // namespace
}  // namespace hdps
