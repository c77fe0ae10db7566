// Asks etcd, for schedulers and members, who leads a job and whether it has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

inline constexpr std::string_view kEtcdScheme = "etcd://";

// Names the place of a job's keys in etcd. PREFIX/leader is the address of the scheduler that
// leads, under its lease. PREFIX/end is the exit status and the reason of the job's end.
struct EtcdPlace {
  std::vector<std::string> endpoints;  // HOST:PORT each.
  std::string prefix;
  bool beyond_loopback = false;  // An endpoint may be another machine.

  std::string LeaderKey() const { return prefix + "/leader"; }
  std::string EndKey() const { return prefix + "/end"; }
};
// Parses etcd://HOST:PORT[,HOST:PORT...]/PREFIX. `flag` is named by errors, "--elect". Errors:
// kInvalidArgument says what is wrong with `text` and what would be right.
Result<EtcdPlace> ParseEtcdPlace(const std::string& flag, const std::string& text);

// How a client shows who it is. Without `ca` the connection is not encrypted.
struct EtcdLogin {
  std::string user, password;
  std::string ca, cert, key;  // Paths of PEM files.
};
// Reads a JSON object of these names. Errors: kInvalidArgument, also if others can read the file.
// No message holds the password.
Result<EtcdLogin> ReadEtcdLogin(FileSystem& files, const std::string& flag,
                                const std::string& path);

struct EtcdRequest {
  enum class Kind : uint8_t {
    kLook,       // Reads both keys at one revision.
    kGrant,      // Asks for a lease of `ttl_s`.
    kKeepAlive,  // Renews `lease`.
    kCampaign,   // Puts `text` as leader under `lease` and removes the end, if nobody leads and the
                 // end's revision is `end_revision`.
    kEnd,        // Puts `text` as the end and removes the leader, if its reign is `reign`.
    kRevoke      // Ends `lease`, and with it what was put under it.
  };
  Kind kind = Kind::kLook;
  int64_t ttl_s = 0, lease = 0, end_revision = 0, reign = 0;
  std::string text = {};
};

// A key with its value. The revision of its creation numbers the reign of a leader.
struct EtcdEntry {
  std::string text;
  int64_t create_revision = 0, mod_revision = 0, lease = 0;
};

struct EtcdAnswer {
  int64_t revision = 0;                  // Of the store, when it answered.
  int64_t lease = 0, ttl_s = 0;          // kGrant, kKeepAlive; a ttl of 0: there is no such lease.
  bool succeeded = false;                // kCampaign, kEnd: the conditions held.
  std::optional<EtcdEntry> leader, end;  // kLook
};

// Returns path and body of a request, as etcd's HTTP gateway takes it.
std::string PathOf(const EtcdRequest& request);
std::string BodyOf(const EtcdPlace& place, const EtcdRequest& request);
std::string LoginBody(const EtcdLogin& login);
// Reads the answer with the status of HTTP and this body. Errors: kInvalidArgument if etcd refuses
// the client, or is none that hdps can use; kUnavailable for all else, also for damaged answers.
Result<EtcdAnswer> ReadEtcdAnswer(const EtcdRequest& request, int http_status,
                                  const std::string& body);
// Returns the token of an answer to LoginBody().
Result<std::string> ReadEtcdToken(int http_status, const std::string& body);

// Asks etcd. Belongs to one thread at a time.
class Etcd {
 public:
  virtual ~Etcd() = default;
  // Waits at most some multiple of the client's limit. Errors: as ReadEtcdAnswer(), and
  // kUnavailable if no endpoint answers. After an error the request may have been done or not.
  virtual Result<EtcdAnswer> Do(const EtcdRequest& request) = 0;
};

// Returns a client that tries the endpoints in turn, each for at most `limit_ms`, the one that
// answered last first. Errors: kInvalidArgument if hdps was built without libcurl.
Result<std::unique_ptr<Etcd>> NewEtcdClient(const EtcdPlace& place, const EtcdLogin& login,
                                            int64_t limit_ms);

}  // namespace hdps
