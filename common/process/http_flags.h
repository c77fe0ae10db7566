// The flags with which a program answers HTTP: --http, --http_names, --http_token_file, --http_cert
// and --http_key.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/http/http_server.h"
#include "common/platform/file_system.h"

namespace hdps {

inline constexpr std::string_view kHttpFlags[] = {"http", "http_names", "http_token_file",
                                                  "http_cert", "http_key"};

// A program serves at one of these unless --http says otherwise.
inline constexpr std::string_view kHttpOnThisMachine = "127.0.0.1:0", kHttpNowhere = "none";

// The flags as they were read and checked.
struct HttpFlags {
  HttpOptions options;       // listen is empty if nothing is served.
  std::string token_file;    // Empty: the token was drawn.
  bool unprotected = false;  // Beyond this machine without a token file or TLS, by --insecure.
};

// Reads the flags and their files. `unless_given` is the value of --http where it is not given.
// Errors: kInvalidArgument names the flag, what is wrong and what would be right; without
// `insecure` also if the address reaches beyond this machine without a token file and TLS.
Result<HttpFlags> ReadHttpFlags(FileSystem& files, std::string_view unless_given, bool insecure);

// Starts a server as the flags say; returns null if nothing is served. Errors: those of
// HttpServer::Start().
Result<std::unique_ptr<HttpServer>> ServeHttp(const HttpFlags& flags, std::vector<HttpPath> paths);

// Tells on stderr where `server` is, unless it is null. The address with a drawn token goes to
// stderr alone, and never into a file: a log has the address without it. Call it when the job is
// accepted, because a refused run leaves its log as it was.
void TellWhereToWatch(const HttpFlags& flags, const std::string& program, const HttpServer* server);

}  // namespace hdps
