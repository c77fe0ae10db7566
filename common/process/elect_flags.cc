// The flags of an election; reads --elect_file.
#include "common/process/elect_flags.h"

#include <gflags/gflags.h>

#include <utility>

#include "common/election/etcd_locator.h"

// Schedulers have these flags, and hdps member, which becomes one.
DEFINE_string(elect, "",
              "etcd in which the schedulers of this job, with the same --job and --out, elect the "
              "one that leads: etcd://HOST:PORT[,HOST:PORT...]/PREFIX; empty: this one leads");
DEFINE_int32(elect_ttl_s, 5,
             "Seconds after which another scheduler may lead when the one that leads is gone");

DEFINE_string(elect_file, "",
              "File that its owner alone can read, with user and password or with ca, cert and key "
              "(TLS) for the etcd of --elect or --scheduler, a JSON object; empty: neither");

namespace hdps {
namespace {

// Between two questions for the leader, and for an answer of one endpoint.
constexpr int64_t kEveryMs = 1000, kLimitMs = 1000;

}  // namespace

Result<std::unique_ptr<Etcd>> OpenEtcd(FileSystem& files, const std::string& flag,
                                       const std::string& text, const Connections& connections,
                                       int64_t limit_ms) {
  HDPS_ASSIGN_OR_RETURN(const EtcdPlace place, ParseEtcdPlace(flag, text));
  EtcdLogin login;
  if (!FLAGS_elect_file.empty()) {
    HDPS_ASSIGN_OR_RETURN(
        login, ReadEtcdLogin(files, "--elect_file=" + FLAGS_elect_file, FLAGS_elect_file));
  }
  if (place.beyond_loopback && login.ca.empty()) {
    if (!login.user.empty() && !connections.insecure) {
      return Status(Code::kInvalidArgument, "--elect_file=" + FLAGS_elect_file +
                                                ": the password would leave this machine "
                                                "in plain text; add \"ca\" for TLS");
    }
    if (!connections.may_leave()) {
      return Status(Code::kInvalidArgument,
                    flag + "=" + text +
                        " is beyond this machine; give --keys=DIR, or --elect_file "
                        "with \"ca\" for TLS, or --insecure");
    }
  }
  return NewEtcdClient(place, login, limit_ms);
}

Result<std::unique_ptr<SchedulerLocator>> FindScheduler(const std::string& text,
                                                        const Connections& connections) {
  if (!text.starts_with(kEtcdScheme)) return LocateScheduler(text, connections.may_leave());
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Etcd> etcd,
                        OpenEtcd(*files, "--scheduler", text, connections, kLimitMs));
  return NewEtcdLocator(std::move(etcd), text, kEveryMs);
}

Result<std::string> AskForScheduler(const std::string& text, const Connections& connections) {
  if (text.starts_with(kEtcdScheme)) {
    const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
    HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<Etcd> etcd,
                          OpenEtcd(*files, "--scheduler", text, connections, kLimitMs));
    const Result<std::string> leader = LeaderIn(*etcd);
    if (leader.ok()) return leader;
    return Status(leader.status().code(), "--scheduler=" + text + ": " + leader.status().message());
  }
  HDPS_ASSIGN_OR_RETURN(const auto locator, LocateScheduler(text, connections.may_leave()));
  return locator->Newest();
}

}  // namespace hdps
