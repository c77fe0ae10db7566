// Fixture with the keys of one job in memory, a listener with a server's key, and dialers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/net/keys/key_folder.h"
#include "common/net/transport.h"
#include "common/protocol/key_permissions.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "tests/common/net/named_peers.h"

namespace hdps {

inline const PeerId kServerPeer{100}, kWorkerPeer = NamedPeer(200), kStranger = NamedPeer(300);

inline CurveKeys NewKeys() {
  Result<CurveKeys> keys = NewCurveKeys();
  EXPECT_TRUE(keys.ok()) << keys.status().message();
  return keys.ok() ? *keys : CurveKeys();
}

// Keeps the folders of one job's keys on several machines, in memory.
class KeysOfAJob : public testing::Test {
 protected:
  KeysOfAJob() {
    EXPECT_TRUE(files_->MakeDirectories("k").ok());
    for (const auto& [role, word] : WordsOf(KeyRole{})) Add(role, std::string(word));
  }
  void Add(KeyRole role, const std::string& name) {
    const CurveKeys keys = NewKeys();
    list_.push_back({role, name, keys.public_key, false});
    Write();
    WriteSecret(name, keys);
  }
  void Write() {
    ASSERT_TRUE(WriteFileAtomically(*files_, AllowedKeysPath("k"), PrintAllowedKeys(list_)).ok());
  }
  void WriteSecret(const std::string& name, const CurveKeys& keys) {
    ASSERT_TRUE(WriteFileAtomically(*files_, SecretKeyPath("k", name), keys.secret_key).ok());
  }
  AllowedKey& Named(const std::string& name) {
    return *std::ranges::find(list_, name, &AllowedKey::name);
  }
  void Revoke(const std::string& name) {
    Named(name).revoked = true;
    Write();
  }
  // Rotates a key in the order of hdps keygen: first the list, then the secret.
  void Rotate(const std::string& name) {
    const KeyRole role = Named(name).role;
    Named(name).name = name + ".1";
    Add(role, name);
  }

  std::shared_ptr<KeyFolder> Folder(KeyRole role) {
    auto folder = KeyFolder::Open(files_, "k", {role});
    EXPECT_TRUE(folder.ok()) << folder.status().message();
    return folder.ok() ? *folder : nullptr;
  }
  std::unique_ptr<Transport> NewTransport(PeerId self, std::shared_ptr<KeyFolder> keys) {
    TransportOptions options = options_;
    options.self = NameOf(self);
    options.keys = std::move(keys);
    options.may_send = CheckMaySend;
    return NewZmqTransport(options);
  }
  void Listen(const std::string& at = "tcp://127.0.0.1:0") {
    server_ = NewTransport(kServerPeer, Folder(KeyRole::kServer));
    Result<std::string> address = server_->Listen(at);
    ASSERT_TRUE(address.ok()) << address.status().message();
    address_ = *address;
  }
  std::unique_ptr<Transport> Dial(PeerId self, std::shared_ptr<KeyFolder> keys) {
    std::unique_ptr<Transport> dialer = NewTransport(self, std::move(keys));
    const Status dialed = dialer->Connect(kServerPeer, address_);
    EXPECT_TRUE(dialed.ok()) << dialed.message();
    return dialer;
  }

  // Runs both transports until `dialer` was heard and got an answer; returns false after `turns`.
  bool Talk(Transport& dialer, int turns = 400, const Frame& said = EncodeMessage(Probe())) {
    bool heard = false;
    for (int turn = 0; turn < turns; ++turn) {
      PeerId from;
      Frame frame;
      dialer.Send(kServerPeer, said);
      if (server_->Receive(10, &from, &frame)) {
        heard = true;
        server_->Send(from, EncodeMessage(ProbeAck()));
      }
      if (dialer.Receive(10, &from, &frame) && heard) return true;
    }
    return false;
  }
  // Returns the folder of a machine that has only the key `name` and sees no later changes.
  std::shared_ptr<KeyFolder> FolderElsewhere(const std::string& name) {
    auto elsewhere = NewMemoryFileSystem();
    const Result<std::string> secret = ReadWholeFile(*files_, SecretKeyPath("k", name), 100);
    EXPECT_TRUE(secret.ok() && elsewhere->MakeDirectories("k").ok());
    EXPECT_TRUE(WriteFileAtomically(*elsewhere, "k/allowed", PrintAllowedKeys(list_)).ok());
    EXPECT_TRUE(WriteFileAtomically(*elsewhere, SecretKeyPath("k", name), *secret).ok());
    auto folder = KeyFolder::Open(std::move(elsewhere), "k", {Named(name).role});
    EXPECT_TRUE(folder.ok()) << folder.status().message();
    return folder.ok() ? *folder : nullptr;
  }
  // Runs both transports until `done`.
  bool Await(Transport& dialer, const std::function<bool()>& done) {
    for (int turn = 0; turn < 400 && !done(); ++turn) {
      PeerId from;
      Frame frame;
      server_->Receive(10, &from, &frame);
      dialer.Receive(10, &from, &frame);
    }
    return done();
  }

  TransportOptions options_;  // Options of all transports.
  std::shared_ptr<FileSystem> files_ = NewMemoryFileSystem();
  std::vector<AllowedKey> list_;
  std::unique_ptr<Transport> server_;
  std::string address_;
};

}  // namespace hdps
