// Interprets --keys and --insecure, and warns of their consequences.
#include "common/process/connections.h"

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/net/address.h"
#include "common/net/listening.h"
#include "common/protocol/key_permissions.h"

DEFINE_string(keys, "",
              "Folder with the job's keys, made by hdps keygen, with which every connection is "
              "authenticated and encrypted; empty: no keys");
DEFINE_bool(insecure, false,
            "Allow addresses beyond loopback without keys, where anyone who reaches them can read "
            "and change the model");

DEFINE_int32(connections_max, 4096,
             "Largest number of connections to this program, beyond which the oldest without a "
             "valid frame is closed");
DEFINE_int64(
    held_mib_max, 0,
    "MiB of received bytes that may wait for processing over all connections, at least 1024, of "
    "which one connection may have a quarter; 0: a quarter of the machine's memory, at least 4096");

namespace hdps {
namespace {

// Returns a quarter of the machine's memory.
uint64_t QuarterOfMemory() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? static_cast<uint64_t>(pages) * page_bytes / 4 : 0;
}

Status CheckLimit(const std::string& flag, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return Status(Code::kInvalidArgument, "--" + flag + "=" + std::to_string(value) +
                                            " is out of range; give " + std::to_string(least) +
                                            " to " + std::to_string(most));
}

Result<PeerLimits> ReadPeerLimits() {
  constexpr int64_t kMost = 1'000'000, kMibMost = int64_t{1} << 24;
  HDPS_RETURN_IF_ERROR(CheckLimit("connections_max", FLAGS_connections_max, 1, kMost));
  HDPS_RETURN_IF_ERROR(CheckLimit("held_mib_max", FLAGS_held_mib_max, 0, kMibMost));
  PeerLimits limits;
  // A listener also needs descriptors for other files.
  rlimit files{};
  const uint64_t most = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur / 2 : kMost;
  limits.connections_max =
      static_cast<uint32_t>(std::min<uint64_t>(FLAGS_connections_max, std::max<uint64_t>(most, 1)));
  const uint64_t held = FLAGS_held_mib_max > 0
                            ? static_cast<uint64_t>(FLAGS_held_mib_max) << 20
                            : std::max(limits.all_held_bytes_max, QuarterOfMemory());
  limits.held_bytes_max = std::max(limits.held_bytes_max, held / 4);
  HoldAtMost(held, &limits);
  return limits;
}

}  // namespace

TransportOptions Connections::Options(const PeerName& self) const {
  TransportOptions options;
  options.self = self;
  options.insecure = insecure;
  options.keys = keys;
  options.may_send = CheckMaySend;
  options.limits = limits;
  return options;
}

Result<Connections> ConnectionsWith(const std::string& keys, bool insecure,
                                    std::vector<KeyRole> roles) {
  Connections connections;
  connections.insecure = insecure;
  if (keys.empty()) return connections;
  if (insecure) {
    return Status(Code::kInvalidArgument,
                  "--insecure is for jobs without keys; give --keys=" + keys + " alone");
  }
  HDPS_ASSIGN_OR_RETURN(connections.keys,
                        KeyFolder::Open(NewPosixFileSystem(), keys, std::move(roles)));
  return connections;
}

Result<Connections> ReadConnections(std::vector<KeyRole> roles) {
  HDPS_ASSIGN_OR_RETURN(const PeerLimits limits, ReadPeerLimits());
  HDPS_ASSIGN_OR_RETURN(Connections connections,
                        ConnectionsWith(FLAGS_keys, FLAGS_insecure, std::move(roles)));
  connections.limits = limits;
  return connections;
}

Status CheckSchedulerGiven(const std::string& address) {
  if (!address.empty()) return {};
  return {Code::kInvalidArgument,
          "--scheduler is missing; give the address that hdps-scheduler printed, "
          "--scheduler=tcp://HOST:PORT, or a file that holds it, --scheduler=file:PATH"};
}

void WarnIfUnprotected(const Connections& connections, const std::string& role,
                       const std::string& asked, const std::string& address) {
  const Result<Address> listens = ParseAddress(asked);
  if (connections.keys != nullptr || !listens.ok() || listens->OnThisMachine()) return;
  LOG(ERROR)
      << "warning: --insecure: this " << role << " listens on " << address << " ("
      << InterfacesOf(*listens)
      << ") without keys: whoever reaches it can read and change all parameters, join or end "
         "the job; nothing is encrypted. hdps keygen makes keys, --keys=DIR uses them";
}

bool GuestsMayRead(const Connections& connections, const std::string& asked) {
  if (connections.keys != nullptr) return true;
  const Result<Address> listens = ParseAddress(asked);
  return listens.ok() && listens->OnThisMachine();
}

Status CheckCollectiveHost(const Connections& connections, const std::string& host,
                           bool insecure_collective, bool allreduce) {
  const std::string text = "tcp://" + host + ":0";
  if (const Status fits = CheckAddress(text, connections.may_leave()); !fits.ok()) {
    return Status(fits.code(), "--collective_host: " + fits.message());
  }
  HDPS_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
  if (!allreduce || address.OnThisMachine()) return {};
  if (connections.keys != nullptr && !insecure_collective) {
    return Status(Code::kInvalidArgument,
                  "--collective_host=" + host +
                      " reaches beyond this machine, and Gloo and NCCL know no keys: give "
                      "--insecure_collective where whoever is on that network may read and change "
                      "gradients, or set parallel.dense_exchange to servers");
  }
  LOG(ERROR) << "warning: " << (connections.keys ? "--insecure_collective" : "--insecure")
             << ": dense gradients travel between workers through " << host << " ("
             << InterfacesOf(address)
             << ") without keys: whoever is on that network can read and change them";
  return {};
}

}  // namespace hdps
