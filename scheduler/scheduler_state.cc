// The scheduler's state as JSON.
#include "scheduler/scheduler_state.h"

#include <charconv>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "common/platform/failpoint.h"

namespace hdps {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kStateBytesMax = uint64_t{64} << 20;
constexpr int kVersion = 1;

// A number that `Number` cannot hold is refused as text of another kind is: by an exception.
template <std::integral Number>
Number WholeOf(const Json& json) {
  const bool fits = json.is_number_unsigned()
                        ? std::in_range<Number>(json.get<uint64_t>())
                        : json.is_number_integer() && std::in_range<Number>(json.get<int64_t>());
  if (fits) return json.get<Number>();
  throw std::out_of_range((json.is_number() ? json.dump() : std::string(json.type_name())) +
                          " where a whole number of another range is due");
}
template <std::integral Number>
void Take(const Json& json, Number* to) {
  *to = WholeOf<Number>(json);
}

// Values of the store are any bytes, which JSON's texts are not.
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

// JSON has no number for what is not finite.
Json NumberJson(double value) { return std::isfinite(value) ? Json(value) : Json(); }
double NumberOf(const Json& json) { return json.is_null() ? std::nan("") : json.get<double>(); }

Json SumsJson(const JobState::Sums& sums) {
  return {{"examples", sums.examples}, {"loss_sum", NumberJson(sums.loss_sum)}};
}
JobState::Sums SumsOf(const Json& json) {
  return {WholeOf<uint64_t>(json.at("examples")), NumberOf(json.at("loss_sum"))};
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
  }
  return list;
}
std::vector<Member> MembersOf(const Json& list, std::map<PeerId, MemberProcess>* processes) {
  std::vector<Member> members;
  for (const Json& json : list) {
    const PeerId peer{WholeOf<uint64_t>(json.at("peer"))};
    members.push_back({peer, WholeOf<uint32_t>(json.at("rank")), json.at("address")});
    (*processes)[peer] = {json.at("host"), json.at("process")};
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

Json FiguresJson(const std::vector<Figure>& figures) {
  Json list = Json::array();
  for (const Figure& figure : figures) {
    list.push_back(
        {{"word", figure.word}, {"value", NumberJson(figure.value)}, {"about", figure.about}});
  }
  return list;
}
std::vector<Figure> FiguresOf(const Json& list) {
  std::vector<Figure> figures;
  for (const Json& json : list) {
    figures.push_back({json.at("word"), NumberOf(json.at("value")), json.at("about")});
  }
  return figures;
}

Json EvaluationJson(const Evaluation& evaluation) {
  return {{"examples", evaluation.examples},
          {"auc", NumberJson(evaluation.auc)},
          {"logloss", NumberJson(evaluation.logloss)},
          {"no_auc", evaluation.no_auc},
          {"figures", FiguresJson(evaluation.figures)}};
}
Evaluation EvaluationOf(const Json& json) {
  return {.examples = WholeOf<uint64_t>(json.at("examples")),
          .auc = NumberOf(json.at("auc")),
          .logloss = NumberOf(json.at("logloss")),
          .no_auc = json.at("no_auc"),
          .figures = FiguresOf(json.value("figures", Json::array()))};
}

Json SummaryJson(const RunSummary& summary) {
  const RowCounts& counts = summary.row_counts;
  Json json = {
      {"failures_survived", summary.failures_survived},
      {"steps_again", summary.steps_again},
      {"examples_again", summary.examples_again},
      {"bad_rows", summary.bad_rows},
      {"digest", {summary.digest[0], summary.digest[1]}},
      {"rows", summary.rows},
      {"dense_rows", summary.dense_rows},
      {"dense_parameters", summary.dense_parameters},
      {"counts", {counts.admitted, counts.refused, counts.evicted, counts.fetched, counts.on_disk}},
      {"row_bytes", summary.row_bytes},
      {"server_bytes_max", summary.server_bytes_max}};
  if (summary.resumed_from) json["resumed_from"] = *summary.resumed_from;
  if (summary.evaluation) json["evaluation"] = EvaluationJson(*summary.evaluation);
  for (const auto& [name, evaluation] : summary.eval_sets) {
    json["eval_sets"].push_back({{"name", name}, {"evaluation", EvaluationJson(evaluation)}});
  }
  return json;
}
RunSummary SummaryOf(const Json& json) {
  RunSummary summary;
  Take(json.at("failures_survived"), &summary.failures_survived);
  Take(json.at("steps_again"), &summary.steps_again);
  Take(json.at("examples_again"), &summary.examples_again);
  Take(json.at("bad_rows"), &summary.bad_rows);
  for (size_t i = 0; i < 2; ++i) Take(json.at("digest").at(i), &summary.digest[i]);
  Take(json.at("rows"), &summary.rows);
  Take(json.at("dense_rows"), &summary.dense_rows);
  Take(json.at("dense_parameters"), &summary.dense_parameters);
  RowCounts& counts = summary.row_counts;
  size_t i = 0;
  for (uint64_t* const count :
       {&counts.admitted, &counts.refused, &counts.evicted, &counts.fetched, &counts.on_disk}) {
    Take(json.at("counts").at(i++), count);
  }
  Take(json.at("row_bytes"), &summary.row_bytes);
  Take(json.at("server_bytes_max"), &summary.server_bytes_max);
  if (json.contains("resumed_from")) summary.resumed_from = WholeOf<Clock>(json.at("resumed_from"));
  if (json.contains("evaluation")) summary.evaluation = EvaluationOf(json.at("evaluation"));
  for (const Json& set : json.value("eval_sets", Json::array())) {
    summary.eval_sets.emplace_back(set.at("name"), EvaluationOf(set.at("evaluation")));
  }
  return summary;
}

Json JobJson(const JobState& job) {
  Json due = Json::array(), orders = Json::array();
  for (const JobStep step : job.plan.due) due.push_back(static_cast<int>(step));
  for (const auto& [worker, command] : job.orders) {
    orders.push_back({{"worker", worker.value},
                      {"id", command.id.value},
                      {"until", command.until},
                      {"epoch", command.epoch},
                      {"epoch_start", command.epoch_start},
                      {"rate", command.rate}});
  }
  Json json = {{"phase", static_cast<int>(job.phase)},
               {"clock", job.plan.position.clock},
               {"epoch", job.plan.position.epoch},
               {"epoch_start", job.plan.position.epoch_start},
               {"saved", job.plan.saved},
               {"stopped", job.plan.stopped},
               {"ending", job.plan.ending},
               {"stopped_early", job.plan.stopped_early},
               {"full_save", job.plan.full_save},
               {"watched", Json::parse(PrintWatched(job.watched))},
               {"epoch_rows", job.epoch_rows},
               {"due", due},
               {"orders", orders},
               {"stop", job.stop},
               {"trained", SumsJson(job.trained)},
               {"epoch_sums", SumsJson(job.epoch)},
               {"last_epoch_sums", SumsJson(job.last_epoch)},
               {"examples_before", job.examples_before},
               {"examples_worked", job.examples_worked},
               {"training_ms", job.training_ms},
               {"wall_ms", job.wall_ms},
               {"summary", SummaryJson(job.summary)}};
  return json;
}

// A number that is none of the enum's is refused as text of another kind is: by an exception.
template <typename Enum>
Enum EnumOf(const Json& json, Enum last) {
  const int value = WholeOf<int>(json);
  if (value < 0 || value > static_cast<int>(last)) throw std::out_of_range("a step of no kind");
  return static_cast<Enum>(value);
}

JobState JobOf(const Json& json) {
  JobState job;
  job.phase = EnumOf(json.at("phase"), JobPhase::kOver);
  Take(json.at("clock"), &job.plan.position.clock);
  Take(json.at("epoch"), &job.plan.position.epoch);
  Take(json.at("epoch_start"), &job.plan.position.epoch_start);
  Take(json.at("saved"), &job.plan.saved);
  job.plan.stopped = json.at("stopped");
  job.plan.ending = json.at("ending");
  job.plan.stopped_early = json.value("stopped_early", false);
  job.plan.full_save = json.value("full_save", true);
  if (json.contains("watched")) {
    Result<Watched> watched = ParseWatched(json.at("watched").dump());
    if (!watched.ok()) throw std::out_of_range(watched.status().message());
    job.watched = *std::move(watched);
  }
  if (json.contains("epoch_rows")) Take(json.at("epoch_rows"), &job.epoch_rows);
  for (const Json& step : json.at("due")) job.plan.due.push_back(EnumOf(step, JobStep::kFinish));
  for (const Json& order : json.at("orders")) {
    Command command;
    command.command = CommandKind::kTrain;
    Take(order.at("id"), &command.id.value);
    Take(order.at("until"), &command.until);
    Take(order.at("epoch"), &command.epoch);
    Take(order.at("epoch_start"), &command.epoch_start);
    command.rate = order.value("rate", 1.0);
    job.orders.push_back({PeerId{WholeOf<uint64_t>(order.at("worker"))}, std::move(command)});
  }
  job.stop = json.at("stop");
  job.trained = SumsOf(json.at("trained"));
  job.epoch = SumsOf(json.at("epoch_sums"));
  job.last_epoch = SumsOf(json.at("last_epoch_sums"));
  Take(json.at("examples_before"), &job.examples_before);
  Take(json.at("examples_worked"), &job.examples_worked);
  Take(json.at("training_ms"), &job.training_ms);
  Take(json.at("wall_ms"), &job.wall_ms);
  job.summary = SummaryOf(json.at("summary"));
  return job;
}

uint64_t PeerOf(const std::string& text) {
  uint64_t peer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), peer);
  if (error == std::errc() && std::to_string(peer) == text) return peer;
  throw std::out_of_range("a command to '" + text + "', which is no number of a member");
}

}  // namespace

std::string SchedulerStatePath(const std::string& out) { return JoinPath(out, "scheduler.state"); }

Status WriteSchedulerState(FileSystem& files, const std::string& out, const SchedulerState& state,
                           Survives survives) {
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
  HDPS_RETURN_IF_ERROR(WriteFileAtomically(
      files, SchedulerStatePath(out),
      json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n", survives));
  HDPS_FAILPOINT("scheduler.state.written");
  return {};
}

Result<std::optional<SchedulerState>> ReadSchedulerState(FileSystem& files,
                                                         const std::string& out) {
  const std::string path = SchedulerStatePath(out);
  if (!files.Exists(path)) return std::optional<SchedulerState>();
  HDPS_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path, kStateBytesMax));
  try {
    const Json json = Json::parse(text);
    if (WholeOf<int>(json.at("version")) != kVersion) {
      return Status(Code::kCorruption, path + ": of another version");
    }
    SchedulerState state;
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
  } catch (const std::exception& error) {
    return Status(Code::kCorruption, path + ": " + error.what());
  }
}

}  // namespace hdps
