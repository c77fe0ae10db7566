// Holds what the values of flags are, and prints the description of a command.
#include "common/process/description.h"

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/outside_text.h"
#include "common/process/terminal.h"

namespace hdps {
namespace {

// What a flag takes in a program; an entry without a program holds in all others. A flag of numbers
// or of free text has no entry. end_to_end.manuals asks the programs whether the words are theirs.
struct FlagValues {
  std::string_view program, flag, takes;
};
constexpr FlagValues kFlagValues[] = {
    {"", "address_file", "file"},
    {"", "bad_rows", "refuse|nan"},
    {"", "checkpoint", "folder"},
    {"", "constants", "file"},
    {"", "data", "file"},
    {"", "dot", "file"},
    {"", "elect_file", "file"},
    {"", "eval", "file"},
    {"hdps generate", "format", "csv|idx"},
    {"hdps export", "format", "safetensors|onnx|vectors|serving"},
    {"", "html", "file"},
    {"", "http_cert", "file"},
    {"", "http_key", "file"},
    {"", "http_token_file", "file"},
    {"", "index", "exact|hnsw32"},
    {"", "init", "folder"},
    {"", "items", "file"},
    {"", "job", "file"},
    {"", "keys", "folder"},
    {"", "kind", "log|digits"},
    {"", "log", "info|warning|error"},
    {"", "log_file", "file"},
    {"", "log_requests", "file"},
    {"", "meet", "folder"},
    {"hdps generate", "model", "linear|pairwise|crosses|dot|wide_deep|pooled|field_pairs|triples"},
    {"", "on_term", "job|leave"},
    {"hdps predict", "out", "file"},
    {"hdps trace", "out", "file"},
    {"", "out", "folder"},
    {"", "pid_file", "file"},
    {"", "record", "folder"},
    {"", "restart", "never|on-failure"},
    {"", "resume", "auto|never|changed"},
    {"", "role", "scheduler|server|worker"},
    {"", "spill_path", "folder"},
    {"", "split", "rows|blocks"},
    {"", "strategy_file", "file"},
    {"", "tables", "inside|outside"},
    {"", "task", "binary|classes|rating|ranking"},
    {"", "to", "jobset|jobs|trainjob|msjob|kserve|slurm"},
    {"", "trace", "file"},
    {"", "unknown", "initial|zero"},
    {"", "which", "best|newest"},
    {"hdps export", "weights", "saved|f32|f16|bf16"},
    {"", "weights", "saved|int8"},
};

}  // namespace

std::string_view ValuesOf(std::string_view program, std::string_view flag) {
  const auto* found = std::ranges::find_if(kFlagValues, [&](const FlagValues& values) {
    return values.flag == flag && (values.program.empty() || values.program == program);
  });
  return found == std::end(kFlagValues) ? "" : found->takes;
}

void PrintDescription(std::string_view usage, std::span<const std::string_view> flags,
                      bool has_arguments) {
  constexpr std::string_view kUsage = "\nusage: ";
  const size_t colon = usage.find(": "), at = usage.find(kUsage);
  if (colon >= at || at == usage.npos) {  // hdps itself, which is described by its commands.
    PrintOutText("{}\n");
    return;
  }
  const std::string program(usage.substr(0, colon));
  std::map<std::string, nlohmann::json> sorted;
  for (const std::string_view name : flags) {
    gflags::CommandLineFlagInfo flag;
    CHECK(gflags::GetCommandLineFlagInfo(std::string(name).c_str(), &flag)) << name;
    sorted[flag.name] = {{"name", flag.name},
                         {"type", flag.type},
                         {"default", flag.default_value},
                         {"help", flag.description},
                         {"takes", ValuesOf(program, name)}};
  }
  nlohmann::json described = nlohmann::json::array();
  for (auto& [name, flag] : sorted) described.push_back(std::move(flag));
  for (const FlagOfAll& flag : kFlagsOfAll) {
    described.push_back({{"name", flag.name},
                         {"type", *flag.value == 0 ? "bool" : "string"},
                         {"default", ""},
                         {"help", flag.help},
                         {"takes", flag.value}});
  }
  const nlohmann::json all = {{"program", program},
                              {"help", usage.substr(colon + 2, at - colon - 2)},
                              {"usage", usage.substr(at + kUsage.size())},
                              {"arguments", has_arguments},
                              {"flags", described}};
  PrintOutText(EscapeJson(all.dump()) + "\n");
}

}  // namespace hdps
