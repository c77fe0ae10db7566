// Tests that a reign is kept by its thread, and what ends it.
#include "scheduler/election/reign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/common/platform/settable_clock.h"
#include "tests/scheduler/election/etcd_model.h"

namespace hdps {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// An etcd that several clients share.
struct SharedEtcd {
  EtcdModel model HDPS_GUARDED_BY(mutex);
  Mutex mutex;
  SettableClock clock;
  std::atomic<bool> away = false;
  std::atomic<int> renewals = 0;
};

class ModelClient : public Etcd {
 public:
  explicit ModelClient(SharedEtcd& shared) : shared_(shared) {}
  Result<EtcdAnswer> Do(const EtcdRequest& request) override {
    if (shared_.away) return Status(Code::kUnavailable, "nobody is there");
    const MutexLock lock(shared_.mutex);
    if (request.kind == EtcdRequest::Kind::kKeepAlive) ++shared_.renewals;
    return shared_.model.Do(request, shared_.clock.NowMs());
  }

 private:
  SharedEtcd& shared_;
};

class ReignTest : public testing::Test {
 protected:
  Result<Elected> Await() {
    ElectionOptions options;
    options.address = "tcp://a:1";
    return AwaitReign(std::make_unique<ModelClient>(etcd_), options, etcd_.clock, stop_,
                      [this](const std::string& line) { lines_.push_back(line); });
  }
  std::unique_ptr<Reign> Lead() {
    Result<Elected> elected = Await();
    EXPECT_TRUE(elected.ok());
    return std::move(elected->reign);
  }
  // Waits until the thread has renewed the lease `count` times.
  void AwaitRenewals(int count) {
    while (etcd_.renewals < count) std::this_thread::yield();
  }
  EtcdAnswer Look() {
    const MutexLock lock(etcd_.mutex);
    return etcd_.model.Do({}, etcd_.clock.NowMs());
  }

  SharedEtcd etcd_;
  std::atomic<bool> stop_ = false;
  std::vector<std::string> lines_;
};

TEST_F(ReignTest, TheThreadRenewsTheLease) {
  const std::unique_ptr<Reign> reign = Lead();
  ASSERT_NE(reign, nullptr);
  EXPECT_GT(reign->number(), 0u);
  AwaitRenewals(1);
  EXPECT_TRUE(reign->holds());
  EXPECT_FALSE(reign->Lost());
  EXPECT_THAT(lines_, Contains(HasSubstr("leads the job, reign ")));
}

TEST_F(ReignTest, AJumpOfTheClockEndsItForGood) {
  const std::unique_ptr<Reign> reign = Lead();
  ASSERT_NE(reign, nullptr);
  etcd_.clock.now_ms += 5000;
  EXPECT_FALSE(reign->holds());
  etcd_.clock.now_ms -= 5000;  // As if the thread had renewed the lease meanwhile.
  EXPECT_FALSE(reign->holds());
  const auto lost = reign->Lost();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->status, 3);
  EXPECT_THAT(lost->reason, HasSubstr("leads no longer"));
  EXPECT_THAT(reign->EndJob({0, "done"}), HasSubstr("its lease has ended"));
  EXPECT_FALSE(Look().end);
}

TEST_F(ReignTest, TheEndOfTheJobIsLeftForTheCandidates) {
  std::unique_ptr<Reign> reign = Lead();
  ASSERT_NE(reign, nullptr);
  EXPECT_EQ(reign->EndJob({3, "a worker is lost"}), "");
  const EtcdAnswer look = Look();
  ASSERT_TRUE(look.end);
  EXPECT_EQ(look.end->text, "3 a worker is lost");
  EXPECT_FALSE(look.leader);
}

TEST_F(ReignTest, WhoLeavesLeavesNoKey) {
  const std::unique_ptr<Reign> reign = Lead();
  ASSERT_NE(reign, nullptr);
  EXPECT_EQ(reign->Leave(), "");
  EXPECT_FALSE(Look().leader);
  EXPECT_FALSE(Look().end);
}

TEST_F(ReignTest, AnEtcdThatIsAwayAtTheEndIsTold) {
  const std::unique_ptr<Reign> reign = Lead();
  ASSERT_NE(reign, nullptr);
  etcd_.away = true;
  EXPECT_THAT(reign->EndJob({0, "done"}), HasSubstr("etcd did not answer: nobody is there"));
}

TEST_F(ReignTest, ACandidateThatIsToldToStopEndsWell) {
  const std::unique_ptr<Reign> reign = Lead();
  stop_ = true;
  const Result<Elected> second = Await();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->reign, nullptr);
  EXPECT_EQ(second->end.status, 0);
}

}  // namespace
}  // namespace hdps
