// Tests where members find the scheduler, and that they follow it to another address.
#include "common/protocol/locate/scheduler_locator.h"

#include <utility>

#include "tests/common/protocol/membership_client_fixture.h"

namespace hdps {
namespace {

// Tells what a test has set.
class SetLocator : public SchedulerLocator {
 public:
  Result<std::string> Newest() override {
    if (address.empty()) return Status(Code::kUnavailable, "nobody leads");
    return address;
  }
  std::string address;
};

class FollowingClientTest : public MembershipClientTest {
 protected:
  FollowingClientTest() {
    MembershipOptions options = Options();
    options.identity.locator = locator_;
    following_ = std::make_unique<MembershipClient>(options);
  }
  // Returns the dials since the last call, "again" for one in place of another.
  std::vector<std::string> Dialed(TimeMs until) {
    for (; now_ <= until; now_ += 100) following_->OnTick(now_);
    std::vector<std::string> dialed;
    for (const Dial& dial : following_->TakeOutput().dials) {
      if (dial.peer == kSchedulerPeer) {
        dialed.push_back(dial.address + (dial.anew ? " again" : ""));
      }
    }
    return dialed;
  }
  void FormView() {
    locator_->address = "tcp://10.0.0.1:1";
    Dialed(now_ + 600);
    following_->OnFrame(kSchedulerPeer, EncodeMessage(ViewNumber(7)));
    ASSERT_NE(following_->view(), nullptr);
  }

  const std::shared_ptr<SetLocator> locator_ = std::make_shared<SetLocator>();
  std::unique_ptr<MembershipClient> following_;
};

TEST_F(FollowingClientTest, NobodyIsDialedBeforeAnAddressIsKnown) {
  EXPECT_THAT(Dialed(700), IsEmpty());
  locator_->address = "tcp://10.0.0.1:1";
  EXPECT_THAT(Dialed(1200), ElementsAre("tcp://10.0.0.1:1"));
  EXPECT_THAT(Dialed(9000), IsEmpty());
}

TEST_F(FollowingClientTest, AnAddressOfAFormerRunIsLeft) {
  locator_->address = "tcp://10.0.0.1:1";
  EXPECT_THAT(Dialed(5000), ElementsAre("tcp://10.0.0.1:1"));
  locator_->address = "tcp://10.0.0.2:2";
  EXPECT_THAT(Dialed(6000), ElementsAre("tcp://10.0.0.2:2 again"));
}

TEST_F(FollowingClientTest, ASilentSchedulerIsLookedForEveryHeartbeat) {
  FormView();
  const TimeMs heard = now_;
  locator_->address = "tcp://10.0.0.2:2";  // Not asked for while the old one is heard.
  EXPECT_THAT(Dialed(heard + 1000), IsEmpty());
  EXPECT_THAT(Dialed(heard + 2200), ElementsAre("tcp://10.0.0.2:2 again"));
  locator_->address = "tcp://10.0.0.3:3";
  EXPECT_THAT(Dialed(heard + 2800), ElementsAre("tcp://10.0.0.3:3 again"));
}

TEST_F(FollowingClientTest, TheLastAddressHoldsWhileNoneIsKnown) {
  FormView();
  locator_->address.clear();
  EXPECT_THAT(Dialed(now_ + 2000), ElementsAre("tcp://10.0.0.1:1 again"));
}

TEST_F(FollowingClientTest, TheEndOfTheWaitSaysWhyNoAddressIsKnown) {
  Dialed(60'500);
  ASSERT_TRUE(following_->ended());
  EXPECT_EQ(following_->exit_status(), 3);
  EXPECT_THAT(following_->reason(),
              HasSubstr("waited 60 s for the address of the scheduler: nobody leads"));
}

Result<std::string> NewestIn(const std::string& text) {
  std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  EXPECT_TRUE(files->MakeDirectories("/run").ok());
  EXPECT_TRUE(WriteFileAtomically(*files, "/run/address", text).ok());
  return NewFileLocator(std::move(files), "/run/address")->Newest();
}

TEST(FileLocatorTest, ReadsWhatTheSchedulerWrites) {
  for (const char* written : {"tcp://10.0.0.1:8118\n", "tcp://10.0.0.1:8118", "ipc:///tmp/x\n"}) {
    const std::string text = written;
    const Result<std::string> newest = NewestIn(text);
    ASSERT_TRUE(newest.ok()) << newest.status().message();
    EXPECT_EQ(*newest, text.substr(0, text.find('\n')));
  }
}

TEST(FileLocatorTest, OtherTextIsNoAddress) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("tcp://10.0.0.1:0"), std::string("tcp://*:5"),
        std::string("\x1b[2J"), std::string(4096, 'x'), std::string("tcp://10.0.0.1\0:5", 17)}) {
    const Result<std::string> newest = NewestIn(text);
    ASSERT_FALSE(newest.ok()) << text;
    EXPECT_EQ(newest.status().code(), Code::kUnavailable);
    EXPECT_THAT(newest.status().message(), HasSubstr("--scheduler=file:/run/address"));
    EXPECT_EQ(newest.status().message().find('\x1b'), std::string::npos);
  }
  const auto none = NewFileLocator(NewMemoryFileSystem(), "/run/none")->Newest();
  EXPECT_EQ(none.status().code(), Code::kUnavailable);
  EXPECT_THAT(none.status().message(), HasSubstr("--scheduler=file:/run/none cannot be read: "));
}

TEST(LocateSchedulerTest, MistakesNameWhatWouldBeRight) {
  EXPECT_TRUE(LocateScheduler("file:out/address", false).ok());
  EXPECT_TRUE(LocateScheduler("tcp://127.0.0.1:5", false).ok());
  for (const auto& [text, mend] :
       {std::pair("file:", "write file:PATH"), std::pair("tcp://10.0.0.1:5", "--insecure"),
        std::pair("tcp://127.0.0.1:0", "--scheduler: "), std::pair("out/address", "tcp://")}) {
    const Status status = LocateScheduler(text, false).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(mend)) << text;
  }
}

}  // namespace
}  // namespace hdps
