// Whose frames count as a peer's.
#include "common/net/callers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hdps {
namespace {

constexpr PeerId kSelf{100}, kPeer{200};

TEST(CallerId, IsReadAsItWasWritten) {
  const CallerId id{{0x1122334455667788}, 0x99aabbccddeeff00, 3};
  const CallerIdBytes bytes = BytesOf(id);
  ASSERT_TRUE(ParseCallerId(bytes).has_value());
  EXPECT_EQ(*ParseCallerId(bytes), id);
  EXPECT_NE(bytes[0], 0) << "ids that begin with a zero byte belong to ZeroMQ";
}

TEST(CallerId, OthersAreNone) {
  CallerIdBytes bytes = BytesOf({kPeer, 5, 1});
  const std::span<const char> whole(bytes);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(ParseCallerId(whole.first(size)));
  EXPECT_FALSE(ParseCallerId(std::string(bytes.data(), bytes.size()) + "x"));
  bytes[0] = 'i';
  EXPECT_FALSE(ParseCallerId(bytes));
}

TEST(Callers, ReservedNumbersAndOurOwnAreRefused) {
  Callers callers(kSelf);
  for (const PeerId peer : {PeerId{0}, kSchedulerPeer, kSelf}) {
    EXPECT_FALSE(callers.Hear({peer, 5, 1}).ok()) << peer.value;
    EXPECT_EQ(callers.Find(peer), nullptr);
  }
  EXPECT_TRUE(callers.Hear({kPeer, 5, 1}).ok());
}

TEST(Callers, AnotherSecretIsAnotherProcess) {
  Callers callers(kSelf);
  ASSERT_TRUE(callers.Hear({kPeer, 5, 1}).ok());
  EXPECT_FALSE(callers.Hear({kPeer, 6, 2}).ok());
  EXPECT_EQ(*callers.Find(kPeer), (CallerId{kPeer, 5, 1}));
}

TEST(Callers, TheNewestDialIsAnsweredAndOlderOnesAreNotHeard) {
  Callers callers(kSelf);
  ASSERT_TRUE(callers.Hear({kPeer, 5, 1}).ok());
  ASSERT_TRUE(callers.Hear({kPeer, 5, 3}).ok());
  EXPECT_EQ(callers.Find(kPeer)->dial, 3u);
  EXPECT_FALSE(callers.Hear({kPeer, 5, 2}).ok());
  EXPECT_EQ(callers.Find(kPeer)->dial, 3u);
}

TEST(Callers, WhoWasSilentForLongestMakesRoom) {
  Callers callers(kSelf, 3);
  for (const uint64_t peer : {201, 202, 203, 201, 203}) {
    ASSERT_TRUE(callers.Hear({{peer}, 5, 1}).ok());
  }
  ASSERT_TRUE(callers.Hear({{204}, 5, 1}).ok());
  EXPECT_EQ(callers.Find({202}), nullptr);
  for (const uint64_t peer : {201, 203, 204}) EXPECT_NE(callers.Find({peer}), nullptr) << peer;
}

}  // namespace
}  // namespace hdps
