// Tests which frames are accepted as a peer's.
#include "common/net/callers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/common/net/named_peers.h"

namespace hdps {
namespace {

const PeerId kSelf{100}, kPeer = NamedPeer(200);

CallerId IdOf(PeerId peer, uint64_t dial) { return CallerIdOf(NameOf(peer), kSelf, dial); }

TEST(CallerId, IsReadAsItWasWritten) {
  const CallerId id = IdOf(kPeer, 3);
  const CallerIdBytes bytes = BytesOf(id);
  ASSERT_TRUE(ParseCallerId(bytes).has_value());
  EXPECT_EQ(*ParseCallerId(bytes), id);
  EXPECT_NE(bytes[0], 0) << "ids that begin with a zero byte belong to ZeroMQ";
}

// The order is that of docs/formats.md: letter, peer id, dial, listener, key, proof.
TEST(CallerId, HasItsFieldsInTheOrderOfTheWire) {
  const CallerId id = IdOf(kPeer, 3);
  const CallerIdBytes bytes = BytesOf(id);
  static_assert(sizeof(bytes) == 121);
  const auto number = [&](size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    return value;
  };
  EXPECT_EQ(bytes[0], 'h');
  EXPECT_EQ(number(1), kPeer.value);
  EXPECT_EQ(number(9), 3u);
  EXPECT_EQ(number(17), kSelf.value);
  EXPECT_EQ(std::memcmp(bytes.data() + 25, id.key.data(), id.key.size()), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 57, id.proof.data(), id.proof.size()), 0);
}

TEST(CallerId, OthersAreNone) {
  CallerIdBytes bytes = BytesOf(IdOf(kPeer, 1));
  const std::span<const char> whole(bytes);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(ParseCallerId(whole.first(size)));
  EXPECT_FALSE(ParseCallerId(std::string(bytes.data(), bytes.size()) + "x"));
  bytes[0] = 'i';
  EXPECT_FALSE(ParseCallerId(bytes));
}

TEST(PeerName, IsDrawnAnewAndItsNumberIsAHashOfItsKey) {
  const PeerName one = NewPeerName(), other = NewPeerName();
  EXPECT_NE(one.peer, other.peer);
  EXPECT_GT(one.peer, kSchedulerPeer);
  EXPECT_EQ(PeerIdOf(PeerKeyOf(one)), one.peer);
}

TEST(Callers, ReservedNumbersAndOurOwnAreRefused) {
  Callers callers(kSelf);
  for (const PeerId peer : {PeerId{0}, kSchedulerPeer, kSelf}) {
    EXPECT_FALSE(callers.Hear(IdOf(peer, 1)).ok()) << peer.value;
    EXPECT_EQ(callers.Find(peer), nullptr);
  }
  EXPECT_TRUE(callers.Hear(IdOf(kPeer, 1)).ok());
}

TEST(Callers, WhoDoesNotOwnTheNumberIsNotHeard) {
  Callers callers(kSelf);
  const CallerId own = IdOf(kPeer, 5);
  CallerId other_key = CallerIdOf(NewPeerName(), kSelf, 6);  // The proof of another key.
  other_key.peer = kPeer;
  CallerId copied_key = other_key;
  copied_key.key = own.key;
  CallerId elsewhere = CallerIdOf(NameOf(kPeer), PeerId{101}, 6);  // A proof for another listener.
  CallerId later = own;                                            // A proof of another dial.
  ++later.dial;
  const CallerId none{kPeer, 6, kSelf, {}, {}};
  for (const bool first : {true, false}) {  // Before and after the owner is heard.
    for (const CallerId& id : {other_key, copied_key, elsewhere, later, none}) {
      EXPECT_FALSE(callers.Hear(id).ok());
      EXPECT_FALSE(callers.Hear(id).ok()) << "again";
    }
    elsewhere.listener = kSelf;
    EXPECT_FALSE(callers.Hear(elsewhere).ok());
    EXPECT_EQ(callers.Find(kPeer) == nullptr, first);
    ASSERT_TRUE(callers.Hear(own).ok());
    EXPECT_EQ(*callers.Find(kPeer), own);
  }
}

TEST(Callers, EveryBitOfAProofCounts) {
  Callers callers(kSelf);
  const CallerIdBytes own = BytesOf(IdOf(kPeer, 5));
  for (size_t bit = 8; bit < 8 * own.size(); bit += 7) {
    CallerIdBytes changed = own;
    changed[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_FALSE(callers.Hear(*ParseCallerId(changed)).ok()) << "bit " << bit;
  }
}

TEST(Callers, ANumberIsOfOneRole) {
  Callers callers(kSelf);
  ASSERT_TRUE(callers.Hear(IdOf(kPeer, 1)).ok());
  EXPECT_TRUE(callers.KeepsRole(kPeer, KeyRole::kWorker));
  ASSERT_TRUE(callers.Hear(IdOf(kPeer, 2)).ok());
  EXPECT_FALSE(callers.KeepsRole(kPeer, KeyRole::kReader)) << "dialed anew";
  EXPECT_TRUE(callers.KeepsRole(kPeer, KeyRole::kWorker));
  EXPECT_TRUE(callers.KeepsRole(PeerId{300}, KeyRole::kServer)) << "dialed by us";
}

TEST(Callers, WhoDoesNotKnowTheListenersNumberIsHeard) {
  Callers callers(kSelf);
  EXPECT_TRUE(callers.Hear(CallerIdOf(NameOf(kPeer), {}, 1)).ok());
}

TEST(Callers, TheNewestDialIsAnsweredAndOlderOnesAreNotHeard) {
  Callers callers(kSelf);
  ASSERT_TRUE(callers.Hear(IdOf(kPeer, 1)).ok());
  ASSERT_TRUE(callers.Hear(IdOf(kPeer, 3)).ok());
  EXPECT_EQ(callers.Find(kPeer)->dial, 3u);
  EXPECT_FALSE(callers.Hear(IdOf(kPeer, 2)).ok());
  EXPECT_EQ(callers.Find(kPeer)->dial, 3u);
}

TEST(Callers, WhoWasSilentForLongestMakesRoom) {
  Callers callers(kSelf, 3);
  for (const uint64_t n : {201, 202, 203, 201, 203}) {
    ASSERT_TRUE(callers.Hear(IdOf(NamedPeer(n), 1)).ok());
  }
  ASSERT_TRUE(callers.Hear(IdOf(NamedPeer(204), 1)).ok());
  EXPECT_EQ(callers.Find(NamedPeer(202)), nullptr);
  for (const uint64_t n : {201, 203, 204}) EXPECT_NE(callers.Find(NamedPeer(n)), nullptr) << n;
}

}  // namespace
}  // namespace hdps
