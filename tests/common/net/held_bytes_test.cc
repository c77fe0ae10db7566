// Tests how many bytes of a connection libzmq holds, from the kernel's figures and the messages
// received.
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "common/net/zmq/listeners.h"
#include "common/net/zmq/parts.h"
#include "common/net/zmq/socket_settings.h"
#include "tests/common/net/keys_for_tests.h"

namespace hdps {
namespace {

const PeerId kListener{100}, kDialer = NamedPeer(200);

class WhatIsHeld : public testing::TestWithParam<std::string> {};

TEST_P(WhatIsHeld, IsNothingOnceAllIsHandedOut) {
  const bool keys = GetParam() == "keys", ipc = GetParam() == "ipc";
  const auto folder = keys ? FolderOfKeys() : nullptr;
  const TransportOptions server = OptionsFor(kListener, folder, KeyRole::kServer);
  const TransportOptions worker = OptionsFor(kDialer, folder, KeyRole::kWorker);
  zmq::context_t context;
  std::optional<Authenticator> authenticator;
  if (keys) authenticator.emplace(context);
  Listeners listeners(context, server);
  const std::string path =
      "ipc://" + testing::TempDir() + "/hdps_held_" + std::to_string(getpid()) + ".socket";
  const Result<std::string> address = listeners.Listen(ipc ? path : "tcp://127.0.0.1:0");
  ASSERT_TRUE(address.ok()) << address.status().message();
  const KeyRing* ring = keys ? &worker.keys->ring() : nullptr;
  zmq::socket_t dealer =
      NewDialer(context, worker, ring, keys ? ring->KeysToDial(KeyRole::kServer).front() : "");
  dealer.connect(*address);
  int64_t now_ms = 0;
  // Returns the held bytes after all messages were taken.
  const auto exchange = [&](int messages) {
    constexpr size_t kSizes[] = {0, 1, 64, 221, 222, 223, 254, 255, 256, 4096, 70'000};
    int sent = 0, taken = 0;
    for (int turn = 0; turn < 100'000 && taken < messages; ++turn) {
      if (sent < messages) {
        for (const size_t size : kSizes) {
          dealer.send(zmq::message_t(size), zmq::send_flags::sndmore);
        }
        dealer.send(zmq::message_t(7), zmq::send_flags::none);
        ++sent;
      }
      if (keys) authenticator->AnswerAll(server.keys->ring());
      zmq_pollitem_t items[] = {{listeners[0].handle(), 0, ZMQ_POLLIN, 0}};
      zmq_poll(items, 1, 1);
      std::vector<zmq::message_t> parts;
      Arrival arrival{listeners.has_keys(0)};
      if (!ReceiveParts(listeners[0], &parts, &arrival)) continue;
      listeners.OnMessage(arrival, false);
      EXPECT_TRUE(listeners.limits().Knows(arrival.connection));
      EXPECT_EQ(arrival.address, ipc ? arrival.address : "127.0.0.1");
      ++taken;
    }
    EXPECT_EQ(taken, messages);
    now_ms += ConnectionLimits::kLookEveryMs;
    listeners.Maintain(now_ms);
    EXPECT_EQ(listeners.limits().size(), 1u);
    return listeners.limits().held_bytes();
  };
  const uint64_t handshake = exchange(1);
  EXPECT_LT(handshake, 1024u);
  EXPECT_EQ(handshake == 0, ipc) << "nobody counts what comes over ipc";
  EXPECT_EQ(exchange(200), handshake);
  EXPECT_EQ(exchange(200), handshake);
}

INSTANTIATE_TEST_SUITE_P(Over, WhatIsHeld, testing::Values("tcp", "keys", "ipc"),
                         [](const auto& over) { return over.param; });

}  // namespace
}  // namespace hdps
