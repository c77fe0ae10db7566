// Writes and reads the scheduler's state as JSON.
#include "scheduler/scheduler_state.h"

#include <charconv>
#include <concepts>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "common/job/job_spec.h"
#include "common/platform/failpoint.h"
#include "common/protocol/checkpoints/json_numbers.h"
#include "common/protocol/partition_offsets.h"
#include "scheduler/state_log.h"

namespace hdps {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kStateBytesMax = uint64_t{64} << 20;
constexpr int kVersion = 1;

// Conversions of each kind of value to JSON and back. Invalid JSON throws.
template <std::integral Number>
Json JsonOf(Number value) {
  return value;
}
template <std::integral Number>
void Take(const Json& json, Number* to) {
  *to = WholeOf<Number>(json);
}
Json JsonOf(const std::string& text) { return text; }
void Take(const Json& json, bool* to) { *to = json.get<bool>(); }
void Take(const Json& json, std::string* to) { *to = json.get<std::string>(); }

// Throws for a number that is not one of the enum's.
template <typename Enum>
Enum EnumOf(const Json& json, Enum last) {
  const int value = WholeOf<int>(json);
  if (value < 0 || value > static_cast<int>(last)) throw std::out_of_range("a step of no kind");
  return static_cast<Enum>(value);
}
Json JsonOf(JobPhase phase) { return static_cast<int>(phase); }
void Take(const Json& json, JobPhase* to) { *to = EnumOf(json, JobPhase::kOver); }
Json JsonOf(JobStep step) { return static_cast<int>(step); }
void Take(const Json& json, JobStep* to) { *to = EnumOf(json, JobStep::kFinish); }

Json JsonOf(const uint64_t (&digest)[2]) { return {digest[0], digest[1]}; }
void Take(const Json& json, uint64_t (*to)[2]) {
  for (size_t i = 0; i < 2; ++i) Take(json.at(i), &(*to)[i]);
}

Json JsonOf(const TrainedSums& sums) {
  return {{"examples", sums.examples}, {"loss_sum", NumberJson<Json>(sums.loss_sum)}};
}
void Take(const Json& json, TrainedSums* to) {
  *to = {WholeOf<uint64_t>(json.at("examples")), NumberOf(json.at("loss_sum"))};
}

Json JsonOf(const RowCounts& counts) {
  return {counts.admitted, counts.refused, counts.evicted, counts.fetched, counts.on_disk};
}
void Take(const Json& json, RowCounts* to) {
  size_t i = 0;
  for (uint64_t* const count :
       {&to->admitted, &to->refused, &to->evicted, &to->fetched, &to->on_disk}) {
    Take(json.at(i++), count);
  }
}

Json JsonOf(const StepTime& time) { return {time.clock, time.trained_ms}; }
void Take(const Json& json, StepTime* to) {
  *to = {WholeOf<Clock>(json.at(0)), WholeOf<int64_t>(json.at(1))};
}

Json JsonOf(const PartitionOffset& at) { return {at.partition, at.next}; }
void Take(const Json& json, PartitionOffset* to) {
  *to = {WholeOf<uint32_t>(json.at(0)), WholeOf<int64_t>(json.at(1))};
}

Json JsonOf(const FilePrint& file) { return {file.bytes, file.hash}; }
void Take(const Json& json, FilePrint* to) {
  *to = {WholeOf<uint64_t>(json.at(0)), WholeOf<uint64_t>(json.at(1))};
}

Json JsonOf(const Watched& watched) { return Json::parse(PrintWatched(watched)); }
void Take(const Json& json, Watched* to) {
  Result<Watched> watched = ParseWatched(json.dump());
  if (!watched.ok()) throw std::out_of_range(watched.status().message());
  *to = *std::move(watched);
}

Json JsonOf(const JobRecord::Order& order) {
  const Command& command = order.command;
  Json json = {{"worker", order.worker.value},
               {"id", command.id.value},
               {"until", command.until},
               {"epoch", command.epoch},
               {"epoch_start", command.epoch_start},
               {"rate", command.rate}};
  if (command.since > 0) json["since"] = command.since;
  if (command.begun) json["begun"] = true;
  AddOffsets(command.offsets, &json);
  if (command.steps_before > 0) json["steps_before"] = command.steps_before;
  return json;
}
void Take(const Json& json, JobRecord::Order* to) {
  Command& command = to->command;
  command.command = CommandKind::kTrain;
  Take(json.at("worker"), &to->worker.value);
  Take(json.at("id"), &command.id.value);
  Take(json.at("until"), &command.until);
  Take(json.at("epoch"), &command.epoch);
  Take(json.at("epoch_start"), &command.epoch_start);
  command.rate = json.value("rate", 1.0);
  command.since = json.value("since", Clock{0});
  command.begun = json.value("begun", false);
  command.offsets = OffsetsIn(json);
  command.steps_before = json.value("steps_before", Clock{0});
}

Json JsonOf(const Figure& figure) {
  return {
      {"word", figure.word}, {"value", NumberJson<Json>(figure.value)}, {"about", figure.about}};
}
void Take(const Json& json, Figure* to) {
  *to = {json.at("word"), NumberOf(json.at("value")), json.at("about")};
}

template <typename Value>
Json JsonOf(const std::vector<Value>& values);
template <typename Value>
void Take(const Json& list, std::vector<Value>* to);

Json JsonOf(const Evaluation& evaluation) {
  return {{"examples", evaluation.examples},
          {"auc", NumberJson<Json>(evaluation.auc)},
          {"logloss", NumberJson<Json>(evaluation.logloss)},
          {"no_auc", evaluation.no_auc},
          {"figures", JsonOf(evaluation.figures)}};
}
void Take(const Json& json, Evaluation* to) {
  Take(json.at("examples"), &to->examples);
  to->auc = NumberOf(json.at("auc"));
  to->logloss = NumberOf(json.at("logloss"));
  Take(json.at("no_auc"), &to->no_auc);
  Take(json.value("figures", Json::array()), &to->figures);
}
using NamedEvaluation = std::pair<std::string, Evaluation>;
Json JsonOf(const NamedEvaluation& set) {
  return {{"name", set.first}, {"evaluation", JsonOf(set.second)}};
}
void Take(const Json& json, NamedEvaluation* to) {
  Take(json.at("name"), &to->first);
  Take(json.at("evaluation"), &to->second);
}

template <typename Value>
Json JsonOf(const std::vector<Value>& values) {
  Json list = Json::array();
  for (const Value& value : values) list.push_back(JsonOf(value));
  return list;
}
template <typename Value>
void Take(const Json& list, std::vector<Value>* to) {
  to->clear();
  for (const Json& json : list) Take(json, &to->emplace_back());
}

template <typename Value>
Json JsonOf(const std::optional<Value>& value) {
  return JsonOf(*value);
}
template <typename Value>
void Take(const Json& json, std::optional<Value>* to) {
  Take(json, &to->emplace());
}

template <std::integral Number>
bool IsEmpty(Number number) {
  return number == 0;
}
bool IsEmpty(const std::string& text) { return text.empty(); }
template <typename Value>
bool IsEmpty(const std::vector<Value>& values) {
  return values.empty();
}
template <typename Value>
bool IsEmpty(const std::optional<Value>& value) {
  return !value;
}

Json::json_pointer PlaceOf(const char* name) { return Json::json_pointer(std::string("/") + name); }

Json JobJson(const JobState& job) {
  Json json;
  VisitFields(job, [&json](const char* name, const auto& field, Kept kept, auto...) {
    if constexpr (requires { IsEmpty(field); }) {
      if (kept.in == Kept::In::kIfAny && IsEmpty(field)) return;
    }
    json[PlaceOf(name)] = JsonOf(field);
  });
  return json;
}

JobState JobOf(const Json& json) {
  JobState job;
  VisitFields(job, [&json](const char* name, auto& field, Kept kept, auto...) {
    const auto place = PlaceOf(name);
    if (kept.in == Kept::In::kEvery || json.contains(place)) Take(json.at(place), &field);
  });
  return job;
}

// Values of the store are arbitrary bytes, which JSON strings cannot hold.
Json BytesJson(const std::string& bytes) {
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<uint8_t>(byte));
  return list;
}
std::string BytesOf(const Json& json) {
  std::string bytes;
  for (const Json& byte : json) bytes.push_back(static_cast<char>(WholeOf<uint8_t>(byte)));
  return bytes;
}

Json OwnersJson(const ShardMap& shards) {
  Json list = Json::array();
  for (const ServerId owner : shards.owner) list.push_back(owner.value);
  return list;
}

Json MembersJson(const std::vector<Member>& members,
                 const std::map<PeerId, MemberProcess>& processes) {
  Json list = Json::array();
  for (const Member& member : members) {
    const auto found = processes.find(member.peer);
    const MemberProcess process = found == processes.end() ? MemberProcess() : found->second;
    list.push_back({{"peer", member.peer.value},
                    {"rank", member.rank},
                    {"address", member.address},
                    {"host", process.host},
                    {"process", process.name}});
    if (process.records) list.back()["records"] = true;
  }
  return list;
}
std::vector<Member> MembersOf(const Json& list, std::map<PeerId, MemberProcess>* processes) {
  std::vector<Member> members;
  for (const Json& json : list) {
    const PeerId peer{WholeOf<uint64_t>(json.at("peer"))};
    members.push_back({peer, WholeOf<uint32_t>(json.at("rank")), json.at("address")});
    (*processes)[peer] = {json.at("host"), json.at("process"), json.value("records", false)};
  }
  return members;
}

Json BackupsJson(const SchedulerState& state) {
  Json groups = Json::array();
  std::vector<Member> members;
  for (const GroupBackup& backup : state.view.backups) {
    groups.push_back(backup.group.value);
    members.push_back(backup.member);
  }
  return {{"groups", groups}, {"members", MembersJson(members, state.processes)}};
}

uint64_t PeerOf(const std::string& text) {
  uint64_t peer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), peer);
  if (error == std::errc() && std::to_string(peer) == text) return peer;
  throw std::out_of_range("a command to '" + text + "', which is no number of a member");
}

}  // namespace

Status WriteSchedulerState(FileSystem& files, const std::string& out, const SchedulerState& state,
                           Survives survives, StateLog* log) {
  Json ids = Json::object(), entries = Json::object();
  for (const auto& [peer, id] : state.last_ids) ids[std::to_string(peer.value)] = id;
  for (const auto& [key, value] : state.entries) entries[key] = BytesJson(value);
  const Json json = {{"version", kVersion},
                     {"job_digest", state.job_digest},
                     {"num_servers", state.num_servers},
                     {"num_workers", state.num_workers},
                     {"wanted_servers", state.wanted_servers},
                     {"wanted_workers", state.wanted_workers},
                     {"view", state.view.view.value},
                     {"restarts", state.view.restarts},
                     {"placed", state.view.placed.value},
                     {"servers", MembersJson(state.view.servers, state.processes)},
                     {"workers", MembersJson(state.view.workers, state.processes)},
                     {"shard_owner", OwnersJson(state.view.shards)},
                     {"backups", BackupsJson(state)},
                     {"last_ids", ids},
                     {"entries", entries},
                     {"boot", state.boot},
                     {"job", JobJson(state.job)}};
  HDPS_FAILPOINT_OR_RETURN("scheduler.state.before_write");
  const std::string path = SchedulerStatePath(out, state.reign);
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  HDPS_RETURN_IF_ERROR(log != nullptr ? log->Write(files, path, text, survives)
                                      : WriteFileAtomically(files, path, text, survives));
  HDPS_FAILPOINT("scheduler.state.written");
  return {};
}

Result<std::optional<SchedulerState>> ReadSchedulerState(FileSystem& files,
                                                         const std::string& out) {
  const uint64_t reign = NewestReign(files, out);
  const std::string path = SchedulerStatePath(out, reign);
  if (!files.Exists(path)) return std::optional<SchedulerState>();
  HDPS_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path, kStateBytesMax));
  try {
    const Json json = Json::parse(NewestState(text));
    if (WholeOf<int>(json.at("version")) != kVersion) {
      return Status(Code::kCorruption, path + ": of another version");
    }
    SchedulerState state;
    state.reign = reign;
    Take(json.at("job_digest"), &state.job_digest);
    Take(json.at("num_servers"), &state.num_servers);
    Take(json.at("num_workers"), &state.num_workers);
    Take(json.at("wanted_servers"), &state.wanted_servers);
    Take(json.at("wanted_workers"), &state.wanted_workers);
    Take(json.at("view"), &state.view.view.value);
    Take(json.at("restarts"), &state.view.restarts);
    Take(json.at("placed"), &state.view.placed.value);
    state.view.servers = MembersOf(json.at("servers"), &state.processes);
    state.view.workers = MembersOf(json.at("workers"), &state.processes);
    for (const Json& owner : json.at("shard_owner")) {
      state.view.shards.owner.push_back({WholeOf<uint32_t>(owner)});
    }
    const std::vector<Member> backups =
        MembersOf(json.at("backups").at("members"), &state.processes);
    for (size_t i = 0; i < backups.size(); ++i) {
      const Json& group = json.at("backups").at("groups").at(i);
      state.view.backups.push_back({ServerId{WholeOf<uint32_t>(group)}, backups[i]});
    }
    for (const auto& [peer, id] : json.at("last_ids").items()) {
      Take(id, &state.last_ids[PeerId{PeerOf(peer)}]);
    }
    for (const auto& [key, value] : json.at("entries").items()) state.entries[key] = BytesOf(value);
    state.boot = json.value("boot", std::string());
    state.job = JobOf(json.at("job"));
    if (const std::string what = ContradictionIn(state); !what.empty()) {
      return Status(Code::kCorruption, path + ": its parts do not fit: " + what);
    }
    return std::optional<SchedulerState>(std::move(state));
  } catch (const std::bad_alloc&) {
    throw;  // Not caused by the text.
  } catch (const std::exception& error) {
    return Status(Code::kCorruption, path + ": " + error.what());
  }
}

}  // namespace hdps
