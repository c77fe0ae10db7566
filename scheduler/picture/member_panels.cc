// The panels about the members: where time goes, stragglers, rows, and all figures.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/protocol/status_messages.h"
#include "common/telemetry/figures_json.h"
#include "scheduler/picture/json_text.h"
#include "scheduler/picture/member_pace.h"
#include "scheduler/picture/panels.h"
#include "scheduler/why/explanation.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return NumberOrNull<Json>(value); }

std::vector<Sample> SamplesOfMember(const JobPicture& picture, const MemberPicture& member) {
  const PictureFrame& frame = *picture.frame;
  if (member.readings == nullptr) return {};
  return SamplesOf(member.worker ? frame.workers : frame.servers, *member.readings, frame.tables);
}

// Returns the first sample of a figure; one of no value if there is none.
Sample FirstOf(const std::vector<Sample>& samples, FigureId figure) {
  const auto found = std::ranges::find(samples, figure, &Sample::figure);
  return found == samples.end() ? Sample{.figure = figure} : *found;
}

// Adds `value` to the number at a place, which may be missing yet.
void AddTo(Json& at, double value) {
  at = (at.is_number() ? at.get<int64_t>() : 0) + static_cast<int64_t>(value);
}

// Returns the rows and bytes of each table, from the sum of all servers.
Json TablesJson(const PictureFrame& frame, const std::vector<Sample>& samples) {
  Json tables = Json::array();
  for (const std::string& table : frame.tables) {
    Json json = {{"table", table},  {"rows", Json::object()}, {"bytes", Json::object()},
                 {"admitted", 0},   {"evicted", 0},           {"fetched", 0},
                 {"keys_pulled", 0}};
    for (const Sample& sample : samples) {
      if (sample.labels.empty() || sample.labels[0].second != table) continue;
      if (sample.labels[0].first != "table") continue;
      const auto is = [&](FigureId figure) { return sample.figure == figure; };
      if (is(FigureNamed("hdps_server_rows"))) {
        AddTo(json["rows"][sample.labels[1].second], sample.value);
      } else if (is(FigureNamed("hdps_server_row_bytes"))) {
        AddTo(json["bytes"][sample.labels[1].second], sample.value);
      } else if (is(FigureNamed("hdps_server_rows_admitted_total"))) {
        AddTo(json["admitted"], sample.value);
      } else if (is(FigureNamed("hdps_server_rows_evicted_total"))) {
        AddTo(json["evicted"], sample.value);
      } else if (is(FigureNamed("hdps_server_rows_fetched_total"))) {
        AddTo(json["fetched"], sample.value);
      } else if (is(FigureNamed("hdps_server_keys_total"))) {
        AddTo(json["keys_pulled"], sample.value);
      }
    }
    tables.push_back(std::move(json));
  }
  return tables;
}

// How old the rows of pushes were: of each table that has been pushed to.
Json PushStalenessJson(const std::vector<Sample>& of_servers) {
  Json tables = Json::array();
  for (const Sample& sample : of_servers) {
    if (sample.figure != FigureNamed("hdps_server_push_staleness_clocks")) continue;
    const uint64_t pushes = CountOf(sample);
    if (pushes == 0) continue;
    tables.push_back({{"table", sample.labels.front().second},
                      {"mean", Number(sample.sum / static_cast<double>(pushes))},
                      {"counts", sample.buckets}});
  }
  return {{"bounds", kClockBounds}, {"tables", std::move(tables)}};
}

Json ServerJson(const JobPicture& picture, const MemberPicture& member) {
  const std::vector<Sample> samples = SamplesOfMember(picture, member);
  const auto resident =
      std::ranges::find(samples, FigureNamed("process_resident_memory_bytes"), &Sample::figure);
  double rows = 0, bytes = 0;
  for (const Sample& sample : samples) {
    if (sample.figure == FigureNamed("hdps_server_rows")) rows += sample.value;
    if (sample.figure == FigureNamed("hdps_server_row_bytes")) bytes += sample.value;
  }
  return {{"name", "server " + std::to_string(member.rank)},
          {"resident_bytes", resident == samples.end() ? Json() : Number(resident->value)},
          {"limit_bytes", FirstOf(samples, FigureNamed("hdps_server_memory_limit_bytes")).value},
          {"rows", rows},
          {"bytes", bytes}};
}

}  // namespace

std::string TimePanel(const JobPicture& picture) {
  Json stages = Json::array(), workers = Json::array();
  for (const size_t stage : ComputeStages()) stages.push_back(kStageLabels[stage]);
  stages.push_back("other");
  const Explanation explanation = ExplanationOf(picture);
  for (size_t m = 0; m < std::min(picture.members.size(), explanation.lines.size()); ++m) {
    const MemberPicture& member = picture.members[m];
    if (!member.worker) continue;
    const Explanation::Line& line = explanation.lines[m];
    Json seconds = Json::array();
    for (const double part : member.stage_seconds) seconds.push_back(Number(part));
    workers.push_back({{"name", line.place},
                       {"seconds", std::move(seconds)},
                       {"doing", line.state},
                       {"waits_for", line.waits_for},
                       {"for_seconds", static_cast<double>(line.for_ms) / 1000}});
  }
  return JsonText(Json{{"stages", std::move(stages)}, {"workers", std::move(workers)}});
}

std::string StragglersPanel(const JobPicture& picture) {
  Json workers = Json::array(), servers = Json::array();
  for (const MemberPicture& member : picture.members) {
    const FigureId figure = member.worker ? FigureNamed("hdps_worker_step_seconds")
                                          : FigureNamed("hdps_server_pull_seconds");
    const Sample times = FirstOf(SamplesOfMember(picture, member), figure);
    const bool told = !times.buckets.empty();
    const auto quantile = [&](double share) {
      return told ? Number(QuantileOf(times, share)) : Json();
    };
    Json json = {{"name", (member.worker ? "worker " : "server ") + std::to_string(member.rank)},
                 {"p50", quantile(0.5)},
                 {"p90", quantile(0.9)},
                 {"p99", quantile(0.99)},
                 {"count", told ? CountOf(times) : 0},
                 {"ratio", member.ratio > 0 ? Number(member.ratio) : Json()},
                 {"steps_over", member.slow_count},
                 {"straggler", member.straggler}};
    (member.worker ? workers : servers).push_back(std::move(json));
  }
  return JsonText(Json{{"workers", std::move(workers)}, {"servers", std::move(servers)}});
}

namespace {

Json HotShardsJson(const StatusReply& status) {
  Json shards = Json::array();
  for (const HotShard& shard : status.hot_shards) {
    shards.push_back({{"shard", shard.shard.value},
                      {"server", "server " + std::to_string(shard.server.value)},
                      {"busy", Number(shard.busy)},
                      {"rows_per_second", Number(shard.rows_per_second)},
                      {"bytes", shard.bytes}});
  }
  return shards;
}

}  // namespace

std::string RowsPanel(const JobPicture& picture) {
  const PictureFrame& frame = *picture.frame;
  const std::vector<Sample> of_servers =
      SamplesOf(frame.servers, SumOf(picture, false), frame.tables);
  const std::vector<Sample> of_workers =
      SamplesOf(frame.workers, SumOf(picture, true), frame.tables);
  const double lookups = FirstOf(of_workers, FigureNamed("hdps_worker_kept_lookups_total")).value;
  const double hits = FirstOf(of_workers, FigureNamed("hdps_worker_kept_hits_total")).value;
  Json servers = Json::array();
  for (const MemberPicture& member : picture.members) {
    if (!member.worker) servers.push_back(ServerJson(picture, member));
  }
  const auto total = [&](FigureId figure) { return FirstOf(of_servers, figure).value; };
  constexpr FigureId kDroppedSteps = FigureNamed("hdps_worker_dropped_steps_total");
  constexpr FigureId kDroppedExamples = FigureNamed("hdps_worker_dropped_examples_total");
  const Sample staleness = FirstOf(of_workers, FigureNamed("hdps_worker_staleness_clocks"));
  return JsonText(Json{{"tables", TablesJson(frame, of_servers)},
                       {"kept_hit_rate", lookups > 0 ? Number(hits / lookups) : Json()},
                       {"staleness", {{"bounds", kClockBounds}, {"counts", staleness.buckets}}},
                       {"push_staleness", PushStalenessJson(of_servers)},
                       {"pushes_repeated", total(FigureNamed("hdps_server_pushes_repeated_total"))},
                       {"pushes_too_old", total(FigureNamed("hdps_server_pushes_too_old_total"))},
                       {"steps_dropped", FirstOf(of_workers, kDroppedSteps).value},
                       {"examples_dropped", FirstOf(of_workers, kDroppedExamples).value},
                       {"servers", std::move(servers)},
                       {"busiest_over_mean", Number(picture.status->busiest_over_mean)},
                       {"hot_shards", HotShardsJson(*picture.status)}});
}

std::string FiguresPanel(const JobPicture& picture) {
  std::string text = "{\"members\":[";
  for (size_t m = 0; m < picture.members.size(); ++m) {
    const MemberPicture& member = picture.members[m];
    const MemberStatus& status = picture.status->members[m];
    std::string json =
        JsonText(Json{{"name", member.name},
                      {"role", member.worker ? "worker" : "server"},
                      {"rank", member.rank},
                      {"process", member.process},
                      {"state", member.state},
                      {"step", status.clock},
                      {"silent_seconds", static_cast<double>(status.silent_ms) / 1000}});
    json.pop_back();
    text += (m == 0 ? "" : ",") + json +
            ",\"figures\":" + FiguresJson(SamplesOfMember(picture, member)) + "}";
  }
  return text + "],\"scheduler\":{\"figures\":" + FiguresJson(picture.own) + "}}";
}

}  // namespace hdps
