// Implements hdps keygen: creates, rotates and revokes the keys of a job.
#include <gflags/gflags.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/net/keys/key_folder.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"
#include "tools/commands.h"

DECLARE_string(out);
DEFINE_string(add, "", "Role and name of one more key, ROLE:NAME");
DEFINE_string(rotate, "", "Name of a key that a new one replaces");
DEFINE_string(revoke, "", "Name of a key that is no longer allowed");

namespace hdps {
namespace {

Status Mistaken(const std::string& what) { return {Code::kInvalidArgument, what}; }

// Changes the list of keys in a folder.
//
// Invariant: a key is in the list on disk before its secret is in the folder, so that a process
// that reads both in between continues with the old secret.
class KeyList {
 public:
  KeyList(FileSystem& files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  Status Read() {
    HDPS_ASSIGN_OR_RETURN(keys_, ReadAllowedKeys(files_, folder_));
    return {};
  }
  AllowedKey* Find(const std::string& name) {
    const auto found = std::ranges::find(keys_, name, &AllowedKey::name);
    return found == keys_.end() ? nullptr : &*found;
  }
  // Returns the key with this name, or the reason why there is none.
  Result<AllowedKey*> Named(const char* flag, const std::string& name) {
    if (AllowedKey* key = Find(name); key != nullptr) return key;
    std::string names;
    for (const AllowedKey& key : keys_) names += (names.empty() ? "" : ", ") + key.name;
    return Mistaken(std::string(flag) + "=" + name + ": there is no such key in " +
                    AllowedKeysPath(folder_) + "; there are " + names);
  }
  Status Add(KeyRole role, const std::string& name) {
    HDPS_ASSIGN_OR_RETURN(CurveKeys made, NewCurveKeys());
    keys_.push_back({role, name, made.public_key, false});
    made_.emplace_back(name, std::move(made));
    return {};
  }
  // Returns a free name for the old key: NAME.1 is the key before the first rotation, NAME.2 the
  // one before the second, and so on.
  std::string FreeNameBehind(const std::string& name) {
    for (int number = 1;; ++number) {
      const std::string free = name + "." + std::to_string(number);
      if (Find(free) == nullptr) return free;
    }
  }
  Status Write() {
    HDPS_RETURN_IF_ERROR(
        WriteFileAtomically(files_, AllowedKeysPath(folder_), PrintAllowedKeys(keys_)));
    for (const auto& [name, keys] : made_) {
      HDPS_RETURN_IF_ERROR(
          WriteFileAtomically(files_, SecretKeyPath(folder_, name), keys.secret_key + "\n"));
      // Reads the secret as the daemons will; on a disk without permissions this reports the
      // problem.
      HDPS_RETURN_IF_ERROR(ReadSecretKey(files_, folder_, name).status());
    }
    return ReadAllowedKeys(files_, folder_).status();
  }

 private:
  FileSystem& files_;
  const std::string folder_;
  std::vector<AllowedKey> keys_;
  std::vector<std::pair<std::string, CurveKeys>> made_;
};

Status MakeAll(FileSystem& files, KeyList& list) {
  if (files.Exists(AllowedKeysPath(FLAGS_out))) {
    return Mistaken("--out=" + FLAGS_out +
                    " has keys already; give --add=ROLE:NAME, --rotate=NAME or --revoke=NAME to "
                    "change them, or another folder");
  }
  for (const auto& [role, word] : WordsOf(KeyRole{})) {
    HDPS_RETURN_IF_ERROR(list.Add(role, std::string(word)));
  }
  HDPS_RETURN_IF_ERROR(list.Write());
  PrintOut(
      "%s: one key for each role, and the list of those allowed\n"
      "To each machine of the job copy %s and, of the roles that run there, NAME.key (mode 0600),\n"
      "and give all programs --keys with that folder.\n",
      FLAGS_out.c_str(), AllowedKeysPath(FLAGS_out).c_str());
  return {};
}

Status AddOne(KeyList& list) {
  const size_t colon = FLAGS_add.find(':');
  const std::string word = FLAGS_add.substr(0, colon);
  const std::string name = colon == std::string::npos ? "" : FLAGS_add.substr(colon + 1);
  const std::optional<KeyRole> role = KeyRoleOf(word);
  if (!role) {
    return Mistaken(
        "--add=" + FLAGS_add +
        ": write ROLE:NAME with scheduler, server, worker, reader, admin or serving as the role");
  }
  if (const Status fits = CheckKeyName(name); !fits.ok()) {
    return Mistaken("--add=" + FLAGS_add + ": " + fits.message());
  }
  if (list.Find(name) != nullptr) {
    return Mistaken("--add=" + FLAGS_add + ": there is a key " + name +
                    "; take another name, or --rotate=" + name);
  }
  HDPS_RETURN_IF_ERROR(list.Add(*role, name));
  HDPS_RETURN_IF_ERROR(list.Write());
  PrintOut("%s: added %s, a %s\n", FLAGS_out.c_str(), name.c_str(), word.c_str());
  return {};
}

Status Rotate(KeyList& list) {
  HDPS_ASSIGN_OR_RETURN(AllowedKey* const key, list.Named("--rotate", FLAGS_rotate));
  if (key->revoked)
    return Mistaken("--rotate=" + FLAGS_rotate + ": this key is revoked; --add one");
  const std::string before = list.FreeNameBehind(key->name);
  const KeyRole role = key->role;
  key->name = before;
  HDPS_RETURN_IF_ERROR(list.Add(role, FLAGS_rotate));
  HDPS_RETURN_IF_ERROR(list.Write());
  PrintOut(
      "%s: %s has a new key; the one before is %s now and allowed until\n"
      "hdps keygen --out=%s --revoke=%s\n",
      FLAGS_out.c_str(), FLAGS_rotate.c_str(), before.c_str(), FLAGS_out.c_str(), before.c_str());
  return {};
}

Status Revoke(KeyList& list) {
  HDPS_ASSIGN_OR_RETURN(AllowedKey* const key, list.Named("--revoke", FLAGS_revoke));
  key->revoked = true;
  HDPS_RETURN_IF_ERROR(list.Write());
  PrintOut("%s: %s is revoked, wherever this list is copied to\n", FLAGS_out.c_str(),
           FLAGS_revoke.c_str());
  return {};
}

Status Run() {
  if (FLAGS_out.empty()) return Mistaken("--out is missing; give the folder for keys, --out=DIR");
  const int changes = !FLAGS_add.empty() + !FLAGS_rotate.empty() + !FLAGS_revoke.empty();
  if (changes > 1) return Mistaken("give one of --add, --rotate and --revoke at a time");
  MakeFilesPrivate();
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  if (changes == 0) HDPS_RETURN_IF_ERROR(files->MakeDirectories(FLAGS_out));
  HDPS_ASSIGN_OR_RETURN(
      const std::unique_ptr<FileLock> lock,
      files->Lock(AllowedKeysPath(FLAGS_out) + ".lock", "hdps keygen " + HostAndProcess()));
  KeyList list(*files, FLAGS_out);
  if (changes == 0) return MakeAll(*files, list);
  HDPS_RETURN_IF_ERROR(list.Read());
  if (!FLAGS_add.empty()) return AddOne(list);
  return FLAGS_rotate.empty() ? Revoke(list) : Rotate(list);
}

}  // namespace

Subcommand KeygenCommand() {
  return {"keygen",
          "make, rotate and revoke the keys of a job",
          "hdps keygen --out=DIR [--add=ROLE:NAME | --rotate=NAME | --revoke=NAME]\n"
          "Makes one key for each role (scheduler, server, worker, reader and admin) and\n"
          "the list of allowed keys, or changes that list. Daemons read it once a second.",
          {"out", "add", "rotate", "revoke"},
          Run};
}

}  // namespace hdps
