// The interface to files: everything that hdps reads and writes outside its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

// A file that is read in order.
class SequentialFile {
 public:
  virtual ~SequentialFile() = default;
  // Reads up to buffer.size() bytes; returns 0 at the end.
  virtual Result<size_t> Read(std::span<std::byte> buffer) = 0;
};

class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Status Append(std::span<const std::byte> bytes) = 0;
  virtual Status Sync() = 0;   // Makes what was appended survive a crash of the machine.
  virtual Status Close() = 0;  // Required: without it nothing is promised.
};

// A lock on a file that one holder has, among all processes on all machines that see the file. It
// is released when it is destroyed and when its process dies.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// The permissions of a file or folder for users other than root.
struct FileAccess {
  bool ours = true;  // The file belongs to the user of this process, or to root.
  bool others_read = false, others_write = false;
};

// Shows without reading a file that its contents may have changed.
struct FileStamp {
  uint64_t bytes = 0;
  int64_t changed_ns = 0;  // Time of the last change, by some clock; 0 if unknown.
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// Paths are those of the operating system. Error messages name the path and the system's reason.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Errors: kNotFound if there is no such file; kInvalidArgument if it is a pipe or a device, which
  // may never end, unless the path itself names a stream such as /dev/stdin.
  virtual Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) = 0;
  // Creates the file anew in place of what exists at `path`. A link is replaced, not followed.
  virtual Result<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Appends to the file. Errors: kIoError if it is a link, except for the streams in /dev.
  virtual Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) = 0;
  virtual Status MakeDirectories(const std::string& path) = 0;
  virtual Status Rename(const std::string& from,
                        const std::string& to) = 0;  // Also syncs the folder.
  // These two do not sync the folder. Unless another sync of it follows, a crash of the machine may
  // undo them.
  virtual Status MakeDirectoriesUnsynced(const std::string& path) { return MakeDirectories(path); }
  virtual Status RenameUnsynced(const std::string& from, const std::string& to) {
    return Rename(from, to);
  }
  // Removes a file, a link or a folder without following links. It is no error if there is none.
  virtual Status RemoveAll(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> List(const std::string& path) = 0;  // Names, sorted.
  virtual Result<uint64_t> FileSize(const std::string& path) = 0;
  virtual Result<FileStamp> StampOf(const std::string& path) {
    HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, FileSize(path));
    return FileStamp{bytes, 0};
  }
  virtual bool Exists(const std::string& path) = 0;
  // Errors: kNotFound if there is no such file.
  virtual Result<FileAccess> AccessOf(const std::string& path) {
    static_cast<void>(path);
    return FileAccess();
  }
  // Injects faults into a library that writes to `path` by itself and asks here before each write.
  // Returns 0, or the error number with which the write must fail.
  virtual int FaultOfWrite(const std::string& path, uint64_t bytes) {
    static_cast<void>(path);
    static_cast<void>(bytes);
    return 0;
  }
  // Creates the lock file `path` with the text `holder` in it for people, and removes it when the
  // lock is released. Errors: kInvalidArgument, "PATH is held by HOLDER", while another holder has
  // it; kIoError if a link is in its place. On a file system without locks, everybody gets it. The
  // lock must not outlive this object.
  virtual Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                                 const std::string& holder) = 0;
};

std::unique_ptr<FileSystem> NewPosixFileSystem();
// Returns a file system in memory, for tests and the simulator.
std::unique_ptr<FileSystem> NewMemoryFileSystem();

Result<std::string> ReadWholeFile(FileSystem& files, const std::string& path, uint64_t bytes_max);
// The crash that a write survives. With kProcess, a crash of the machine may lose what was written,
// or part of it.
enum class Survives : uint8_t { kMachine, kProcess };
// Writes a file beside `path`, syncs it, and renames it: `path` always holds the old bytes or the
// new ones. A link at `path` is replaced and its target stays; /dev/stdout and the like are written
// to.
Status WriteFileAtomically(FileSystem& files, const std::string& path,
                           std::span<const std::byte> bytes,
                           Survives survives = Survives::kMachine);
Status WriteFileAtomically(FileSystem& files, const std::string& path, const std::string& text,
                           Survives survives = Survives::kMachine);
// The error of Lock() for a lock that is held.
Status HeldBy(const std::string& path, const std::string& holder);
std::string JoinPath(const std::string& folder, const std::string& name);

}  // namespace hdps
