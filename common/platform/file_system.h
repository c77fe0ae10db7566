// The interface to files: what hdps reads and writes outside its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

// Bytes in the order they lie in the file.
class SequentialFile {
 public:
  virtual ~SequentialFile() = default;
  // Reads up to buffer.size() bytes; 0 at the end.
  virtual Result<size_t> Read(std::span<std::byte> buffer) = 0;
};

class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Status Append(std::span<const std::byte> bytes) = 0;
  virtual Status Sync() = 0;   // What was appended survives a crash of the machine.
  virtual Status Close() = 0;  // Without it, nothing is promised.
};

// What one holder at a time has, among all processes and all machines that see the file; given back
// when it is destroyed, and when its process dies.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// Who may use a file or folder, other than root.
struct FileAccess {
  bool ours = true;  // It belongs to the user of this process, or to root.
  bool others_read = false, others_write = false;
};

// A stamp tells that a file is no longer what it was, short of reading it.
struct FileStamp {
  uint64_t bytes = 0;
  int64_t changed_ns = 0;  // When its bytes changed last, by a clock of its own; 0: not known.
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// Paths are the operating system's. Messages of failures name the path and the system's reason.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // kNotFound when there is no such file. kInvalidArgument when it is a pipe or a device, which may
  // never end, unless the path itself is that of a stream, as /dev/stdin.
  virtual Result<std::unique_ptr<SequentialFile>> OpenSequential(const std::string& path) = 0;
  // Makes the file anew, in place of what stands there; a link is not followed.
  virtual Result<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Writes behind what is there. kIoError where that is a link, but those to streams in /dev.
  virtual Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) = 0;
  virtual Status MakeDirectories(const std::string& path) = 0;
  virtual Status Rename(const std::string& from,
                        const std::string& to) = 0;  // And syncs the folder.
  // Where another sync of the folder follows, or a crash of the machine may undo it.
  virtual Status MakeDirectoriesUnsynced(const std::string& path) { return MakeDirectories(path); }
  virtual Status RenameUnsynced(const std::string& from, const std::string& to) {
    return Rename(from, to);
  }
  // A file, a link or a folder, of which no link is followed; none is not an error.
  virtual Status RemoveAll(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> List(const std::string& path) = 0;  // Names, sorted.
  virtual Result<uint64_t> FileSize(const std::string& path) = 0;
  virtual Result<FileStamp> StampOf(const std::string& path) {
    HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, FileSize(path));
    return FileStamp{bytes, 0};
  }
  virtual bool Exists(const std::string& path) = 0;
  // kNotFound when there is nothing.
  virtual Result<FileAccess> AccessOf(const std::string& path) {
    static_cast<void>(path);
    return FileAccess();
  }
  // Of a library that writes to `path` by itself, and asks before it does: 0, or the error number
  // with which that fails on purpose.
  virtual int FaultOfWrite(const std::string& path, uint64_t bytes) {
    static_cast<void>(path);
    static_cast<void>(bytes);
    return 0;
  }
  // Makes the file `path`, with `holder` in it for people, and removes it when the lock is given
  // back. kInvalidArgument, "PATH is held by HOLDER", while somebody else has it; kIoError where a
  // link stands there. On a file system
  // that knows no locks everybody gets it. The lock must not outlive this object.
  virtual Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                                 const std::string& holder) = 0;
};

std::unique_ptr<FileSystem> NewPosixFileSystem();
// Files in memory, for tests and the simulator.
std::unique_ptr<FileSystem> NewMemoryFileSystem();

Result<std::string> ReadWholeFile(FileSystem& files, const std::string& path, uint64_t bytes_max);
// kProcess: a crash of the machine may lose what was written, or a part of it.
enum class Survives : uint8_t { kMachine, kProcess };
// Writes beside `path`, syncs, and renames: `path` holds the old bytes or the new, never a part. Of
// a link the name is taken, and what it leads to stays; /dev/stdout and its like are written to.
Status WriteFileAtomically(FileSystem& files, const std::string& path,
                           std::span<const std::byte> bytes,
                           Survives survives = Survives::kMachine);
Status WriteFileAtomically(FileSystem& files, const std::string& path, const std::string& text,
                           Survives survives = Survives::kMachine);
// What Lock() says of a lock that somebody has.
Status HeldBy(const std::string& path, const std::string& holder);
std::string JoinPath(const std::string& folder, const std::string& name);

}  // namespace hdps
