// Gathers facts from kernel files, system calls and attempts.
#include "tools/doctor/machine_facts.h"

#include <netdb.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <sstream>

#include "common/net/address.h"
#include "common/net/listening.h"
#include "common/process/run_lock.h"
#include "kernels/dense_ops.h"
#include "kernels/products/bf16_gemm.h"
#include "kernels/vector_width.h"

namespace hdps {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

std::string TextOf(FileSystem& files, const std::string& path) {
  const Result<std::string> text = ReadWholeFile(files, path, 1 << 20);
  return text.ok() ? *text : "";
}

// Reads a file with a single number; "max" or a missing file means no limit.
uint64_t LimitIn(FileSystem& files, const std::string& path) {
  std::istringstream text(TextOf(files, path));
  uint64_t value = 0;
  return text >> value ? value : kNoLimit;
}

FreeSpace Memory(FileSystem& files) {
  FreeSpace space;
  std::istringstream lines(TextOf(files, "/proc/meminfo"));
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name;
    uint64_t kib = 0;
    words >> name >> kib;
    if (name == "MemTotal:") space.total = kib << 10;
    if (name == "MemAvailable:") space.free = kib << 10;
  }
  const std::string group = "/sys/fs/cgroup/memory.";
  const uint64_t limit = LimitIn(files, group + "max"), used = LimitIn(files, group + "current");
  if (limit < space.total) {
    space.total = limit;
    space.free = std::min(space.free, used == kNoLimit || used > limit ? 0 : limit - used);
  }
  return space;
}

double Cores(FileSystem& files, double there) {
  std::istringstream text(TextOf(files, "/sys/fs/cgroup/cpu.max"));
  double quota = 0, period = 0;
  return text >> quota >> period && period > 0 ? std::min(there, quota / period) : there;
}

FreeSpace DiskOf(const std::string& path) {
  struct statvfs disk {};
  if (path.empty() || ::statvfs(path.c_str(), &disk) != 0) return {0, 0};
  return {uint64_t{disk.f_bavail} * disk.f_frsize, uint64_t{disk.f_blocks} * disk.f_frsize};
}

// Creates the folder and a temporary file in it.
std::string WhyNotWritable(FileSystem& files, const std::string& folder) {
  const std::string probe = JoinPath(folder, "doctor." + std::to_string(getpid()));
  Status status = files.MakeDirectories(folder);
  if (status.ok()) status = WriteFileAtomically(files, probe, std::string("probe"));
  if (status.ok()) status = files.RemoveAll(probe);
  return status.message();
}

std::string WhyNotTheOnlyRun(FileSystem& files, const std::string& out) {
  const auto lock = LockRunFolder(files, "hdps doctor", out);
  return lock.ok() ? "" : lock.status().message();
}

class Socket {
 public:
  explicit Socket(const addrinfo& info)
      : fd_(::socket(info.ai_family, info.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

using Resolved = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Result<Resolved> Resolve(const Address& address) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const char* const host = address.host == "*" ? nullptr : address.host.c_str();
  const int error = ::getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return Status(Code::kNotFound,
                  "the name " + address.host + " is unknown here: " + ::gai_strerror(error));
  }
  return Resolved(found, ::freeaddrinfo);
}

std::string WhyNotListening(const std::string& text, bool may_leave) {
  const Result<Address> address = AddressToListenOn(text, may_leave);
  if (!address.ok()) return address.status().message();
  if (address->scheme != Address::Scheme::kTcp) return "";
  const Result<Resolved> resolved = Resolve(*address);
  if (!resolved.ok()) return resolved.status().message();
  const Socket socket(**resolved);
  if (::bind(socket.fd(), (*resolved)->ai_addr, (*resolved)->ai_addrlen) == 0) return "";
  const int error = errno;
  return BindFailure(*address, error, std::strerror(error)).message();
}

uint64_t LimitOf(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  return limit.rlim_cur;
}

// Finds the word in brackets of "always madvise [never]".
std::string HugePages(FileSystem& files) {
  const std::string text = TextOf(files, "/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t begin = text.find('['), end = text.find(']');
  return begin == std::string::npos || end < begin ? "" : text.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::string ReachError(const std::string& text, bool may_leave, int patience_ms) {
  const Result<Address> address = AddressToDial(text, may_leave);
  if (!address.ok()) return address.status().message();
  sockaddr_un local{};
  addrinfo info{};
  Resolved resolved(nullptr, ::freeaddrinfo);
  if (address->scheme == Address::Scheme::kTcp) {
    Result<Resolved> found = Resolve(*address);
    if (!found.ok()) return found.status().message();
    resolved = *std::move(found);
    info = *resolved;
  } else {
    local.sun_family = AF_UNIX;
    std::strncpy(local.sun_path, address->path.c_str(), sizeof(local.sun_path) - 1);
    info.ai_family = AF_UNIX;
    info.ai_socktype = SOCK_STREAM;
    info.ai_addr = reinterpret_cast<sockaddr*>(&local);
    info.ai_addrlen = sizeof(local);
  }
  const Socket socket(info);
  int error = ::connect(socket.fd(), info.ai_addr, info.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd waiting{socket.fd(), POLLOUT, 0};
    socklen_t size = sizeof(error);
    if (::poll(&waiting, 1, patience_ms) == 0) {
      return "nothing answers at " + text + " within " + std::to_string(patience_ms / 1000) + " s";
    }
    ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  return error == 0 ? "" : "nobody listens at " + text + ": " + std::strerror(error);
}

MachineFacts GatherFacts(FileSystem& files, const FactsWanted& wanted) {
  MachineFacts facts;
  facts.memory = Memory(files);
  facts.shared_memory = DiskOf("/dev/shm");
  facts.cores_there = static_cast<double>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  facts.cores = Cores(files, facts.cores_there);
  facts.open_files_max = LimitOf(RLIMIT_NOFILE);
  facts.file_bytes_max = LimitOf(RLIMIT_FSIZE);
  facts.huge_pages = HugePages(files);
  timex kept{};
  facts.clock_is_set = ::adjtimex(&kept) != TIME_ERROR;
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  facts.year = ::gmtime_r(&now, &date) == nullptr ? 0 : date.tm_year + 1900;
  facts.wide_vectors = WidestVectors() >= VectorWidth::kAvx2;
  facts.products_in_bf16 = Bf16ProductsOfThisMachine() != Bf16Products::kNone;
  if (!wanted.out.empty()) {
    facts.out_trouble = WhyNotWritable(files, wanted.out);
    if (facts.out_trouble.empty()) facts.out_trouble = WhyNotTheOnlyRun(files, wanted.out);
    facts.out = DiskOf(wanted.out);
  }
  if (!wanted.spill.empty()) {
    facts.spill_trouble = WhyNotWritable(files, wanted.spill);
    facts.spill = DiskOf(wanted.spill);
  }
  facts.listen = wanted.listen;
  facts.scheduler = wanted.scheduler;
  if (!wanted.listen.empty()) {
    facts.listen_trouble = WhyNotListening(wanted.listen, wanted.may_leave);
  }
  if (!wanted.scheduler.empty()) {
    constexpr int kPatienceMs = 3000;
    facts.scheduler_trouble = ReachError(wanted.scheduler, wanted.may_leave, kPatienceMs);
  }
  if (const auto gpu = NewCudaOps(); !gpu.ok()) facts.gpu_trouble = gpu.status().message();
  return facts;
}

}  // namespace hdps
