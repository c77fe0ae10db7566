// Flags and environment of a program.
#include "common/process/command_line.h"

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/net/frame.h"

namespace hdps {

namespace {

using Flag = gflags::CommandLineFlagInfo;

// Flags of ours, not of the libraries: those defined in one of these folders. Compilers are given
// our files by other names than ./tools/x.cc, which is what RocksDB's library has its tools' flags
// by.
bool IsOurs(const Flag& flag) {
  if (flag.filename.starts_with("./")) return false;
  for (const char* folder :
       {"server/", "worker/", "scheduler/", "tools/", "benchmarks/", "tests/"}) {
    const size_t at = flag.filename.find(folder);
    if (at != std::string::npos && (at == 0 || flag.filename[at - 1] == '/')) return true;
  }
  return false;
}

// Those of `names`; all where it is empty.
std::map<std::string, Flag> OurFlags(std::span<const std::string_view> names) {
  std::vector<Flag> all;
  gflags::GetAllFlags(&all);
  std::map<std::string, Flag> ours;
  for (Flag& flag : all) {
    const bool wanted = names.empty() || std::ranges::find(names, flag.name) != names.end();
    if (wanted && IsOurs(flag)) ours.emplace(flag.name, std::move(flag));
  }
  for (const std::string_view name : names) {
    CHECK(ours.contains(std::string(name))) << "no flag --" << name << " is defined";
  }
  return ours;
}

template <typename Number>
bool IsNumber(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

// What a value of the flag has to be; empty when `text` is that.
std::string WantedInstead(const Flag& flag, const std::string& text) {
  if (flag.type == "bool") {
    return text == "true" || text == "false" || text == "1" || text == "0" ? "" : "true or false";
  }
  if (flag.type == "int32") return IsNumber<int32_t>(text) ? "" : "a whole number";
  if (flag.type == "int64") return IsNumber<int64_t>(text) ? "" : "a whole number";
  if (flag.type == "uint32") return IsNumber<uint32_t>(text) ? "" : "a whole number of at least 0";
  if (flag.type == "uint64") return IsNumber<uint64_t>(text) ? "" : "a whole number of at least 0";
  if (flag.type == "double") return IsNumber<double>(text) ? "" : "a number";
  return "";
}

// `origin` is how the operator said it: "--workers", or the name of an environment variable.
Status SetFlag(const Flag& flag, const std::string& origin, const std::string& text) {
  std::string wanted = WantedInstead(flag, text);
  if (wanted.empty() && gflags::SetCommandLineOption(flag.name.c_str(), text.c_str()).empty()) {
    wanted = "allowed: " + flag.description;
  }
  if (wanted.empty()) return {};
  return Status(Code::kInvalidArgument, origin + ": \"" + text + "\" is not " + wanted);
}

// Breaks `text` into lines of at most 80 columns, the second and later ones indented.
void PrintWrapped(const std::string& first, const std::string& text, std::ostream& out) {
  constexpr size_t kColumnsMax = 80, kIndent = 24;
  std::string line = first;
  line.resize(std::max(line.size() + 1, kIndent), ' ');
  std::istringstream words(text);
  std::string word;
  bool fresh = true;  // Nothing after the indent yet.
  while (words >> word) {
    if (!fresh && line.size() + 1 + word.size() > kColumnsMax) {
      out << line << "\n";
      line.assign(kIndent, ' ');
      fresh = true;
    }
    line += (fresh ? "" : " ") + word;
    fresh = false;
  }
  out << line << "\n";
}

void PrintHelp(const std::string& usage, const std::map<std::string, Flag>& flags) {
  std::cout << usage << (usage.ends_with('\n') ? "" : "\n") << "\nflags:\n";
  for (const auto& [name, flag] : flags) {
    const bool plain = flag.type == "bool";
    const std::string value = flag.type == "string" ? "TEXT" : "N";
    const std::string standard =
        flag.default_value.empty() || plain ? "" : " (default " + flag.default_value + ")";
    PrintWrapped("  --" + name + (plain ? "" : "=" + value), flag.description + standard,
                 std::cout);
  }
  PrintWrapped("  --help", "this text", std::cout);
  PrintWrapped("  --version", "version of hdps and of its protocol", std::cout);
  std::cout << "A flag that is not given is taken from the environment, --workers from\n"
               "HDPS_WORKERS.\n";
}

// One argument that begins with a dash, taken apart.
struct GivenFlag {
  std::string written;  // "--workers"
  std::string name;     // "workers"
  bool has_value = false;
  std::string value;
};

GivenFlag TakeApart(const std::string& argument) {
  GivenFlag given;
  const size_t equals = argument.find('=');
  given.written = argument.substr(0, equals);
  given.has_value = equals != std::string::npos;
  if (given.has_value) given.value = argument.substr(equals + 1);
  given.name = given.written.substr(given.written.starts_with("--") ? 2 : 1);
  std::replace(given.name.begin(), given.name.end(), '-', '_');
  return given;
}

Status UnknownFlag(const GivenFlag& given, const std::map<std::string, Flag>& flags) {
  std::vector<std::string> names;
  for (const auto& [name, flag] : flags) names.push_back(name);
  const std::string nearest = NearestName(given.name, names);
  return Status(
      Code::kInvalidArgument,
      given.written + ": there is no such flag" +
          (nearest.empty() ? "; --help lists them" : "; did you mean --" + nearest + "?"));
}

// Reads arguments one by one.
//
// Invariant: set_ joins all --set that were read so far.
class ArgumentReader {
 public:
  ArgumentReader(const std::map<std::string, Flag>& flags, std::vector<std::string> rest)
      : flags_(flags), rest_(std::move(rest)) {}

  Status Run(std::vector<std::string>* arguments) {
    bool flags_end = false;
    while (next_ < rest_.size()) {
      const std::string argument = rest_[next_++];
      if (!flags_end && argument == "--") {
        flags_end = true;
      } else if (!flags_end && argument.size() > 1 && argument[0] == '-') {
        HDPS_RETURN_IF_ERROR(ReadFlag(TakeApart(argument)));
      } else if (arguments != nullptr) {
        arguments->push_back(argument);
      } else {
        return Status(Code::kInvalidArgument, "\"" + argument +
                                                  "\" is no flag, and nothing else is expected "
                                                  "here; flags are written --name=value");
      }
    }
    return {};
  }

 private:
  Status ReadFlag(GivenFlag given) {
    auto found = flags_.find(given.name);
    if (found == flags_.end() && !given.has_value && given.name.starts_with("no")) {
      found = flags_.find(given.name.substr(2));
      if (found != flags_.end() && found->second.type != "bool") found = flags_.end();
      given.has_value = true;
      given.value = "false";
    }
    if (found == flags_.end()) return UnknownFlag(given, flags_);
    const Flag& flag = found->second;
    if (!given.has_value && flag.type == "bool") {
      given.value = "true";
    } else if (!given.has_value) {
      if (next_ == rest_.size()) {
        return Status(Code::kInvalidArgument,
                      given.written + ": a value is missing; write " + given.written + "=VALUE");
      }
      given.value = rest_[next_++];
    }
    if (flag.name == "set") {
      set_ += (set_.empty() ? "" : ",") + given.value;
      given.value = set_;
    }
    return SetFlag(flag, given.written, given.value);
  }

  const std::map<std::string, Flag>& flags_;
  const std::vector<std::string> rest_;
  size_t next_ = 0;
  std::string set_;
};

std::string FromEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

// Names that users of other systems have in their scripts already.
struct Alias {
  const char* flag;
  const char* variable;
  const char* port_variable;  // With it the value is tcp://VARIABLE:PORT; null otherwise.
};
constexpr Alias kAliases[] = {
    {"scheduler", "MS_SCHED_HOST", "MS_SCHED_PORT"},
    {"scheduler", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT"},
    {"listen", "MS_SCHED_HOST", "MS_SCHED_PORT"},  // Of the scheduler alone, see below.
    {"listen", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT"},
    {"servers", "MS_SERVER_NUM", nullptr},
    {"servers", "DMLC_NUM_SERVER", nullptr},
    {"workers", "MS_WORKER_NUM", nullptr},
    {"workers", "DMLC_NUM_WORKER", nullptr},
    {"rank", "MS_NODE_ID", nullptr},
    {"rank", "OMPI_COMM_WORLD_RANK", nullptr},
};

// The value of an alias, and the variables it came from; both empty when it does not apply.
std::pair<std::string, std::string> AliasValue(const Alias& alias, bool has_scheduler_flag) {
  const std::string flag = alias.flag;
  if (flag == "listen" && has_scheduler_flag) return {};  // Servers listen elsewhere.
  const std::string value = FromEnvironment(alias.variable);
  if (value.empty()) return {};
  if (flag == "rank" && !IsNumber<int32_t>(value)) return {};  // MindSpore also allows names.
  if (alias.port_variable == nullptr) return {alias.variable, value};
  const std::string port = FromEnvironment(alias.port_variable);
  if (port.empty()) return {};
  return {std::string(alias.variable) + " and " + alias.port_variable,
          "tcp://" + value + ":" + port};
}

Status TakeEnvironment(const std::map<std::string, Flag>& flags) {
  for (const auto& [name, flag] : flags) {
    if (!gflags::GetCommandLineFlagInfoOrDie(name.c_str()).is_default) continue;
    std::string variable = "HDPS_" + name;
    std::transform(variable.begin(), variable.end(), variable.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    std::string value = FromEnvironment(variable);
    for (const Alias& alias : kAliases) {
      if (!value.empty()) break;
      if (name != alias.flag) continue;
      std::tie(variable, value) = AliasValue(alias, flags.contains("scheduler"));
    }
    if (!value.empty()) HDPS_RETURN_IF_ERROR(SetFlag(flag, variable, value));
  }
  return {};
}

}  // namespace

Status ParseCommandLine(const std::string& usage, int* argc, char*** argv,
                        std::vector<std::string>* arguments,
                        std::span<const std::string_view> names) {
  KeepFreedMemory();
  const std::map<std::string, Flag> flags = OurFlags(names);
  std::vector<std::string> rest(*argv + std::min(*argc, 1), *argv + *argc);
  for (const std::string& argument : rest) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-help" || argument == "-h") {
      PrintHelp(usage, flags);
      return Status(Code::kCancelled, "help was asked for");
    }
    if (argument == "--version") {
      std::cout << "hdps " << HDPS_VERSION << ", protocol " << kProtocolVersion << "\n";
      return Status(Code::kCancelled, "the version was asked for");
    }
  }
  *argc = std::min(*argc, 1);
  HDPS_RETURN_IF_ERROR(ArgumentReader(flags, std::move(rest)).Run(arguments));
  return TakeEnvironment(flags);
}

}  // namespace hdps
