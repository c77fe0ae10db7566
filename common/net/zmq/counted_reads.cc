// Replaces the C library's recv() for libzmq.
#include "common/net/zmq/counted_reads.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <deque>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/thread_annotations.h"
#include "common/net/zmq/open_connections.h"
#include "common/net/zmq/part_counter.h"

namespace hdps {
namespace {

constexpr size_t kRememberedMax = 4096;

// The connections that were ended here, the newest last.
class EndedByParts {
 public:
  void Add(int fd, ConnectionEnds ends) HDPS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (ended_.size() >= kRememberedMax) ended_.pop_front();
    ended_.push_back({fd, std::move(ends)});
  }
  std::optional<ConnectionEnds> Find(int fd, const std::string& endpoint) HDPS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = std::ranges::find_if(ended_, [&](const Ended& one) {
      return one.fd == fd && endpoint.ends_with(one.ends.accepted_at);
    });
    return found == ended_.end() ? std::nullopt : std::optional(found->ends);
  }
  bool Take(uint64_t cookie) HDPS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::erase_if(ended_,
                         [&](const Ended& one) { return one.ends.identity.cookie == cookie; }) > 0;
  }

 private:
  struct Ended {
    int fd;
    ConnectionEnds ends;
  };
  Mutex mutex_;
  std::deque<Ended> ended_ HDPS_GUARDED_BY(mutex_);
};

// There is one list, because the process has one recv().
EndedByParts& EndedHere() {
  static EndedByParts ended;
  return ended;
}

bool IsThreadOfLibzmq() {
  char name[16] = {};
  return pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 &&
         std::string_view(name).starts_with("ZMQbg/IO");
}

// Counts what one thread of libzmq reads. One thread reads a connection from its first byte to its
// last.
class Reads {
 public:
  // Returns false if the connection must end.
  bool Take(int fd, std::span<const std::byte> bytes) {
    const std::optional<uint64_t> cookie = CookieOf(fd);
    if (!cookie) return true;
    Connection& connection = by_descriptor_[fd];
    // The descriptor may belong to another connection by now.
    if (connection.cookie != *cookie) connection = {*cookie, {}};
    if (connection.counter.Take(bytes)) return true;
    if (std::optional<ConnectionEnds> ends = EndsOf(fd)) EndedHere().Add(fd, *std::move(ends));
    return false;
  }

 private:
  struct Connection {
    uint64_t cookie = 0;
    PartCounter counter;
  };
  std::unordered_map<int, Connection> by_descriptor_;
};

}  // namespace

std::optional<ConnectionEnds> FindEndedByParts(int fd, const std::string& endpoint) {
  return EndedHere().Find(fd, endpoint);
}

bool TakeEndedByParts(uint64_t cookie) { return EndedHere().Take(cookie); }

}  // namespace hdps

extern "C" {

#ifdef __SANITIZE_THREAD__
// Functions of the thread sanitizer. It does not see how libzmq passes memory from thread to
// thread, and scripts/dev/tsan.supp tells it to ignore what libzmq calls; but this call stands
// between the two, so it must be ignored here.
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
#endif

// The symbol is set with __asm__ because the C library's headers may define recv() themselves.
__attribute__((visibility("default"))) ssize_t CountedRecv(int fd, void* buffer, size_t size,
                                                           int flags) __asm__("recv");

static ssize_t Counted(int fd, void* buffer, size_t size, int flags) {
  const ssize_t got = recvfrom(fd, buffer, size, flags, nullptr, nullptr);
  static thread_local const bool counts = hdps::IsThreadOfLibzmq();
  if (!counts || got <= 0) return got;
  static thread_local hdps::Reads reads;
  return reads.Take(fd, {static_cast<const std::byte*>(buffer), static_cast<size_t>(got)}) ? got
                                                                                           : 0;
}

ssize_t CountedRecv(int fd, void* buffer, size_t size, int flags) {
#ifdef __SANITIZE_THREAD__
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
#endif
  const ssize_t got = Counted(fd, buffer, size, flags);
#ifdef __SANITIZE_THREAD__
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
  return got;
}

}  // extern "C"
