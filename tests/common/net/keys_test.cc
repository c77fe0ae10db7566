// Tests keys at the transport: which peers are admitted, what they may send, and keys that change
// meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "common/net/keys/key_folder.h"
#include "common/net/transport.h"
#include "common/protocol/key_permissions.h"
#include "common/protocol/membership_messages.h"
#include "tests/common/net/keys_of_a_job.h"
#include "tests/common/net/zmq_peer.h"

namespace hdps {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(KeysOfAJob, WhoHasOneIsHeardAndAnswered) {
  Listen();
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  EXPECT_TRUE(Talk(*worker));
  EXPECT_EQ(server_->counters().connections_admitted, 1u);
  EXPECT_EQ(server_->counters().frames_refused, 0u);
}

TEST_F(KeysOfAJob, WhoHasNoneIsNot) {
  Listen();
  TransportOptions options;
  options.self = NameOf(kStranger);
  const auto keyless = NewZmqTransport(options);
  ASSERT_TRUE(keyless->Connect(kServerPeer, address_).ok());
  EXPECT_FALSE(Talk(*keyless, 20));
  EXPECT_TRUE(Await(*keyless, [&] { return server_->counters().handshakes_failed > 0; }));
  EXPECT_EQ(server_->counters().frames_received, 0u);
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  EXPECT_TRUE(Talk(*worker)) << "others are served";
}

// The stranger knows the server's public key, but its own key is not allowed.
TEST_F(KeysOfAJob, AKeyThatIsNotInTheListIsRefusedAndLoggedOnce) {
  Listen();
  const std::vector<AllowedKey> honest = list_;
  const CurveKeys forged = NewKeys();
  Named("worker").public_key = forged.public_key;
  auto elsewhere = NewMemoryFileSystem();
  ASSERT_TRUE(elsewhere->MakeDirectories("k").ok());
  ASSERT_TRUE(WriteFileAtomically(*elsewhere, "k/allowed", PrintAllowedKeys(list_)).ok());
  ASSERT_TRUE(WriteFileAtomically(*elsewhere, "k/worker.key", forged.secret_key).ok());
  auto folder = KeyFolder::Open(std::move(elsewhere), "k", {KeyRole::kWorker});
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  testing::internal::CaptureStderr();
  const auto thief = Dial(kStranger, *folder);
  EXPECT_TRUE(Await(*thief, [&] { return server_->counters().connections_refused > 1; }));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("refused a connection from 127.0.0.1"));
  EXPECT_EQ(log.find("refused a connection"), log.rfind("refused a connection"));
  EXPECT_THAT(log, HasSubstr("refuses this process")) << "the other end learns it too";
  EXPECT_THAT(log, Not(HasSubstr(forged.secret_key)));
  EXPECT_EQ(server_->counters().frames_received, 0u);
}

TEST_F(KeysOfAJob, AListenerWithAnotherKeyIsNotTalkedTo) {
  Listen();
  const auto worker = Folder(KeyRole::kWorker);
  KeysOfAJob::Rotate("server");
  Revoke("server.1");
  const auto misled = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  PeerId from;
  Frame frame;
  testing::internal::CaptureStderr();
  for (int turn = 0; turn < 40; ++turn) {
    misled->Send(kServerPeer, EncodeMessage(Probe()));
    // The server's loop does not run, so it still has the old key.
    misled->Receive(10, &from, &frame);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("has another key"));
  EXPECT_TRUE(Talk(*misled)) << "once the server has looked at its folder";
}

TEST_F(KeysOfAJob, ARevokedKeyIsCutOffAndOthersGoOn) {
  Listen();
  const auto other = Dial(kStranger, Folder(KeyRole::kWorker));
  Add(KeyRole::kWorker, "second");
  const auto worker = Dial(kWorkerPeer, FolderElsewhere("second"));
  ASSERT_TRUE(Talk(*worker));
  ASSERT_TRUE(Talk(*other));
  Revoke("second");
  EXPECT_TRUE(Await(*worker, [&] { return server_->counters().connections_refused > 0; }));
  const uint64_t received = server_->counters().frames_received;
  EXPECT_FALSE(Talk(*worker, 20));
  EXPECT_EQ(server_->counters().frames_received, received);
  EXPECT_TRUE(Talk(*other));
}

TEST_F(KeysOfAJob, AListenersKeyIsRotatedWhileItIsTalkedTo) {
  Listen();
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker));
  const auto late = Dial(kStranger, Folder(KeyRole::kWorker));  // Dialed with the old key.
  Rotate("server");
  EXPECT_TRUE(Talk(*worker));
  EXPECT_TRUE(Talk(*late));
  const auto fresh = Dial(NamedPeer(400), Folder(KeyRole::kWorker));
  EXPECT_TRUE(Talk(*fresh)) << "under the new key";
  const uint64_t admitted = server_->counters().connections_admitted;
  Revoke("server.1");
  EXPECT_TRUE(Await(*worker, [&] { return server_->counters().connections_admitted > admitted; }));
  EXPECT_TRUE(Talk(*worker));
  EXPECT_TRUE(Talk(*fresh));
}

TEST_F(KeysOfAJob, ADialersKeyIsRotatedWhileItTalks) {
  Listen();
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker));
  Rotate("worker");
  EXPECT_TRUE(Await(*worker, [&] { return server_->counters().connections_admitted > 1; }));
  Revoke("worker.1");
  EXPECT_TRUE(Talk(*worker));
}

// The owner of a peer id cannot use it in another role either.
TEST_F(KeysOfAJob, AWorkersNumberIsHeardWithAWorkersKeyAlone) {
  Listen();
  auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker));
  const auto reader = Dial(kWorkerPeer, Folder(KeyRole::kReader));
  reader->HangUp(kServerPeer);  // Makes it dial as often as the earlier peer, and once more.
  ASSERT_TRUE(reader->Connect(kServerPeer, address_).ok());
  reader->Send(kServerPeer, EncodeMessage(Probe()));
  EXPECT_TRUE(Await(*reader, [&] { return server_->counters().frames_refused > 0; }));
}

// A key proves a role, not a peer id: a peer that claims the worker's id is refused, before the
// worker is there and after.
TEST_F(KeysOfAJob, AWorkersNumberIsHeardOfTheWorkerAlone) {
  Listen();
  PeerName thief = NewPeerName();
  thief.peer = kWorkerPeer;
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  for (const KeyRole role : {KeyRole::kReader, KeyRole::kServer, KeyRole::kWorker}) {
    TransportOptions options;
    options.self = thief;
    options.keys = Folder(role);
    const auto other = NewZmqTransport(options);
    ASSERT_TRUE(other->Connect(kServerPeer, address_).ok());
    const uint64_t refused = server_->counters().frames_refused;
    other->Send(kServerPeer, EncodeMessage(Probe()));
    EXPECT_TRUE(Await(*other, [&] { return server_->counters().frames_refused > refused; }));
    EXPECT_TRUE(Talk(*worker)) << WordOf(role);
  }
}

TEST_F(KeysOfAJob, AReadersPushIsRefusedAndLoggedOnce) {
  Listen();
  const auto reader = Dial(kStranger, Folder(KeyRole::kReader));
  EXPECT_TRUE(Talk(*reader)) << "it may probe";
  // It may have sent this more than once before it was heard.
  EXPECT_TRUE(Await(*reader, [&] {
    return server_->counters().frames_received == reader->counters().frames_sent;
  }));
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Await(*reader, [&] {
    reader->Send(kServerPeer, EncodeMessage(AdvanceRequest{1}));
    PeerId from;
    Frame frame;
    EXPECT_FALSE(server_->Receive(0, &from, &frame)) << "the server's owner hears of none";
    return server_->counters().frames_refused > 1;
  }));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("reader reader"));
  EXPECT_THAT(log, HasSubstr("which is for a worker"));
  EXPECT_EQ(log.find("refused a frame"), log.rfind("refused a frame"));
}

// ---- Which role may send what.

TEST(KeyPermissions, EachKindHasItsSendersAndOthersAreRefused) {
  const std::set<MessageKind> of_readers = {
      MessageKind::kPullRequest,      MessageKind::kProbe,
      MessageKind::kStatusRequest,    MessageKind::kJobRequest,
      MessageKind::kRowPlacesRequest, MessageKind::kPanelRequest,
      MessageKind::kTraceRequest,     MessageKind::kPredictRequest};
  std::set<MessageKind> of_admins = of_readers;
  of_admins.insert(MessageKind::kScaleRequest);
  const std::set<MessageKind> of_members = {
      MessageKind::kJoinRequest, MessageKind::kHeartbeat, MessageKind::kCommandDone,
      MessageKind::kStopRequest, MessageKind::kKvPut,     MessageKind::kKvGet,
      MessageKind::kAbort,       MessageKind::kTracePart, MessageKind::kLeaveRequest};
  const std::set<MessageKind> of_workers = {
      MessageKind::kPullRequest,    MessageKind::kProbe,        MessageKind::kPushRequest,
      MessageKind::kAdvanceRequest, MessageKind::kStoreRequest, MessageKind::kSquaresRequest,
      MessageKind::kJobRequest};
  const std::set<MessageKind> of_servers = {MessageKind::kPullReply,  MessageKind::kPushAck,
                                            MessageKind::kAdvanceAck, MessageKind::kStoreAck,
                                            MessageKind::kReplicate,  MessageKind::kReplicateAck,
                                            MessageKind::kProbeAck,   MessageKind::kSquaresReply};
  for (int number = 0; number < 1024; ++number) {
    const auto kind = static_cast<MessageKind>(number);
    int senders = 0;
    for (const auto& [role, word] : WordsOf(KeyRole{})) senders += MaySend(role, kind);
    EXPECT_EQ(senders > 0, std::string(MessageKindName(kind)) != "unknown message") << number;
    EXPECT_EQ(MaySend(KeyRole::kReader, kind), of_readers.contains(kind)) << number;
    EXPECT_EQ(MaySend(KeyRole::kAdmin, kind), of_admins.contains(kind)) << number;
    const bool member = of_members.contains(kind);
    EXPECT_EQ(MaySend(KeyRole::kWorker, kind), member || of_workers.contains(kind)) << number;
    EXPECT_EQ(MaySend(KeyRole::kServer, kind), member || of_servers.contains(kind)) << number;
    const bool of_serving = kind == MessageKind::kPredictReply;
    EXPECT_EQ(MaySend(KeyRole::kServing, kind), of_serving) << number;
    const bool of_others = member || of_serving || of_workers.contains(kind) ||
                           of_servers.contains(kind) || of_readers.contains(kind) ||
                           of_admins.contains(kind);
    EXPECT_EQ(MaySend(KeyRole::kScheduler, kind),
              (senders > 0 && !of_others) || kind == MessageKind::kAbort)
        << number;
  }
}

TEST(KeyPermissions, WhoJoinsHasTheKeyOfThatRole) {
  for (const auto& [as, own] :
       {std::pair(Role::kServer, KeyRole::kServer), std::pair(Role::kWorker, KeyRole::kWorker)}) {
    JoinRequest join;
    join.role = as;
    join.address = "tcp://127.0.0.1:5";
    for (const auto& [role, word] : WordsOf(KeyRole{})) {
      const Status checked = CheckMaySend(role, EncodeMessage(join));
      EXPECT_EQ(checked.ok(), role == own) << "the key of a " << word << " as a " << RoleName(as);
      if (role != KeyRole::kServer && role != KeyRole::kWorker) continue;
      if (role == own) continue;
      EXPECT_THAT(checked.message(), HasSubstr(std::string("join as a ") + RoleName(as)));
    }
  }
}

// ---- The list and the folder.

TEST(AllowedKeys, MistakesAreNamedWithTheirLine) {
  const std::string key(40, '0');
  const auto mistake = [](const std::string& text) {
    const auto keys = ParseAllowedKeys(text, "DIR/allowed");
    return keys.ok() ? "" : keys.status().message();
  };
  EXPECT_EQ(mistake("# remark\n\nworker w1 " + key + "\n"), "");
  EXPECT_EQ(mistake("worker w1 " + key + " revoked\n"), "");
  EXPECT_THAT(mistake("\nboss w1 " + key), HasSubstr("DIR/allowed:2: \"boss\" is no role"));
  EXPECT_THAT(mistake("worker ../x " + key), HasSubstr("no name of a key"));
  EXPECT_THAT(mistake("worker w1 " + key.substr(1)), HasSubstr("no public key"));
  EXPECT_THAT(mistake("worker w1 " + std::string(40, '"')), HasSubstr("no public key"));
  EXPECT_THAT(mistake("worker w1 " + key + " gone"), HasSubstr("write revoked"));
  EXPECT_THAT(mistake("worker w1 " + key + "\nreader w1 " + std::string(40, '1')),
              HasSubstr("there is a key w1 already"));
  EXPECT_THAT(mistake("worker w1 " + key + "\nreader w2 " + key), HasSubstr("already"));
}

TEST(KeyFolders, OpenToOthersAreRefused) {
  const std::string folder = testing::TempDir() + "/hdps_keys_" + std::to_string(getpid());
  std::shared_ptr<FileSystem> files = NewPosixFileSystem();
  const CurveKeys keys = NewKeys();
  ASSERT_TRUE(files->MakeDirectories(folder).ok());
  const auto chmod_to = [&](const std::string& path, mode_t mode) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0) << path;
  };
  const auto opened = [&] {
    const auto open = KeyFolder::Open(files, folder, {KeyRole::kWorker});
    return open.ok() ? "" : open.status().message();
  };
  EXPECT_THAT(opened(), HasSubstr("hdps keygen --out=" + folder));
  const std::string list = AllowedKeysPath(folder), secret = SecretKeyPath(folder, "w");
  ASSERT_TRUE(WriteFileAtomically(
                  *files, list, PrintAllowedKeys({{KeyRole::kWorker, "w", keys.public_key, false}}))
                  .ok());
  EXPECT_THAT(opened(), HasSubstr("no secret of a key with the role worker"));
  ASSERT_TRUE(WriteFileAtomically(*files, secret, keys.secret_key).ok());
  chmod_to(folder, 0755);
  chmod_to(list, 0644);
  chmod_to(secret, 0600);
  EXPECT_EQ(opened(), "");
  for (const mode_t mode : {0640, 0604}) {
    chmod_to(secret, mode);
    EXPECT_THAT(opened(), HasSubstr("chmod 600 " + secret));
    EXPECT_THAT(opened(), Not(HasSubstr(keys.secret_key)));
  }
  chmod_to(secret, 0600);
  for (const mode_t mode : {0664, 0646}) {
    chmod_to(list, mode);
    EXPECT_THAT(opened(), HasSubstr("chmod go-w " + list));
  }
  chmod_to(list, 0644);
  chmod_to(folder, 0777);
  EXPECT_THAT(opened(), HasSubstr("chmod go-w " + folder));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hdps
