// Memory between processes: sealed memfds, found through /proc/PID/fd.
//
// Only a process that might also read the owner's memory can follow the path through /proc: one of
// the same user in the same PID namespace.
#include "common/net/shared/shared_memory.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hdps {
namespace {

constexpr char kName[] = "hdps_arena";
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Status SystemFailed(const char* call) {
  return Status(Code::kIoError, std::string(call) + ": " + std::strerror(errno));
}

Status NotOurs(const std::string& path, const std::string& why) {
  return Status(Code::kInvalidArgument, path + " " + why);
}

// Returns the target of a symbolic link, or an empty text if there is none.
std::string LinkText(const std::string& path) {
  char text[PATH_MAX];
  const ssize_t length = readlink(path.c_str(), text, sizeof(text));
  return length > 0 ? std::string(text, static_cast<size_t>(length)) : std::string();
}

// Checks that the open file is memory that this user created and that cannot shrink.
Status CheckOpened(int fd, const std::string& path, size_t bytes) {
  struct stat found = {};
  if (fstat(fd, &found) != 0) return SystemFailed("fstat");
  if (found.st_uid != geteuid()) return NotOurs(path, "belongs to another user");
  if (static_cast<uint64_t>(found.st_size) != bytes) return NotOurs(path, "has another size");
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return NotOurs(path, "could shrink under us");
  return Status();
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::Create(size_t bytes) {
  const int fd = memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return SystemFailed("memfd_create");
  void* data = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0 && fcntl(fd, F_ADD_SEALS, kSeals) == 0) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (data == MAP_FAILED) {
    const Status status = SystemFailed("shared memory");
    close(fd);
    return status;
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(fd, static_cast<std::byte*>(data), bytes));
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::Open(const SharedPlace& place,
                                                         size_t writable_bytes) {
  const std::string path = "/proc/" + std::to_string(place.pid) + "/fd/" + std::to_string(place.fd);
  // This is checked before opening, because opening some files has side effects or blocks.
  if (!LinkText(path).starts_with(std::string("/memfd:") + kName)) {
    return NotOurs(path, "is not shared memory of this program");
  }
  if (place.bytes == 0 || writable_bytes > place.bytes) return NotOurs(path, "has no such size");
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemFailed(path.c_str());
  Status status = CheckOpened(fd, path, place.bytes);
  void* data = MAP_FAILED;
  if (status.ok()) {
    data = mmap(nullptr, place.bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) status = SystemFailed("mmap");
  }
  close(fd);
  if (!status.ok()) return status;
  std::unique_ptr<SharedMemory> memory(
      new SharedMemory(-1, static_cast<std::byte*>(data), place.bytes));
  if (mprotect(data, writable_bytes, PROT_READ | PROT_WRITE) != 0) return SystemFailed("mprotect");
  return memory;
}

SharedMemory::~SharedMemory() {
  munmap(data_, bytes_);
  if (fd_ >= 0) close(fd_);
}

SharedPlace SharedMemory::place() const {
  return {static_cast<uint64_t>(getpid()), static_cast<uint64_t>(fd_), bytes_};
}

bool SharedMemory::Commit(size_t offset, size_t bytes) {
  if (fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) return false;
#ifdef MADV_POPULATE_WRITE
  // Populates the page tables too, in one call; without support the kernel does it page by page.
  madvise(data_ + offset, bytes, MADV_POPULATE_WRITE);
#endif
  return true;
}

}  // namespace hdps
