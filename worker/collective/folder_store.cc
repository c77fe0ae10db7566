// Keeps each value in a file of its own, which appears whole.
#include "worker/collective/folder_store.h"

#include <cctype>

namespace hdps {
namespace {

constexpr int64_t kLookAgainMs = 5;
constexpr uint64_t kValueBytesMax = 1 << 20;

}  // namespace

std::string FolderStore::PathOf(const std::string& key) const {
  std::string name = key;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return JoinPath(folder_, name);
}

Status FolderStore::Put(const std::string& key, const std::string& value) {
  HDPS_RETURN_IF_ERROR(files_.MakeDirectories(folder_));
  const std::string path = PathOf(key);
  if (files_.Exists(path)) {
    return Status(Code::kInvalidArgument,
                  path +
                      " is there already: another process has this number, or an earlier run was "
                      "killed; give all processes an empty folder");
  }
  HDPS_RETURN_IF_ERROR(WriteFileAtomically(files_, path, value));
  own_.push_back(path);
  return Status();
}

Result<std::string> FolderStore::Get(const std::string& key) {
  const std::string path = PathOf(key);
  const int64_t begin = clock_.NowNs();
  while (!files_.Exists(path)) {
    if (clock_.NowNs() - begin > timeout_ms_ * 1'000'000) {
      return Status(Code::kUnavailable, path + " did not come within " +
                                            std::to_string(timeout_ms_ / 1000) +
                                            " s (cluster.request_timeout_s): start all "
                                            "processes of --workers");
    }
    pause_.For(kLookAgainMs);
  }
  return ReadWholeFile(files_, path, kValueBytesMax);
}

Status FolderStore::Leave() {
  for (const std::string& path : own_) HDPS_RETURN_IF_ERROR(files_.RemoveAll(path));
  own_.clear();
  return Status();
}

}  // namespace hdps
