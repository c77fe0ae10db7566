// Reads --elect_file.
#include "common/process/elect_flags.h"

#include <gflags/gflags.h>

DEFINE_string(elect_file, "",
              "File that its owner alone can read, with user and password or with ca, cert and key "
              "(TLS) for the etcd of --elect or --scheduler, a JSON object; empty: neither");

namespace hdps {

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

}  // namespace hdps
