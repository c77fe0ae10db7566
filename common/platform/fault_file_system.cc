// Checks every call against the faults that match its path, then passes it on.
#include "common/platform/fault_file_system.h"

#include <fnmatch.h>
#include <glog/logging.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "common/base/thread_annotations.h"
#include "common/platform/failpoint.h"
#include "common/platform/forwarding_files.h"

namespace hdps {
namespace {

Status Failure(const std::string& what, const std::string& path, int error) {
  return {Code::kIoError,
          "cannot " + what + " " + path + ": " + std::generic_category().message(error)};
}

// The state of the faults, shared by the file system and its open files.
//
// Invariant: used_[i] counts the bytes (kFull), calls (kFailing) or writes (kTorn) that fault i has
// seen inside its window.
class Judge {
 public:
  Judge(FaultFileOptions options, std::shared_ptr<MonotonicClock> clock)
      : options_(std::move(options)),
        clock_(std::move(clock)),
        begin_(clock_->NowMs()),
        used_(options_.faults.size()),
        told_(options_.faults.size()) {
    if (!options_.crash) options_.crash = CrashOnPurpose;
    if (!options_.wait) options_.wait = StandStill;
  }

  // Checks any call: it may be slow, and it may fail with the error number in `error`.
  Status Call(const std::string& what, const std::string& path, int* error = nullptr)
      HDPS_EXCLUDES(mutex_) {
    int64_t wait_ms = 0;
    Status status;
    {
      MutexLock lock(mutex_);
      for (size_t i = 0; i < used_.size(); ++i) {
        const FileFault& fault = options_.faults[i];
        if (!Holds(fault, path)) continue;
        if (fault.kind == FileFault::Kind::kSlow) {
          Tell(i, "every call takes " + std::to_string(fault.amount) + " ms more", path);
          wait_ms += static_cast<int64_t>(fault.amount);
        } else if (fault.kind == FileFault::Kind::kFailing && ++used_[i] % fault.amount == 0) {
          Tell(i, "the disk fails", path);
          status = Failure(what, path, EIO);
          if (error != nullptr) *error = EIO;
        }
      }
    }
    if (wait_ms > 0) options_.wait(wait_ms);
    return status;
  }

  // Checks a call that needs space but writes no bytes of a file.
  Status Grow(const std::string& what, const std::string& path) HDPS_EXCLUDES(mutex_) {
    HDPS_RETURN_IF_ERROR(Call(what, path));
    MutexLock lock(mutex_);
    for (size_t i = 0; i < used_.size(); ++i) {
      const FileFault& fault = options_.faults[i];
      if (fault.kind != FileFault::Kind::kFull || used_[i] < fault.amount) continue;
      if (!Holds(fault, path)) continue;
      Tell(i, "the disk is full", path);
      return Failure(what, path, ENOSPC);
    }
    return {};
  }

  // The number of bytes of a write that succeed, and if the process then crashes.
  struct Room {
    size_t bytes = 0;
    bool crash = false;
    Status status;
    int error = 0;  // Error number of the status.
  };
  Room Write(const std::string& path, size_t size) HDPS_EXCLUDES(mutex_) {
    Room room{size, false, {}, 0};
    room.status = Call("write", path, &room.error);
    if (!room.status.ok()) return {0, false, room.status, room.error};
    MutexLock lock(mutex_);
    for (size_t i = 0; i < used_.size(); ++i) {
      const FileFault& fault = options_.faults[i];
      if (!Holds(fault, path)) continue;
      if (fault.kind == FileFault::Kind::kFull) {
        const uint64_t left = fault.amount - std::min(fault.amount, used_[i]);
        used_[i] += std::min<uint64_t>(left, room.bytes);
        if (left >= room.bytes) continue;
        Tell(i, "the disk is full", path);
        room = {static_cast<size_t>(left), room.crash, Failure("write", path, ENOSPC), ENOSPC};
      } else if (fault.kind == FileFault::Kind::kTorn && ++used_[i] == fault.amount) {
        Tell(i, "half a write, and the process dies", path);
        room = {size / 2, true, room.status, room.error};
      }
    }
    return room;
  }
  void Crash() const { options_.crash(); }

 private:
  bool Holds(const FileFault& fault, const std::string& path) {
    return fault.window.Holds(clock_->NowMs() - begin_) &&
           ::fnmatch(("*" + fault.glob).c_str(), path.c_str(), 0) == 0;
  }
  void Tell(size_t i, const std::string& what, const std::string& path) HDPS_REQUIRES(mutex_) {
    if (told_[i]) return;
    told_[i] = true;
    LOG(WARNING) << "faults: on purpose, at " << path << ": " << what;
  }

  FaultFileOptions options_;
  const std::shared_ptr<MonotonicClock> clock_;
  const int64_t begin_;
  Mutex mutex_;
  std::vector<uint64_t> used_ HDPS_GUARDED_BY(mutex_);
  std::vector<bool> told_ HDPS_GUARDED_BY(mutex_);
};

class FaultFile : public WritableFile {
 public:
  FaultFile(std::unique_ptr<WritableFile> file, std::string path, std::shared_ptr<Judge> judge)
      : file_(std::move(file)), path_(std::move(path)), judge_(std::move(judge)) {}

  Status Append(std::span<const std::byte> bytes) override {
    const Judge::Room room = judge_->Write(path_, bytes.size());
    if (room.bytes > 0) HDPS_RETURN_IF_ERROR(file_->Append(bytes.first(room.bytes)));
    if (room.crash) judge_->Crash();
    return room.status;
  }
  Status Sync() override {
    HDPS_RETURN_IF_ERROR(judge_->Call("sync", path_));
    return file_->Sync();
  }
  Status Close() override { return file_->Close(); }

 private:
  const std::unique_ptr<WritableFile> file_;
  const std::string path_;
  const std::shared_ptr<Judge> judge_;
};

class FaultFileSystem : public ForwardingFiles {
 public:
  FaultFileSystem(std::unique_ptr<FileSystem> files, std::shared_ptr<Judge> judge)
      : ForwardingFiles(*files), files_(std::move(files)), judge_(std::move(judge)) {}

  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override {
    HDPS_RETURN_IF_ERROR(judge_->Call("open", path));
    return files_->OpenSequential(path);
  }
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    HDPS_RETURN_IF_ERROR(judge_->Call("write", path));
    return Wrap(files_->Create(path), path);
  }
  Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override {
    HDPS_RETURN_IF_ERROR(judge_->Call("write", path));
    return Wrap(files_->OpenAppend(path), path);
  }
  Status MakeDirectories(const std::string& path) override {
    if (!files_->Exists(path)) HDPS_RETURN_IF_ERROR(judge_->Grow("make folder", path));
    return files_->MakeDirectories(path);
  }
  Status MakeDirectoriesUnsynced(const std::string& path) override {
    if (!files_->Exists(path)) HDPS_RETURN_IF_ERROR(judge_->Grow("make folder", path));
    return files_->MakeDirectoriesUnsynced(path);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    HDPS_RETURN_IF_ERROR(judge_->Call("rename " + from + " to", to));
    return files_->Rename(from, to);
  }
  Status RenameUnsynced(const std::string& from, const std::string& to) override {
    HDPS_RETURN_IF_ERROR(judge_->Call("rename " + from + " to", to));
    return files_->RenameUnsynced(from, to);
  }
  Status RemoveAll(const std::string& path) override {
    HDPS_RETURN_IF_ERROR(judge_->Call("remove", path));
    return files_->RemoveAll(path);
  }
  int FaultOfWrite(const std::string& path, uint64_t bytes) override {
    const Judge::Room room = judge_->Write(path, bytes);
    if (room.crash) judge_->Crash();
    return room.error;
  }

 private:
  Result<std::unique_ptr<WritableFile>> Wrap(Result<std::unique_ptr<WritableFile>> file,
                                             const std::string& path) {
    if (!file.ok()) return file.status();
    return std::unique_ptr<WritableFile>(
        std::make_unique<FaultFile>(*std::move(file), path, judge_));
  }

  const std::unique_ptr<FileSystem> files_;
  const std::shared_ptr<Judge> judge_;
};

}  // namespace

std::unique_ptr<FileSystem> NewFaultFileSystem(std::unique_ptr<FileSystem> files,
                                               FaultFileOptions options,
                                               std::shared_ptr<MonotonicClock> clock) {
  return std::make_unique<FaultFileSystem>(
      std::move(files), std::make_shared<Judge>(std::move(options), std::move(clock)));
}

}  // namespace hdps
