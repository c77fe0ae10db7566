// Simulates the disk that all processes share: writes end when their process dies, may be slow or
// find no space, and what was not synced is lost when the machine loses power.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/net/node.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/random.h"

namespace hdps::sim {

// A disk of files in memory.
//
// Invariant: a byte is durable if its file was synced after the write; a name is durable if its
// folder was synced after, by any process. Other bytes and names belong to the machine that wrote
// them.
class SimDisk {
 public:
  explicit SimDisk(FileSystem* files) : files_(files) {}

  FileSystem& files() const { return *files_; }
  // Ends the power of a machine: of each file that it has not synced, a part remains. `disk_too`:
  // the machine with the disk loses power too, and may lose names that were not synced.
  void LosePower(uint64_t machine, bool disk_too, Random* random);

  // Record what processes have done.
  void Written(uint64_t machine, const std::string& path, uint64_t durable_bytes);
  void Synced(const std::string& path) { unsynced_.erase(path); }
  void Renamed(const std::string& from, const std::string& to, bool synced);
  void Removed(const std::string& path);

 private:
  struct Unsynced {
    uint64_t machine = 0;
    uint64_t durable_bytes = 0;
  };
  struct Name {
    std::string from, to;
  };
  void Cut(const std::string& path, uint64_t bytes);

  FileSystem* const files_;
  std::map<std::string, Unsynced> unsynced_;
  std::deque<Name> names_;
};

// The files as one process sees them.
class ProcessFiles : public FileSystem {
 public:
  // Calls `before_change` before every call that changes something; an error becomes the result of
  // the call.
  ProcessFiles(SimDisk* disk, uint64_t machine, std::function<Status()> before_change)
      : disk_(*disk), machine_(machine), before_change_(std::move(before_change)) {}

  // Lets the process die after `changes` more changes.
  void DieAfter(uint64_t changes) {
    dying_ = true;
    changes_left_ = changes;
  }

  Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) override {
    return disk_.files().OpenSequential(path);
  }
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override;
  Status MakeDirectories(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status RenameUnsynced(const std::string& from, const std::string& to) override;
  Status RemoveAll(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& path) override {
    return disk_.files().List(path);
  }
  Result<uint64_t> FileSize(const std::string& path) override {
    return disk_.files().FileSize(path);
  }
  Result<FileStamp> StampOf(const std::string& path) override {
    return disk_.files().StampOf(path);
  }
  bool Exists(const std::string& path) override { return disk_.files().Exists(path); }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                         const std::string& holder) override {
    return disk_.files().Lock(path, holder);
  }

 private:
  class Writer;
  Status BeforeChange();

  SimDisk& disk_;
  const uint64_t machine_;
  const std::function<Status()> before_change_;
  bool dying_ = false;
  uint64_t changes_left_ = 0;
};

// Background work that ends at its own time: `late` returns how much later than its start. All of
// it is done at that time, or dropped when the process dies.
class LateExecutor : public Executor {
 public:
  explicit LateExecutor(std::function<TimeMs()> late) : late_(std::move(late)) {}
  ~LateExecutor() override { Finish(); }

  void ParallelFor(size_t count, const std::function<void(size_t)>& body) override;
  void Submit(std::function<void()> work) override;
  int threads() const override { return 1; }

  void RunDue(TimeMs now);
  void Finish();

 private:
  struct Work {
    TimeMs at = 0;
    std::function<void()> run;
  };
  const std::function<TimeMs()> late_;
  TimeMs now_ = 0;
  std::deque<Work> work_;
};

}  // namespace hdps::sim
