// Reads /proc: a listening socket has an inode there, and a process links to those that it has.
#include "common/net/port_holder.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>

#include "common/base/outside_text.h"
#include "common/platform/file_system.h"

namespace hdps {
namespace {

constexpr uint64_t kBytesMax = 16 << 20;

std::string TextOf(const std::string& path) {
  const Result<std::string> text = ReadWholeFile(*NewPosixFileSystem(), path, kBytesMax);
  return text.ok() ? *text : "";
}

// Returns the links of descriptors to sockets that listen at the port: "socket:[4711]".
std::set<std::string> SocketsAt(int port) {
  constexpr char kListens[] = "0A";
  std::set<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::istringstream lines(TextOf(table));
    std::string line;
    std::getline(lines, line);  // The names of the columns.
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmitted, user, probes, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmitted >> user >>
          probes >> inode;
      const size_t colon = local.find(':');
      if (state != kListens || colon == std::string::npos) continue;
      if (std::strtol(local.c_str() + colon + 1, nullptr, 16) == port) {
        sockets.insert("socket:[" + inode + "]");
      }
    }
  }
  return sockets;
}

bool HasOneOf(const std::set<std::string>& sockets, const std::filesystem::path& process) {
  std::error_code error;
  for (const auto& descriptor : std::filesystem::directory_iterator(process / "fd", error)) {
    if (sockets.contains(std::filesystem::read_symlink(descriptor.path(), error).string())) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string HolderOfPort(int port) {
  const std::set<std::string> sockets = SocketsAt(port);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string number = entry.path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!HasOneOf(sockets, entry.path())) continue;
    if (number == std::to_string(getpid())) return "this process";
    std::string name = TextOf(entry.path() / "comm");
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return "process " + number + " (" + EscapeUntrusted(name) + ")";
  }
  return "";
}

}  // namespace hdps
