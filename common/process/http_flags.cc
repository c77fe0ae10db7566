// Reads the flags of HTTP, and tells where a program can be watched.
#include "common/process/http_flags.h"

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/http/request_rules.h"
#include "common/net/listening.h"
#include "common/platform/random.h"
#include "common/process/terminal.h"

DEFINE_string(http, "",
              "HOST:PORT at which this program answers browsers and monitoring, where port 0 picks "
              "one; none: nowhere; empty: 127.0.0.1:0 for hdps-scheduler and hdps train, "
              "127.0.0.1:8080 for hdps serve, and none for others");
DEFINE_string(
    http_names, "",
    "Names, separated by commas, under which --http is reached besides its address and "
    "localhost; a request for another name is refused. *: any name, for a gateway in front "
    "that has names of its own");
DEFINE_string(http_token_file, "",
              "File with the token that visitors of --http must give, readable by its owner alone; "
              "empty: a token is drawn and shown on stderr");
DEFINE_string(http_cert, "", "Certificate of --http for TLS, a PEM file; empty: no TLS");
DEFINE_string(http_key, "", "Key of --http_cert, a PEM file that its owner alone can read");

namespace hdps {
namespace {

// The least number of base64 characters holds 128 bits.
constexpr size_t kTokenBytesMin = 22, kTokenBytesMax = 128;
constexpr uint64_t kPemBytesMax = 1 << 20;

Status Wrong(const std::string& flag, const std::string& what) {
  return Status(Code::kInvalidArgument, flag + ": " + what);
}

Result<std::string> ReadGiven(FileSystem& files, const std::string& flag, const std::string& path) {
  const Result<std::string> text = ReadWholeFile(files, path, kPemBytesMax);
  if (!text.ok()) return Wrong(flag, text.status().message());
  return text;
}

// Reads a file that must be secret.
Result<std::string> ReadSecret(FileSystem& files, const std::string& flag,
                               const std::string& path) {
  const Result<FileAccess> access = files.AccessOf(path);
  if (!access.ok()) return Wrong(flag, access.status().message());
  if (!access->ours) return Wrong(flag, path + " belongs to another user; chown it to this one");
  if (access->others_read || access->others_write) {
    return Wrong(flag, path +
                           " can be read or written by other users, so it is no secret: chmod "
                           "600 " +
                           path + ", and make it anew if they may have read it");
  }
  return ReadGiven(files, flag, path);
}

Result<std::string> ReadToken(FileSystem& files, const std::string& path) {
  const std::string flag = "--http_token_file=" + path;
  const std::string mend = "; make one with (umask 077; openssl rand -hex 16 > FILE)";
  if (!files.Exists(path)) return Wrong(flag, "there is no such file" + mend);
  HDPS_ASSIGN_OR_RETURN(std::string token, ReadSecret(files, flag, path));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  const bool plain = std::ranges::all_of(token, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
  if (token.size() < kTokenBytesMin || token.size() > kTokenBytesMax || !plain) {
    return Wrong(flag, "it holds no token, which is " + std::to_string(kTokenBytesMin) + " to " +
                           std::to_string(kTokenBytesMax) + " letters, digits, '-', '_' or '.'" +
                           mend);
  }
  return token;
}

Result<std::vector<std::string>> ReadNames() {
  std::vector<std::string> names;
  std::string rest = FLAGS_http_names;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string name = rest.substr(0, comma);
    const std::optional<std::string> host = HostOf(name);
    if (!host || name.find(':') != std::string::npos) {
      return Wrong("--http_names", "\"" + name +
                                       "\" is no name of a host; write names without ports, "
                                       "separated by commas");
    }
    names.push_back(*host);
    rest.erase(0, comma + 1);
  }
  return names;
}

Status CheckNotIdle() {
  for (const auto& [flag, value] :
       {std::pair("--http_names", &FLAGS_http_names),
        std::pair("--http_token_file", &FLAGS_http_token_file),
        std::pair("--http_cert", &FLAGS_http_cert), std::pair("--http_key", &FLAGS_http_key)}) {
    if (!value->empty()) return Wrong(flag, "nothing is served; give --http=HOST:PORT as well");
  }
  return {};
}

// Returns whether others reach the address without what protects it.
Result<bool> IsUnprotected(const std::string& listen, bool insecure) {
  bool reached = false;
  if (const Status fits = CheckHttpAddress(listen, &reached); !fits.ok()) {
    return Wrong("--http", fits.message() + "; none: nowhere");
  }
  if (!reached || (!FLAGS_http_token_file.empty() && !FLAGS_http_cert.empty())) return false;
  if (insecure) return true;
  return Wrong("--http=" + listen,
               "other machines reach this address: give --http_token_file=FILE, and "
               "--http_cert=FILE and --http_key=FILE for TLS, listen at 127.0.0.1, or give "
               "--insecure if whoever is on that network may look");
}

// Is true if what is printed stays in a file or, as a socket may be, in systemd's journal.
bool StderrIsLog() {
  struct stat info = {};
  return fstat(STDERR_FILENO, &info) == 0 && (S_ISREG(info.st_mode) || S_ISSOCK(info.st_mode));
}

}  // namespace

Result<HttpFlags> ReadHttpFlags(FileSystem& files, std::string_view unless_given, bool insecure) {
  HttpFlags flags;
  HttpOptions& options = flags.options;
  options.listen = FLAGS_http.empty() ? std::string(unless_given) : FLAGS_http;
  if (options.listen == kHttpNowhere) {
    HDPS_RETURN_IF_ERROR(CheckNotIdle());
    options.listen.clear();
    return flags;
  }
  if (FLAGS_http_cert.empty() != FLAGS_http_key.empty()) {
    const bool key = FLAGS_http_key.empty();
    return Wrong(key ? "--http_cert=" + FLAGS_http_cert : "--http_key=" + FLAGS_http_key,
                 std::string("TLS needs both; give ") + (key ? "--http_key" : "--http_cert") +
                     "=FILE as well");
  }
  HDPS_ASSIGN_OR_RETURN(flags.unprotected, IsUnprotected(options.listen, insecure));
  options.any_name = FLAGS_http_names == "*";
  if (!options.any_name) {
    HDPS_ASSIGN_OR_RETURN(options.names, ReadNames());
  }
  flags.token_file = FLAGS_http_token_file;
  options.token = NewToken();
  if (!flags.token_file.empty()) {
    HDPS_ASSIGN_OR_RETURN(options.token, ReadToken(files, flags.token_file));
  }
  if (!FLAGS_http_cert.empty()) {
    HDPS_ASSIGN_OR_RETURN(options.certificate,
                          ReadGiven(files, "--http_cert=" + FLAGS_http_cert, FLAGS_http_cert));
    HDPS_ASSIGN_OR_RETURN(options.key,
                          ReadSecret(files, "--http_key=" + FLAGS_http_key, FLAGS_http_key));
  }
  return flags;
}

Result<std::unique_ptr<HttpServer>> ServeHttp(const HttpFlags& flags, std::vector<HttpPath> paths) {
  if (flags.options.listen.empty()) return std::unique_ptr<HttpServer>();
  Result<std::unique_ptr<HttpServer>> server = HttpServer::Start(flags.options, std::move(paths));
  if (!server.ok()) {
    return Wrong("--http=" + flags.options.listen, server.status().message());
  }
  return server;
}

void TellWhereToWatch(const HttpFlags& flags, const std::string& program,
                      const HttpServer* server) {
  if (server == nullptr) return;
  const std::string place = server->address() + "/";
  if (flags.unprotected) {
    LOG(ERROR) << "warning: --insecure: " << place << " reaches beyond this machine"
               << (flags.token_file.empty() ? " without --http_token_file" : "")
               << (flags.options.certificate.empty() ? " without TLS" : "")
               << ": whoever is on that network can read the figures of this job, and its token";
  }
  LOG(INFO) << "watch at " << place;
  std::string how = "?token=" + flags.options.token;
  if (!flags.token_file.empty()) {
    how = " with the token in " + flags.token_file;
  } else if (StderrIsLog()) {
    how =
        " with a token that no log may hold: give --http_token_file=FILE, or let stderr be a "
        "terminal or pipe";
  }
  PrintErrorText(program + ": watch at " + place + how + "\n");
}

}  // namespace hdps
