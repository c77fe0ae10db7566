// Makes a folder with keys of every role, and options for transports that use it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/net/keys/key_folder.h"
#include "common/net/transport.h"
#include "tests/common/net/named_peers.h"

namespace hdps {

// Makes keys of all roles in one folder, for listeners and dialers alike.
inline std::shared_ptr<FileSystem> FolderOfKeys() {
  std::shared_ptr<FileSystem> files = NewMemoryFileSystem();
  std::vector<AllowedKey> list;
  EXPECT_TRUE(files->MakeDirectories("k").ok());
  for (const auto& [role, word] : WordsOf(KeyRole{})) {
    const Result<CurveKeys> keys = NewCurveKeys();
    EXPECT_TRUE(keys.ok());
    list.push_back({role, std::string(word), keys->public_key, false});
    EXPECT_TRUE(
        WriteFileAtomically(*files, SecretKeyPath("k", std::string(word)), keys->secret_key).ok());
  }
  EXPECT_TRUE(WriteFileAtomically(*files, AllowedKeysPath("k"), PrintAllowedKeys(list)).ok());
  return files;
}

// Returns options without shared memory. Null `keys`: without keys.
inline TransportOptions OptionsFor(PeerId self, const std::shared_ptr<FileSystem>& keys,
                                   KeyRole role) {
  TransportOptions options;
  options.self = NameOf(self);
  options.shared_bytes_per_peer = 0;
  if (keys) options.keys = *KeyFolder::Open(keys, "k", {role});
  return options;
}

}  // namespace hdps
