// Reads keys, and refuses files that others can read or write.
#include "common/net/keys/key_folder.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace hdps {
namespace {

constexpr uint64_t kListBytesMax = 2 << 20, kSecretBytesMax = 256;
constexpr int64_t kLookEveryMs = 1000;

Status Refused(const std::string& what) {
  return Status(Code::kInvalidArgument, "--keys: " + what);
}

Status CheckOthersCannotWrite(FileSystem& files, const std::string& path) {
  HDPS_ASSIGN_OR_RETURN(const FileAccess access, files.AccessOf(path));
  if (!access.ours) return Refused(path + " belongs to another user; chown it to this one");
  if (!access.others_write) return {};
  return Refused(path + " can be written by other users, who could let themselves in: chmod go-w " +
                 path);
}

}  // namespace

std::string AllowedKeysPath(const std::string& folder) { return JoinPath(folder, "allowed"); }

std::string SecretKeyPath(const std::string& folder, const std::string& name) {
  return JoinPath(folder, name + ".key");
}

Result<std::vector<AllowedKey>> ReadAllowedKeys(FileSystem& files, const std::string& folder) {
  const std::string path = AllowedKeysPath(folder);
  if (!files.Exists(path)) {
    return Refused("there is no list of keys at " + path +
                   "; make it with hdps keygen --out=" + folder);
  }
  HDPS_RETURN_IF_ERROR(CheckOthersCannotWrite(files, folder));
  HDPS_RETURN_IF_ERROR(CheckOthersCannotWrite(files, path));
  HDPS_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path, kListBytesMax));
  Result<std::vector<AllowedKey>> keys = ParseAllowedKeys(text, path);
  if (!keys.ok()) return Refused(keys.status().message());
  return keys;
}

Result<CurveKeys> ReadSecretKey(FileSystem& files, const std::string& folder,
                                const std::string& name) {
  const std::string path = SecretKeyPath(folder, name);
  HDPS_RETURN_IF_ERROR(CheckOthersCannotWrite(files, path));
  HDPS_ASSIGN_OR_RETURN(const FileAccess access, files.AccessOf(path));
  if (access.others_read) {
    return Refused(path + " can be read by other users, so it is no secret: chmod 600 " + path +
                   ", and rotate it if they may have read it");
  }
  HDPS_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(files, path, kSecretBytesMax));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  Result<CurveKeys> keys = CurveKeysOf(text);
  if (!keys.ok()) return Refused(path + ": " + keys.status().message());
  return keys;
}

Result<std::shared_ptr<KeyFolder>> KeyFolder::Open(std::shared_ptr<FileSystem> files,
                                                   std::string folder, std::vector<KeyRole> roles) {
  std::shared_ptr<KeyFolder> keys(
      new KeyFolder(std::move(files), std::move(folder), std::move(roles)));
  HDPS_ASSIGN_OR_RETURN(keys->ring_.allowed, ReadAllowedKeys(*keys->files_, keys->folder_));
  HDPS_ASSIGN_OR_RETURN(keys->ring_.own, keys->FindOwn(keys->ring_.allowed));
  return keys;
}

Result<CurveKeys> KeyFolder::FindOwn(const std::vector<AllowedKey>& allowed) {
  std::string wanted, stranger;
  for (const KeyRole role : roles_) {
    wanted += (wanted.empty() ? "" : " or ") + std::string(WordOf(role));
    for (auto key = allowed.rbegin(); key != allowed.rend(); ++key) {
      if (key->role != role || key->revoked) continue;
      if (!files_->Exists(SecretKeyPath(folder_, key->name))) continue;
      HDPS_ASSIGN_OR_RETURN(CurveKeys own, ReadSecretKey(*files_, folder_, key->name));
      // The list may arrive before the new secret of a rotated key; then the old key stays in use.
      const bool known = std::ranges::any_of(allowed, [&](const AllowedKey& other) {
        return other.public_key == own.public_key && other.role == role && !other.revoked;
      });
      if (known) return own;
      stranger = SecretKeyPath(folder_, key->name);
    }
  }
  if (!stranger.empty()) {
    return Refused("the secret in " + stranger + " is none that " + AllowedKeysPath(folder_) +
                   " allows; copy both from where hdps keygen ran");
  }
  return Refused("no secret of a key with the role " + wanted + " lies in " + folder_ +
                 "; copy its NAME.key there from where hdps keygen ran");
}

bool KeyFolder::Refresh(int64_t now_ms) {
  if (now_ms < looked_ms_ + kLookEveryMs) return false;
  looked_ms_ = now_ms;
  const KeyRing before = ring_;
  std::string trouble;
  if (Result<std::vector<AllowedKey>> allowed = ReadAllowedKeys(*files_, folder_); allowed.ok()) {
    ring_.allowed = *std::move(allowed);
    Result<CurveKeys> own = FindOwn(ring_.allowed);
    if (own.ok()) ring_.own = *std::move(own);
    trouble = own.status().message();
  } else {
    trouble = allowed.status().message();
  }
  if (trouble != trouble_ && !trouble.empty()) {
    LOG(ERROR) << trouble << "; until then what was read before holds";
  }
  trouble_ = trouble;
  if (ring_ == before) return false;
  LOG(INFO) << "the keys in " << folder_ << " have changed";
  return true;
}

}  // namespace hdps
