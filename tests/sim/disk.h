// The disk that all processes share: what a process was writing ends when it dies, its writes may
// be slow or find no space, and what was not synced is lost with the power of its machine.
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

// Invariant: a byte is durable when its file was synced after it was written; a name, when its
// folder was, by anybody. What is not durable belongs to the machine that wrote it.
class SimDisk {
 public:
  explicit SimDisk(FileSystem* files) : files_(files) {}

  FileSystem& files() const { return *files_; }
  // A machine loses its power: of every file that it has not synced a part is left. `disk_too`: so
  // does the machine with the disk, which may forget names that were not synced.
  void LosePower(uint64_t machine, bool disk_too, Random* random);

  // What processes have done.
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

// The files of one process.
class ProcessFiles : public FileSystem {
 public:
  // `before_change` is called before every call that changes something; not ok: that is what comes
  // of it.
  ProcessFiles(SimDisk* disk, uint64_t machine, std::function<Status()> before_change)
      : disk_(*disk), machine_(machine), before_change_(std::move(before_change)) {}

  // The process dies: so many more changes happen, then none.
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

// Work beside a loop that ends at a time of its own: `late` says how much later than it was begun.
// All of it is done at that time, or when the process dies.
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
