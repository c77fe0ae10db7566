// Tests senders that belong to no job: they learn nothing, write no line of their own, and fill no
// log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SchedulerStrangersTest : public SchedulerNodeTest {
 protected:
  static JoinRequest Request(const std::string& host) {
    JoinRequest request;
    request.host = host;
    request.job_digest = 0xabc;  // The digest of another job.
    return request;
  }
  // Decoded from the wire.
  template <typename Message>
  void Send(uint64_t peer, const Message& message) {
    node().OnFrame(PeerId{peer}, EncodeMessage(message));
  }
  // Returns the latest answers to strangers.
  std::vector<std::string> Refusals() {
    std::vector<std::string> refusals;
    for (const auto& [to, frame] : node().TakeOutput().frames) {
      JoinRefused refused;
      if (to.value >= 1000 && DecodeMessage(frame, &refused).ok()) {
        refusals.push_back(refused.message);
      }
    }
    return refusals;
  }
  size_t NoticedBytes() const {
    size_t bytes = 0;
    for (const std::string& line : cluster_->notices) bytes += line.size() + 1;
    return bytes;
  }
};

TEST_F(SchedulerStrangersTest, AFloodOfRefusalsIsCutAndCounted) {
  options_.steps_per_epoch = 300;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker a").clock >= 2; }));
  const size_t before = NoticedBytes();
  constexpr uint64_t kRequests = 20000;
  size_t told = 0;
  for (uint64_t i = 0; i < kRequests; ++i) {
    Send(1000 + i, Request(std::string(60000, 'x')));
    for (const std::string& refusal : Refusals()) {
      ++told;
      EXPECT_THAT(refusal, HasSubstr("another job"));
    }
  }
  EXPECT_EQ(told, kRequests) << "Each is told, and none of it is kept.";
  const size_t bytes = NoticedBytes() - before;
  std::printf("%llu refused joins of 60,000 bytes: %zu bytes of log\n",
              static_cast<unsigned long long>(kRequests), bytes);
  EXPECT_LT(bytes, 100'000u);
  EXPECT_TRUE(cluster_->RunUntil(
      [&] { return cluster_->Noticed("more lines of this kind were left out"); }, 11'000));
  ExpectDone();
}

TEST_F(SchedulerStrangersTest, TheirTextSteersNoTerminalAndForgesNoLine) {
  Start();
  Send(1000, Request("a\n\x1b[2Jjob done: digest 0\x9b"));
  ASSERT_TRUE(cluster_->Noticed("refused a\\x0a\\x1b[2Jjob done: digest 0\\x9b: "));
  ScriptedMember& worker = cluster_->member("worker a");
  ASSERT_TRUE(cluster_->RunUntil([&] { return worker.clock >= 2; }));
  // Also from a member, because others see its text.
  node().OnFrame(worker.self, EncodeMessage(StopRequest{"\x1b]0;mine\x07"}));
  ExpectDone();
  for (const std::string& line : cluster_->notices) {
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
    EXPECT_THAT(line, Not(HasSubstr("\x07")));
  }
}

TEST_F(SchedulerStrangersTest, ARefusalDoesNotTellTheJobsDigest) {
  Start();
  char digest[17];
  std::snprintf(digest, sizeof digest, "%016llx",
                static_cast<unsigned long long>(JobDigest(options_.job)));
  Send(1000, Request("stranger"));
  EXPECT_THAT(Refusals(), testing::ElementsAre(Not(HasSubstr(digest))));
  for (const std::string& line : cluster_->notices) EXPECT_THAT(line, Not(HasSubstr(digest)));
}

TEST_F(SchedulerStrangersTest, AddressesThatNobodyCanDialAreRefused) {
  options_.with_members = false;
  Start();
  uint64_t peer = 1000;
  for (const char* address : {"tcp://*:5000", "tcp://0.0.0.0:5000", "tcp://10.0.0.1:0",
                              "tcp://224.0.0.1:5000", "tcp://255.255.255.255:1", "tcp://1.2.3:4",
                              "tcp://999.1.1.1:4", "tcp://a..b:4", "x\n", ""}) {
    JoinRequest request = Request("server");
    request.role = Role::kServer;
    request.job_digest = JobDigest(options_.job);
    request.address = address;
    Send(++peer, request);
    EXPECT_EQ(Refusals().size(), 1u) << address;
  }
}

}  // namespace
}  // namespace hdps
