// Flags and environment of a program, on top of gflags, which holds the flags, parses their values
// and describes them. Added here: the flags of one program by name, mistakes as errors, and
// environment variables.
#include "common/process/command_line.h"

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/net/frame.h"
#include "common/platform/file_system.h"
#include "common/process/description.h"
#include "common/process/terminal.h"

namespace hdps {

namespace {

using Flag = gflags::CommandLineFlagInfo;
using Flags = std::map<std::string, Flag>;

Flags FlagsOf(std::span<const std::string_view> names) {
  Flags flags;
  for (const std::string_view name : names) {
    Flag& flag = flags[std::string(name)];
    CHECK(gflags::GetCommandLineFlagInfo(std::string(name).c_str(), &flag))
        << "no flag --" << name << " is defined";
  }
  return flags;
}

std::string WordsFor(const std::string& type) {
  if (type == "bool") return "true or false";
  if (type == "double") return "a number";
  return type.starts_with("uint") ? "a whole number of at least 0" : "a whole number";
}

// `origin` is how the operator gave it: "--workers", or the name of an environment variable.
Status SetFlag(const Flag& flag, const std::string& origin, const std::string& text) {
  if (!gflags::SetCommandLineOption(flag.name.c_str(), text.c_str()).empty()) return {};
  return Status(Code::kInvalidArgument,
                origin + ": \"" + text + "\" is not " + WordsFor(flag.type));
}

void PrintHelp(const std::string& usage, const Flags& flags) {
  PrintOut("%s%s\nflags:\n", usage.c_str(), usage.ends_with('\n') ? "" : "\n");
  for (const auto& [name, flag] : flags) {
    // "    -name (text) type: int32 default: 1", broken into lines that fit a terminal.
    const std::string text = gflags::DescribeOneFlag(flag);
    PrintOutText("  --" + text.substr(text.find('-') + 1));
  }
  for (const FlagOfAll& flag : kFlagsOfAll) {
    PrintOut("  --%s%s: %s\n", flag.name, *flag.value == 0 ? "" : "=FILE", flag.help);
  }
  PrintOutText(
      "A flag that is not given is taken from the environment, --workers from\n"
      "HDPS_WORKERS.\n");
}

// One argument that begins with a dash, split into its parts.
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

Status UnknownFlag(const GivenFlag& given, const Flags& flags, const std::string& hint) {
  if (!hint.empty()) {
    return {Code::kInvalidArgument, given.written + ": there is no such flag; " + hint};
  }
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
// Invariant: joined_ holds the values of each repeatable flag read so far, joined by commas.
class ArgumentReader {
 public:
  ArgumentReader(const Flags& flags, const FlagHint& hint) : flags_(flags), hint_(hint) {}

  Status Read(const std::vector<std::string>& given, std::vector<std::string>* others) {
    bool flags_end = false;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!flags_end && given[i] == "--") {
        flags_end = true;
      } else if (!flags_end && given[i].size() > 1 && given[i][0] == '-') {
        HDPS_RETURN_IF_ERROR(ReadFlag(TakeApart(given[i]), given, &i));
      } else if (others != nullptr) {
        others->push_back(given[i]);
      } else {
        return Status(Code::kInvalidArgument, "\"" + given[i] +
                                                  "\" is no flag, and nothing else is expected "
                                                  "here; flags are written --name=value");
      }
    }
    return {};
  }

 private:
  // The value may be the next argument, `*at` + 1.
  Status ReadFlag(GivenFlag flag, const std::vector<std::string>& given, size_t* at) {
    const bool value_follows =
        !flag.has_value && *at + 1 < given.size() && !given[*at + 1].starts_with("-");
    const std::string value = value_follows ? given[*at + 1] : flag.value;
    auto found = flags_.find(flag.name);
    const bool is_file = flag.name == "flagfile";
    if (found == flags_.end() && !flag.has_value && flag.name.starts_with("no")) {
      found = flags_.find(flag.name.substr(2));
      if (found != flags_.end() && found->second.type != "bool") found = flags_.end();
      flag.has_value = true;
      flag.value = "false";
    }
    if (found == flags_.end() && !is_file) {
      return UnknownFlag(flag, flags_, hint_ ? hint_(flag.name, value) : "");
    }
    if (!flag.has_value && !is_file && found->second.type == "bool") {
      flag.value = "true";
    } else if (!flag.has_value) {
      if (*at + 1 == given.size()) {
        return Status(Code::kInvalidArgument,
                      flag.written + ": a value is missing; write " + flag.written + "=VALUE");
      }
      flag.value = given[++*at];
    }
    if (is_file) return ReadFlagFile(flag.value);
    if (std::ranges::find(kRepeatable, flag.name) != std::end(kRepeatable)) {
      std::string& joined = joined_[flag.name];
      joined += (joined.empty() ? "" : ",") + flag.value;
      flag.value = joined;
    }
    return SetFlag(found->second, flag.written, flag.value);
  }

  // Follows gflags: one flag a line, empty lines are skipped, '#' begins a comment. A flag file
  // cannot name another.
  Status ReadFlagFile(const std::string& path) {
    constexpr uint64_t kBytesMax = 1 << 20;
    const Result<std::string> text = ReadWholeFile(*NewPosixFileSystem(), path, kBytesMax);
    if (!text.ok()) return Status(Code::kInvalidArgument, "--flagfile: " + text.status().message());
    std::istringstream lines(*text);
    std::string line;
    while (std::getline(lines, line)) {
      if (line.empty() || line[0] == '#') continue;
      if (line.starts_with("--flagfile") || line[0] != '-') {
        return Status(Code::kInvalidArgument,
                      path + ": \"" + line + "\" is no flag; write one --name=value a line");
      }
      HDPS_RETURN_IF_ERROR(Read({line}, nullptr));
    }
    return {};
  }

  static constexpr std::string_view kRepeatable[] = {"set", "model"};

  const Flags& flags_;
  const FlagHint& hint_;
  std::map<std::string, std::string> joined_;
};

bool IsWholeNumber(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

std::string FromEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

// An environment variable of another system that users' scripts may already set.
struct Alias {
  const char* flag;
  const char* variable;
  const char* port_variable;  // If set, the value is tcp://VARIABLE:PORT.
};
constexpr Alias kAliases[] = {
    {"scheduler", "MS_SCHED_HOST", "MS_SCHED_PORT"},
    {"scheduler", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT"},
    {"listen", "MS_SCHED_HOST", "MS_SCHED_PORT"},  // Only for the scheduler, see below.
    {"listen", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT"},
    {"servers", "MS_SERVER_NUM", nullptr},
    {"servers", "DMLC_NUM_SERVER", nullptr},
    {"workers", "MS_WORKER_NUM", nullptr},
    {"workers", "DMLC_NUM_WORKER", nullptr},
    {"rank", "MS_NODE_ID", nullptr},
    {"rank", "OMPI_COMM_WORLD_RANK", nullptr},
};

// Returns the value of an alias and the variables that it came from; both are empty if it does not
// apply.
std::pair<std::string, std::string> AliasValue(const Alias& alias, bool has_scheduler_flag) {
  const std::string flag = alias.flag;
  if (flag == "listen" && has_scheduler_flag) return {};  // Servers listen on another address.
  const std::string value = FromEnvironment(alias.variable);
  if (value.empty()) return {};
  if (flag == "rank" && !IsWholeNumber(value)) return {};  // MindSpore also allows names.
  if (alias.port_variable == nullptr) return {alias.variable, value};
  const std::string port = FromEnvironment(alias.port_variable);
  if (port.empty()) return {};
  return {std::string(alias.variable) + " and " + alias.port_variable,
          "tcp://" + value + ":" + port};
}

std::set<std::string>& FlagsFromEnvironment() {
  static std::set<std::string> names;  // As flags are, one list for the whole program.
  return names;
}

Status TakeEnvironment(const Flags& flags) {
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
    if (value.empty()) continue;
    HDPS_RETURN_IF_ERROR(SetFlag(flag, variable, value));
    FlagsFromEnvironment().insert(name);
  }
  return {};
}

}  // namespace

std::map<std::string, std::string> VariablesOf(std::span<const std::string_view> names) {
  std::map<std::string, std::string> variables;
  for (const std::string_view name : names) {
    std::string value = FromEnvironment(std::string(name));
    if (!value.empty()) variables.emplace(name, std::move(value));
  }
  return variables;
}

bool IsFromEnvironment(const std::string& flag) { return FlagsFromEnvironment().contains(flag); }

Status ParseCommandLine(const std::string& usage, int* argc, char*** argv,
                        std::vector<std::string>* arguments,
                        std::span<const std::string_view> names, const FlagHint& hint) {
  const Flags flags = FlagsOf(names);
  const std::vector<std::string> given(*argv + std::min(*argc, 1), *argv + *argc);
  for (const std::string& argument : given) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-help" || argument == "-h") {
      PrintHelp(usage, flags);
      return Status(Code::kCancelled, "help was asked for");
    }
    if (argument == "--describe") {
      PrintDescription(usage, names, arguments != nullptr);
      return Status(Code::kCancelled, "the description was asked for");
    }
    if (argument == "--version") {
      PrintOutText("hdps " HDPS_VERSION ", protocol " + std::to_string(kProtocolVersion) + "\n");
      return Status(Code::kCancelled, "the version was asked for");
    }
  }
  *argc = std::min(*argc, 1);
  HDPS_RETURN_IF_ERROR(ArgumentReader(flags, hint).Read(given, arguments));
  return TakeEnvironment(flags);
}

}  // namespace hdps
