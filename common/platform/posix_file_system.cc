// Files of the operating system.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/platform/file_identity.h"
#include "common/platform/file_system.h"
#include "common/platform/seekable_file.h"

namespace hdps {

namespace {

constexpr uint64_t kHolderBytesMax = 4096;

Status Failure(const std::string& what, const std::string& path, int error) {
  const bool absent = error == ENOENT || error == ENOTDIR;
  return Status(absent ? Code::kNotFound : Code::kIoError,
                "cannot " + what + " " + path + ": " + std::generic_category().message(error));
}

// Repeats a system call that a signal interrupted.
template <typename Call>
auto Retry(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// An open file of the system. Invariant: fd_ is open until Close() or destruction, and then -1.
class Descriptor {
 public:
  Descriptor(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;

  // Not retried on EINTR: Linux has released the descriptor by then.
  int Close() { return ::close(std::exchange(fd_, -1)); }
  int fd() const { return fd_; }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

Result<Descriptor> Open(const std::string& what, const std::string& path, int flags) {
  const int fd = Retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0644); });
  if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW) != 0) {
    return Status(Code::kIoError, "cannot " + what + " " + path +
                                      ": it is a link, and what it leads to is left as it is; "
                                      "remove it, or name another");
  }
  if (fd < 0) return Failure(what, path, errno);
  return Descriptor(fd, path);
}

// Fails for what is neither a file nor a folder: reading it may block or never end.
Status CheckPlain(const std::string& path, mode_t mode) {
  if (S_ISREG(mode)) return {};
  const std::string place = "open " + path + ": it is ";
  if (S_ISDIR(mode)) return {Code::kInvalidArgument, place + "a folder; name a file in it"};
  if (S_ISFIFO(mode)) {
    return {Code::kInvalidArgument, place + "a fifo, which is read once; name a file"};
  }
  return {Code::kInvalidArgument,
          place + (S_ISSOCK(mode) ? "a socket" : "a device") + "; name a file"};
}

class PosixSequentialFile : public SequentialFile {
 public:
  explicit PosixSequentialFile(Descriptor file) : file_(std::move(file)) {}
  Result<size_t> Read(std::span<std::byte> buffer) override {
    const ssize_t got = Retry([&] { return ::read(file_.fd(), buffer.data(), buffer.size()); });
    if (got < 0) return Failure("read", file_.path(), errno);
    return static_cast<size_t>(got);
  }

 protected:
  const Descriptor& file() const { return file_; }

 private:
  Descriptor file_;
};

// A file as memory of this process.
class MappedMemory : public MappedFile {
 public:
  MappedMemory(void* data, size_t size) : data_(data), size_(size) {}
  ~MappedMemory() override {
    if (size_ > 0) ::munmap(data_, size_);
  }
  std::span<const std::byte> bytes() const override {
    return {static_cast<const std::byte*>(data_), size_};
  }
  // Only hints, so errors are ignored.
  void Drop() override { (void)::madvise(data_, size_, MADV_DONTNEED); }

 private:
  void* const data_;
  const size_t size_;
};

// A regular file.
class PosixSeekableFile : public PosixSequentialFile, public SeekableFile, public MappableFile {
 public:
  using PosixSequentialFile::PosixSequentialFile;
  Result<std::unique_ptr<MappedFile>> Map() override {
    struct stat info {};
    if (::fstat(file().fd(), &info) < 0) return Failure("map", file().path(), errno);
    const auto size = static_cast<size_t>(info.st_size);
    void* data = nullptr;
    if (size > 0) data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file().fd(), 0);
    if (data == MAP_FAILED) return Failure("map", file().path(), errno);
    if (size > 0) (void)::madvise(data, size, MADV_RANDOM);  // Only a hint.
    return std::unique_ptr<MappedFile>(std::make_unique<MappedMemory>(data, size));
  }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> buffer) override {
    const ssize_t got = Retry([&] {
      return ::pread(file().fd(), buffer.data(), buffer.size(), static_cast<off_t>(offset));
    });
    if (got < 0) return Failure("read", file().path(), errno);
    return static_cast<size_t>(got);
  }
  void WillRead(uint64_t offset, size_t bytes) override {
    (void)posix_fadvise(file().fd(), static_cast<off_t>(offset), static_cast<off_t>(bytes),
                        POSIX_FADV_WILLNEED);  // Only a hint, so errors are ignored.
  }
};

class PosixWritableFile : public WritableFile {
 public:
  explicit PosixWritableFile(Descriptor file) : file_(std::move(file)) {}

  Status Append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t put = Retry([&] { return ::write(file_.fd(), bytes.data(), bytes.size()); });
      if (put < 0) return Failure("write", file_.path(), errno);
      bytes = bytes.subspan(static_cast<size_t>(put));
    }
    return {};
  }
  Status Sync() override {
    if (Retry([&] { return ::fsync(file_.fd()); }) < 0) {
      return Failure("sync", file_.path(), errno);
    }
    return {};
  }
  Status Close() override {
    if (file_.fd() < 0) return {};
    if (file_.Close() < 0 && errno != EINTR) return Failure("close", file_.path(), errno);
    return {};
  }

 private:
  Descriptor file_;
};

// Invariant: the file exists in its folder, and we hold its lock.
class PosixFileLock : public FileLock {
 public:
  explicit PosixFileLock(Descriptor file) : file_(std::move(file)) {}
  // The name is removed first, so that a process that opens it later creates another file.
  ~PosixFileLock() override { ::unlink(file_.path().c_str()); }

 private:
  Descriptor file_;
};

// Is true if `path` still names the open file: its last holder may have removed it in between.
bool IsNamed(const Descriptor& file, const std::string& path) {
  struct stat opened {
  }, named{};
  return ::fstat(file.fd(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Syncs the folder of `path`, after which the name survives a crash of the machine.
Status SyncFolderOf(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  HDPS_ASSIGN_OR_RETURN(const Descriptor opened,
                        Open("open folder", folder, O_RDONLY | O_DIRECTORY));
  // Some file systems have no fsync of folders; nothing more can be done on them.
  if (Retry([&] { return ::fsync(opened.fd()); }) < 0 && errno != EINVAL) {
    return Failure("sync folder", folder, errno);
  }
  return {};
}

// Opens the lock file without following a link, so the target of a link is never written to. Lock()
// removes the name of a file with other names for the same reason.
Result<Descriptor> OpenLock(const std::string& path) {
  struct stat info {};
  HDPS_ASSIGN_OR_RETURN(Descriptor file,
                        Open("lock", path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK));
  if (::fstat(file.fd(), &info) < 0) return Failure("lock", path, errno);
  if (S_ISREG(info.st_mode)) return file;
  return Status(Code::kIoError, "cannot lock " + path + ": it is no file; remove it");
}

bool HasOtherNames(const Descriptor& file) {
  struct stat info {};
  return ::fstat(file.fd(), &info) == 0 && info.st_nlink > 1;
}

Result<std::unique_ptr<WritableFile>> OpenWritable(const std::string& path, int flags) {
  HDPS_ASSIGN_OR_RETURN(Descriptor file, Open("write", path, O_WRONLY | O_CREAT | flags));
  return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(std::move(file)));
}

Status MakeFolders(const std::string& path, bool sync) {
  struct stat info {};
  // Usually the folder exists.
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  std::filesystem::path made;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    made /= part;
    if (::mkdir(made.c_str(), 0755) == 0) {
      if (sync) HDPS_RETURN_IF_ERROR(SyncFolderOf(made.string()));
      continue;
    }
    const int error = errno;
    if (::stat(made.c_str(), &info) < 0) return Failure("make folder", path, error);
    if (!S_ISDIR(info.st_mode)) return Failure("make folder", path, ENOTDIR);
  }
  return {};
}

class PosixFileSystem : public FileSystem, public FileIdentities {
 public:
  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override {
    struct stat info {};
    const bool any = NamesStream(path);
    // Checked before opening, because opening alone may block or have an effect, and again after
    // it.
    if (!any && ::stat(path.c_str(), &info) == 0) {
      HDPS_RETURN_IF_ERROR(CheckPlain(path, info.st_mode));
    }
    HDPS_ASSIGN_OR_RETURN(Descriptor file, Open("open", path, O_RDONLY | (any ? 0 : O_NONBLOCK)));
    if (::fstat(file.fd(), &info) < 0) return Failure("open", path, errno);
    const Status plain = CheckPlain(path, info.st_mode);
    if (plain.ok()) {
      return std::unique_ptr<SequentialFile>(std::make_unique<PosixSeekableFile>(std::move(file)));
    }
    if (!any || S_ISDIR(info.st_mode)) return plain;
    return std::unique_ptr<SequentialFile>(std::make_unique<PosixSequentialFile>(std::move(file)));
  }

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    // What exists there is removed instead of written to, because it may be a link or a file with
    // two names.
    if (::unlink(path.c_str()) < 0 && errno != ENOENT) return Failure("write", path, errno);
    return OpenWritable(path, O_EXCL);
  }
  Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override {
    return OpenWritable(path, O_APPEND | (NamesStream(path) ? 0 : O_NOFOLLOW));
  }

  Status MakeDirectories(const std::string& path) override {
    return MakeFolders(path, /*sync=*/true);
  }
  Status MakeDirectoriesUnsynced(const std::string& path) override {
    return MakeFolders(path, /*sync=*/false);
  }

  Status Rename(const std::string& from, const std::string& to) override {
    HDPS_RETURN_IF_ERROR(RenameUnsynced(from, to));
    return SyncFolderOf(to);
  }

  Status RenameUnsynced(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) < 0) {
      return Failure("rename " + from + " to", to, errno);
    }
    return {};
  }

  Status RemoveAll(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return Failure("remove", path, error.value());
    return {};
  }

  Result<std::vector<std::string>> List(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
    if (folder == nullptr) return Failure("list", path, errno);
    std::vector<std::string> names;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(folder.get());
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    if (errno != 0) return Failure("list", path, errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<uint64_t> FileSize(const std::string& path) override {
    struct stat info {};
    if (::stat(path.c_str(), &info) < 0) return Failure("get the size of", path, errno);
    return static_cast<uint64_t>(info.st_size);
  }

  Result<FileStamp> StampOf(const std::string& path) override {
    constexpr int64_t kNsPerSecond = 1'000'000'000;
    struct stat info {};
    if (::stat(path.c_str(), &info) < 0) return Failure("look at", path, errno);
    return FileStamp{static_cast<uint64_t>(info.st_size),
                     info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec};
  }

  bool Exists(const std::string& path) override {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0;
  }

  Result<FileAccess> AccessOf(const std::string& path) override {
    struct stat info {};
    if (::stat(path.c_str(), &info) < 0) return Failure("look at", path, errno);
    return FileAccess{info.st_uid == ::geteuid() || info.st_uid == 0,
                      (info.st_mode & (S_IRGRP | S_IROTH)) != 0,
                      (info.st_mode & (S_IWGRP | S_IWOTH)) != 0};
  }

  bool IsLink(const std::string& path) override {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
  }

  Result<FileIdentity> IdentityOf(const std::string& path) override {
    struct stat info {};
    if (::stat(path.c_str(), &info) < 0) return Failure("look at", path, errno);
    std::error_code error;
    const std::string own = std::filesystem::canonical(path, error).string();
    return FileIdentity{info.st_dev, info.st_ino, S_ISREG(info.st_mode), error ? path : own};
  }

  Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                         const std::string& holder) override {
    for (;;) {
      HDPS_ASSIGN_OR_RETURN(Descriptor file, OpenLock(path));
      if (Retry([&] { return ::flock(file.fd(), LOCK_EX | LOCK_NB); }) < 0) {
        if (errno == EWOULDBLOCK) {
          const Result<std::string> other = ReadWholeFile(*this, path, kHolderBytesMax);
          return HeldBy(path, other.ok() ? *other : "");
        }
        const bool unknown = errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL;
        if (!unknown) return Failure("lock", path, errno);
      }
      if (!IsNamed(file, path)) continue;
      if (HasOtherNames(file)) {
        if (::unlink(path.c_str()) < 0) return Failure("lock", path, errno);
        continue;
      }
      // Not replaced by rename as other files are, because the lock is on this file.
      if (::ftruncate(file.fd(), 0) < 0 ||
          ::pwrite(file.fd(), holder.data(), holder.size(), 0) < 0) {
        return Failure("write", path, errno);
      }
      return std::unique_ptr<FileLock>(std::make_unique<PosixFileLock>(std::move(file)));
    }
  }
};

}  // namespace

std::unique_ptr<FileSystem> NewPosixFileSystem() { return std::make_unique<PosixFileSystem>(); }

}  // namespace hdps
