// Files in a map in memory, for tests and the simulator.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "common/base/thread_annotations.h"
#include "common/platform/file_identity.h"
#include "common/platform/file_system.h"
#include "common/platform/seekable_file.h"

namespace hdps {

namespace {

// The bytes of one file. An open file keeps them when its name is renamed or removed, as in the
// operating system.
class Contents {
 public:
  // `number` is unique within the file system.
  explicit Contents(int64_t number) : number_(number) {}
  int64_t number() const { return number_; }
  void Append(std::span<const std::byte> bytes) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  size_t Read(size_t from, std::span<std::byte> out) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (from >= bytes_.size() || out.empty()) return 0;
    const size_t count = std::min(out.size(), bytes_.size() - from);
    std::memcpy(out.data(), bytes_.data() + from, count);
    return count;
  }
  size_t size() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return bytes_.size();
  }

 private:
  const int64_t number_;
  Mutex mutex_;
  std::vector<std::byte> bytes_ HDPS_GUARDED_BY(mutex_);
};

class MemorySequentialFile : public SequentialFile, public SeekableFile {
 public:
  explicit MemorySequentialFile(std::shared_ptr<Contents> contents)
      : contents_(std::move(contents)) {}
  Result<size_t> Read(std::span<std::byte> buffer) override {
    const size_t got = contents_->Read(position_, buffer);
    position_ += got;
    return got;
  }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> buffer) override {
    return contents_->Read(offset, buffer);
  }
  void WillRead(uint64_t, size_t) override {}

 private:
  std::shared_ptr<Contents> contents_;
  size_t position_ = 0;
};

class MemoryWritableFile : public WritableFile {
 public:
  explicit MemoryWritableFile(std::shared_ptr<Contents> contents)
      : contents_(std::move(contents)) {}
  Status Append(std::span<const std::byte> bytes) override {
    contents_->Append(bytes);
    return {};
  }
  Status Sync() override { return {}; }
  Status Close() override { return {}; }

 private:
  std::shared_ptr<Contents> contents_;
};

// Normalizes a path: "a//b/../c/" -> "a/c"; the working directory is ".".
std::string Normal(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text.empty() ? "." : text;
}

std::string FolderOf(const std::string& normal) {
  return Normal(std::filesystem::path(normal).parent_path().string());
}

Status Absent(const std::string& what, const std::string& path) {
  return Status(Code::kNotFound, "cannot " + what + " " + path + ": No such file or directory");
}
Status Refused(const std::string& what, const std::string& path, const char* reason) {
  return Status(Code::kIoError, "cannot " + what + " " + path + ": " + reason);
}

// Invariant: the folder of every name is in folders_, and no name is both file and folder.
class MemoryFileSystem : public FileSystem, public FileIdentities {
 public:
  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override
      HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (folders_.contains(Normal(path))) {
      return Status(Code::kInvalidArgument, "open " + path + ": it is a folder; name a file in it");
    }
    const auto found = files_.find(Normal(path));
    if (found == files_.end()) return Absent("open", path);
    return std::unique_ptr<SequentialFile>(std::make_unique<MemorySequentialFile>(found->second));
  }

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override
      HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return OpenWritable(path, true);
  }
  Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override
      HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return OpenWritable(path, false);
  }

  Status MakeDirectories(const std::string& path) override HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::vector<std::string> wanted;
    for (std::string at = Normal(path); !folders_.contains(at); at = FolderOf(at)) {
      if (files_.contains(at)) return Refused("make folder", path, "Not a directory");
      wanted.push_back(at);
    }
    folders_.insert(wanted.begin(), wanted.end());
    return {};
  }

  Status Rename(const std::string& from_path, const std::string& to_path) override
      HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const std::string from = Normal(from_path), to = Normal(to_path);
    if (!folders_.contains(FolderOf(to))) return Absent("rename " + from + " to", to);
    if (from == to && IsThere(from)) return {};
    if (const auto file = files_.find(from); file != files_.end()) {
      if (folders_.contains(to)) return Refused("rename " + from + " to", to, "Is a directory");
      files_[to] = file->second;
      files_.erase(from);
      return {};
    }
    if (!folders_.contains(from)) return Absent("rename", from);
    if (files_.contains(to)) return Refused("rename " + from + " to", to, "Not a directory");
    if (!NamesIn(to).empty()) {
      return Refused("rename " + from + " to", to, "Directory not empty");
    }
    if (to.starts_with(from + '/')) {
      return Refused("rename " + from + " to", to, "Invalid argument");
    }
    MoveFolder(from, to);
    return {};
  }

  Status RemoveAll(const std::string& path) override HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const std::string normal = Normal(path);
    const auto below = [&normal](const std::string& name) {
      return name == normal || name.starts_with(normal + '/');
    };
    std::erase_if(files_, [&below](const auto& file) { return below(file.first); });
    std::erase_if(folders_, [&below](const std::string& name) {
      return name != "." && name != "/" && below(name);
    });
    return {};
  }

  Result<std::vector<std::string>> List(const std::string& path) override HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!folders_.contains(Normal(path))) return Absent("list", path);
    return NamesIn(Normal(path));
  }

  Result<uint64_t> FileSize(const std::string& path) override HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = files_.find(Normal(path));
    if (found == files_.end()) return Absent("get the size of", path);
    return static_cast<uint64_t>(found->second->size());
  }

  // A file changes by being created again or growing.
  Result<FileStamp> StampOf(const std::string& path) override HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = files_.find(Normal(path));
    if (found == files_.end()) return Absent("look at", path);
    return FileStamp{static_cast<uint64_t>(found->second->size()), found->second->number()};
  }

  bool Exists(const std::string& path) override HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return IsThere(Normal(path));
  }

  bool IsLink(const std::string&) override { return false; }
  Result<FileIdentity> IdentityOf(const std::string& path) override HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = files_.find(Normal(path));
    if (found == files_.end()) return Absent("look at", path);
    return FileIdentity{0, reinterpret_cast<uintptr_t>(found->second.get()), true, found->first};
  }

  Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                         const std::string& holder) override HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const std::string normal = Normal(path);
    const auto [held, is_ours] = holders_.try_emplace(normal, holder);
    if (!is_ours) return HeldBy(path, held->second);
    const Result<std::unique_ptr<WritableFile>> file = OpenWritable(path, true);
    if (!file.ok()) {
      holders_.erase(held);
      return file.status();
    }
    HDPS_RETURN_IF_ERROR((*file)->Append(std::as_bytes(std::span<const char>(holder))));
    return std::unique_ptr<FileLock>(std::make_unique<MemoryFileLock>(*this, normal));
  }

 private:
  class MemoryFileLock : public FileLock {
   public:
    MemoryFileLock(MemoryFileSystem& files, std::string path)
        : files_(files), path_(std::move(path)) {}
    ~MemoryFileLock() override { files_.Unlock(path_); }

   private:
    MemoryFileSystem& files_;
    const std::string path_;
  };
  void Unlock(const std::string& normal) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    holders_.erase(normal);
    files_.erase(normal);
  }

  bool IsThere(const std::string& normal) HDPS_REQUIRES(mutex_) {
    return files_.contains(normal) || folders_.contains(normal);
  }

  Result<std::unique_ptr<WritableFile>> OpenWritable(const std::string& path, bool empty_it)
      HDPS_REQUIRES(mutex_) {
    const std::string normal = Normal(path);
    if (folders_.contains(normal)) return Refused("write", path, "Is a directory");
    if (!folders_.contains(FolderOf(normal))) return Absent("write", path);
    std::shared_ptr<Contents>& contents = files_[normal];
    if (contents == nullptr || empty_it) contents = std::make_shared<Contents>(++made_);
    return std::unique_ptr<WritableFile>(std::make_unique<MemoryWritableFile>(contents));
  }

  // Returns the names of files and folders directly in `folder`, sorted.
  std::vector<std::string> NamesIn(const std::string& folder) HDPS_REQUIRES(mutex_) {
    std::set<std::string> names;
    const auto take = [&](const std::string& name) {
      if (name != folder && FolderOf(name) == folder) {
        names.insert(std::filesystem::path(name).filename().string());
      }
    };
    for (const auto& [name, contents] : files_) take(name);
    for (const std::string& name : folders_) take(name);
    names.erase(".");
    return {names.begin(), names.end()};
  }

  void MoveFolder(const std::string& from, const std::string& to) HDPS_REQUIRES(mutex_) {
    const auto moved = [&](const std::string& name) { return to + name.substr(from.size()); };
    const auto below = [&](const std::string& name) { return name.starts_with(from + '/'); };
    std::map<std::string, std::shared_ptr<Contents>> files;
    for (auto& [name, contents] : files_) files[below(name) ? moved(name) : name] = contents;
    std::set<std::string> folders;
    for (const std::string& name : folders_) {
      folders.insert(name == from || below(name) ? moved(name) : name);
    }
    files_.swap(files);
    folders_.swap(folders);
  }

  Mutex mutex_;
  int64_t made_ HDPS_GUARDED_BY(mutex_) = 0;  // Number of Contents created.
  std::map<std::string, std::shared_ptr<Contents>> files_ HDPS_GUARDED_BY(mutex_);
  std::set<std::string> folders_ HDPS_GUARDED_BY(mutex_) = {".", "/"};
  // Holders of locks, by path.
  std::map<std::string, std::string> holders_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<FileSystem> NewMemoryFileSystem() { return std::make_unique<MemoryFileSystem>(); }

}  // namespace hdps
