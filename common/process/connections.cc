// What --keys and --insecure mean, and what is said of them.
#include "common/process/connections.h"

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <utility>

#include "common/net/address.h"
#include "common/net/listening.h"
#include "common/protocol/key_permissions.h"

DEFINE_string(keys, "",
              "Folder with the job's keys, which hdps keygen makes: every connection is then "
              "authenticated and encrypted");
DEFINE_bool(insecure, false,
            "Allow addresses beyond loopback without keys: whoever reaches them reads and changes "
            "the model");

namespace hdps {

TransportOptions Connections::Options(PeerId self) const {
  TransportOptions options;
  options.self = self;
  options.insecure = insecure;
  options.keys = keys;
  options.may_send = CheckMaySend;
  return options;
}

Result<Connections> ReadConnections(std::vector<KeyRole> roles) {
  Connections connections;
  connections.insecure = FLAGS_insecure;
  if (FLAGS_keys.empty()) return connections;
  if (FLAGS_insecure) {
    return Status(Code::kInvalidArgument,
                  "--insecure is for jobs without keys; give --keys=" + FLAGS_keys + " alone");
  }
  HDPS_ASSIGN_OR_RETURN(connections.keys,
                        KeyFolder::Open(NewPosixFileSystem(), FLAGS_keys, std::move(roles)));
  return connections;
}

Result<DataPlane> ReadDataPlane(const Connections& connections, const std::string& word) {
  for (const auto& [plane, its_word] : WordsOf(DataPlane{})) {
    if (word != its_word) continue;
    if (plane == DataPlane::kCurve || connections.keys != nullptr) return plane;
    return Status(Code::kInvalidArgument,
                  "--data_plane=" + word +
                      " seals frames under keys that this server does not have: give --keys=DIR, "
                      "or leave --data_plane out");
  }
  return Status(Code::kInvalidArgument,
                "--data_plane=" + word + " is not known; write curve or authenticated");
}

void WarnOfOpenDoor(const Connections& connections, const std::string& role,
                    const std::string& asked, const std::string& address) {
  const Result<Address> listens = ParseAddress(asked);
  if (connections.keys != nullptr || !listens.ok() || listens->OnThisMachine()) return;
  LOG(ERROR)
      << "warning: --insecure: this " << role << " listens on " << address << " ("
      << InterfacesOf(*listens)
      << ") without keys: whoever reaches it can read and change all parameters, join or end "
         "the job; nothing is encrypted. hdps keygen makes keys, --keys=DIR uses them";
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
