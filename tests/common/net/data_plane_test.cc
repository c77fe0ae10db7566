// Tests the data plane of jobs with keys: frames, sessions, keys and ports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "common/net/zmq/data_link.h"
#include "common/net/zmq/data_sessions.h"
#include "tests/common/net/data_plane_of_a_job.h"

namespace hdps {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(DataPlaneOfAJob, FramesGoBothWaysInOrder) {
  constexpr uint64_t kFrames = 60;
  Listen();
  EXPECT_THAT(address_, HasSubstr("+"));
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  // From the first frame on they wait for a session.
  for (uint64_t i = 1; i <= kFrames; ++i) worker->Send(kServerPeer, Numbered(i));
  uint64_t there = 0, back = 0;
  PeerId from;
  Frame frame;
  for (int turn = 0; turn < 2000 && back < kFrames; ++turn) {
    if (server_->Receive(5, &from, &frame)) {
      EXPECT_EQ(from, kWorkerPeer);
      EXPECT_TRUE(Same(frame, Numbered(++there)));
      EXPECT_EQ(frame.header.body_checksum, 0u) << "it did not come by the port for data";
      server_->Send(from, Numbered(there, EncodeMessage(ProbeAck())));
    }
    if (worker->Receive(5, &from, &frame)) {
      EXPECT_EQ(from, kServerPeer);
      EXPECT_TRUE(Same(frame, Numbered(++back, EncodeMessage(ProbeAck()))));
      EXPECT_EQ(frame.header.body_checksum, 0u);
    }
  }
  EXPECT_EQ(there, kFrames);
  EXPECT_EQ(back, kFrames);
  for (const Transport* end : {server_.get(), worker.get()}) {
    EXPECT_EQ(end->counters().frames_refused + end->counters().frames_dropped, 0u);
  }
}

TEST_F(DataPlaneOfAJob, LargeSectionsOfOneMachineStillGoThroughMemory) {
  options_.shared_bytes_per_peer = size_t{16} << 20;
  Listen();
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  Frame large = EncodeMessage(Probe());
  large.sections.push_back(Filled(1 << 20, 5));
  ASSERT_TRUE(Talk(*worker, 400, large));
  EXPECT_TRUE(Await(*worker, [&] {
    worker->Send(kServerPeer, large);
    return worker->counters().bytes_shared > 0;
  }));
  EXPECT_TRUE(Talk(*worker, 400, large));
  EXPECT_EQ(server_->counters().frames_refused, 0u);
}

TEST_F(DataPlaneOfAJob, WhatWaitsForASessionHasABound) {
  options_.queue_frames_max = 8;
  Listen();
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  for (uint64_t i = 1; i <= 11; ++i) worker->Send(kServerPeer, Numbered(i));
  EXPECT_EQ(worker->counters().frames_dropped, 3u);
  EXPECT_THAT(Heard(*server_, *worker, 100), testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

// ---- Keys.

TEST_F(DataPlaneOfAJob, ARevokedKeysSessionEndsAtOnceAndOthersAreNotDisturbed) {
  Listen();
  Add(KeyRole::kWorker, "second");
  const auto other = Dial(kWorkerPeer, FolderElsewhere("worker"));
  const auto second = Dial(kStranger, FolderElsewhere("second"));  // It does not see the change.
  ASSERT_TRUE(Talk(*other));
  ASSERT_TRUE(Talk(*second));
  Revoke("second");
  ASSERT_TRUE(Await(*second, [&] { return server_->counters().connections_refused > 0; }));
  const uint64_t received = server_->counters().frames_received;
  EXPECT_FALSE(Talk(*second, 20));
  EXPECT_EQ(server_->counters().frames_received, received);
  server_->Send(kStranger, Numbered(9, EncodeMessage(ProbeAck())));
  EXPECT_TRUE(Heard(*second, *server_, 10).empty()) << "and is told nothing";
  // All frames of the other continue in the earlier session.
  for (uint64_t i = 1; i <= 5; ++i) other->Send(kServerPeer, Numbered(i));
  EXPECT_THAT(Heard(*server_, *other), testing::ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(DataPlaneOfAJob, AReadersPushIsRefused) {
  Listen();
  const auto reader = Dial(kStranger, Folder(KeyRole::kReader));
  EXPECT_TRUE(Talk(*reader)) << "it may probe";
  Settle(*reader, kStranger);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(Talk(*reader, 20, EncodeMessage(AdvanceRequest{1})));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("which is for a worker"));
}

TEST_F(DataPlaneOfAJob, WithoutAKeyOfAServerInTheListNobodyIsDialed) {
  Listen();
  std::erase_if(list_, [](const AllowedKey& key) { return key.role == KeyRole::kServer; });
  Write();
  const auto worker = NewTransport(kWorkerPeer, Folder(KeyRole::kWorker));
  EXPECT_THAT(worker->Connect(kServerPeer, address_).message(),
              HasSubstr("allows no key of a server"));
}

TEST_F(DataPlaneOfAJob, KeysOfBothEndsAreRotated) {
  Listen();
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker));
  for (const char* name : {"worker", "server"}) {
    Rotate(name);
    ASSERT_TRUE(Talk(*worker)) << name;
    const uint64_t admitted = server_->counters().connections_admitted;
    Revoke(std::string(name) + ".1");
    EXPECT_TRUE(Await(*worker, [&] { return server_->counters().connections_admitted > admitted; }))
        << name;
    EXPECT_TRUE(Talk(*worker)) << name;
  }
}

// ---- Ends that come again.

TEST_F(DataPlaneOfAJob, EitherEndMayStartAgain) {
  Listen();
  auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker));
  worker = Dial(NamedPeer(201), Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker)) << "another worker";
  ASSERT_TRUE(worker->Connect(kServerPeer, address_).ok());
  worker->HangUp(kServerPeer);
  ASSERT_TRUE(worker->Connect(kServerPeer, address_).ok());
  ASSERT_TRUE(Talk(*worker)) << "the same, dialing anew";
  server_.reset();
  const std::string before = address_;
  Listen(before);
  EXPECT_EQ(address_, before);
  EXPECT_TRUE(Talk(*worker)) << "another listener, that knows of no session";
}

// ---- Ports.

TEST_F(DataPlaneOfAJob, PortsAreChosenNamedAndMayBeTaken) {
  Listen();
  const Result<Address> first = ParseAddress(address_);
  ASSERT_TRUE(first.ok());
  EXPECT_NE(first->port, first->data_port);
  const auto listen = [&](const std::string& at) {
    const auto other = NewTransport(NamedPeer(101), Folder(KeyRole::kServer));
    const Result<std::string> address = other->Listen(at);
    return address.ok() ? *address : address.status().message();
  };
  EXPECT_THAT(listen("tcp://127.0.0.1:0+" + std::to_string(first->data_port)),
              HasSubstr("the port for data: address tcp://127.0.0.1:" +
                        std::to_string(first->data_port) + " is in use"));
  EXPECT_THAT(listen("tcp://127.0.0.1:" + std::to_string(first->port)), HasSubstr("is in use"));
  EXPECT_THAT(listen("tcp://127.0.0.1:65535"), HasSubstr("leaves no port after it"));
  EXPECT_THAT(listen("ipc://" + testing::TempDir() + "hdps_ports_" + std::to_string(getpid())),
              Not(HasSubstr("+")));
  server_.reset();
  // Both ports are free now and happen to be consecutive.
  if (first->port < kPortMax && first->data_port == first->port + 1) {
    EXPECT_EQ(listen(first->Endpoint(first->port)), address_);
  }
  options_.data_port = false;
  EXPECT_THAT(listen("tcp://127.0.0.1:0"), Not(HasSubstr("+")));
  EXPECT_THAT(listen("tcp://127.0.0.1:0+5001"),
              HasSubstr("which servers with --keys=DIR have alone"));
}

TEST(DataPorts, AreReadAndPrinted) {
  for (const char* text : {"tcp://10.0.0.2:5000+5001", "tcp://*:0+7", "tcp://a-b.c:65535+1"}) {
    const Result<Address> address = ParseAddress(text);
    ASSERT_TRUE(address.ok()) << address.status().message();
    EXPECT_EQ(address->ToString(), text);
  }
  for (const char* text : {"h:1+0", "h:1+1", "h:1+", "h:+1", "h:1+65536", "h:1+2+3", "h:1+-2",
                           "h:1 +2", "h:1++2", "h:1+*"}) {
    EXPECT_FALSE(ParseAddress(text).ok()) << text;
  }
}

SessionGrant GrantOf(uint64_t session) {
  return {session, AeadKind::kAes256Gcm, SecretKey::Drawn(), SecretKey::Drawn()};
}

// Emulates a firewall that lets members in only at the first port.
TEST(DataPorts, OneThatDoesNotAnswerIsToldOnce) {
  zmq::context_t context;
  const TransportOptions options;
  DataLink link(context, options, "tcp://127.0.0.1:1");
  link.Maintain(0);
  link.OnAnswer(SessionGrantFrame(GrantOf(7)));
  const auto said_at = [&](int64_t ms) {
    testing::internal::CaptureStderr();
    link.Maintain(ms);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said_at(100000), "");
  EXPECT_EQ(said_at(104999), "");
  EXPECT_THAT(said_at(105000), HasSubstr("tcp://127.0.0.1:1, the port for data"));
  EXPECT_EQ(said_at(200000), "");
}

// ---- Sessions.

// Else its counters would begin again under keys that have encrypted other frames.
TEST(DataLinks, BeginNoSessionTwice) {
  zmq::context_t context;
  const TransportOptions options;
  DataLink link(context, options, "tcp://127.0.0.1:1");
  const SessionGrant first = GrantOf(7);
  link.OnAnswer(SessionGrantFrame(first));
  EXPECT_TRUE(link.has_session());
  link.OnAnswer(SessionGrantFrame(first));
  EXPECT_TRUE(link.has_session()) << "told again of the one it is in";
  link.OnAnswer(SessionEndedFrame());
  EXPECT_FALSE(link.has_session());
  testing::internal::CaptureStderr();
  link.OnAnswer(SessionGrantFrame(first));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("has ended"));
  EXPECT_FALSE(link.has_session());
  link.OnAnswer(SessionGrantFrame(GrantOf(8)));
  EXPECT_TRUE(link.has_session());
}

TEST(SessionGrants, TravelWholeAndAreWiped) {
  for (const AeadKind kind : {AeadKind::kAes256Gcm, AeadKind::kChaCha20Poly1305}) {
    const SessionGrant grant{9, kind, SecretKey::Drawn(), SecretKey::Drawn()};
    Frame frame = SessionGrantFrame(grant);
    frame.envelope = Buffer::CopyOf(frame.envelope.bytes());  // Copied, as if it had arrived.
    const std::optional<SessionGrant> read = GrantIn(frame);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->session, 9u);
    EXPECT_EQ(read->aead, kind);
    EXPECT_TRUE(std::ranges::equal(read->to_listener.bytes(), grant.to_listener.bytes()));
    EXPECT_TRUE(std::ranges::equal(read->to_dialer.bytes(), grant.to_dialer.bytes()));
    WipeGrant(frame);
    EXPECT_TRUE(std::ranges::all_of(frame.envelope.bytes(),
                                    [](std::byte byte) { return byte == std::byte{0}; }));
  }
  Frame unknown = SessionGrantFrame(GrantOf(9));
  std::vector<std::byte> bytes(unknown.envelope.bytes().begin(), unknown.envelope.bytes().end());
  bytes[8] = std::byte{2};
  unknown.envelope = Buffer::CopyOf(bytes);
  EXPECT_FALSE(GrantIn(unknown).has_value()) << "an AEAD that there is none of";
}

TEST(SessionGrants, AesWhereBothEndsHaveIt) {
  EXPECT_EQ(AeadFor(SessionRequestFrame(AeadKind::kAes256Gcm)), OwnAead());
  EXPECT_EQ(AeadFor(SessionRequestFrame(AeadKind::kChaCha20Poly1305)), AeadKind::kChaCha20Poly1305);
  Frame strange = SessionRequestFrame(AeadKind::kAes256Gcm);
  strange.envelope = {};
  EXPECT_EQ(AeadFor(strange), AeadKind::kChaCha20Poly1305);
}

TEST_F(DataPlaneOfAJob, SessionsAreBoundedAndBelongToOneCallerAndKey) {
  const auto keys = Folder(KeyRole::kServer);
  DataSessions held(3);
  const std::string key = Named("worker").public_key, own = Named("server").public_key;
  std::optional<CallerId> ended;
  const auto grant = [&](const CallerId& caller, const std::string& by) {
    return held.Grant(caller, by, own, OwnAead(), &ended).session;
  };
  std::set<uint64_t> sessions;
  for (uint64_t i = 0; i < 3; ++i) sessions.insert(grant({{10 + i}, 1}, key));
  EXPECT_EQ(sessions.size(), 3u);
  EXPECT_TRUE(sessions.contains(grant({{11}, 1}, key))) << "asked again";
  EXPECT_FALSE(sessions.contains(grant({{11}, 2}, key))) << "dialed anew";
  EXPECT_FALSE(sessions.contains(grant({{12}, 1}, Named("reader").public_key)));
  EXPECT_EQ(held.size(), 3u);
  EXPECT_FALSE(ended.has_value());
  grant({{13}, 1}, key);
  EXPECT_EQ(held.size(), 3u);
  EXPECT_EQ(ended, (CallerId{{10}, 1})) << "the most silent";
  EXPECT_EQ(held.Find({{10}, 1}), nullptr);
  EXPECT_EQ(held.Find({{11}, 1}), nullptr) << "that of before";
  EXPECT_NE(held.Find({{11}, 2}), nullptr);
  Revoke("reader");
  ASSERT_TRUE(keys->Refresh(5000));
  held.OnNewKeys(keys->ring());
  EXPECT_EQ(held.Find({{12}, 1}), nullptr) << "of a revoked key";
  EXPECT_EQ(held.size(), 2u);
  Rotate("server");
  Revoke("server.1");
  ASSERT_TRUE(keys->Refresh(10000));
  held.OnNewKeys(keys->ring());
  EXPECT_EQ(held.size(), 0u) << "ours is revoked";
}

}  // namespace
}  // namespace hdps
