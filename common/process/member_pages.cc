// Makes answers from the last copy that the member's loop has put out.
#include "common/process/member_pages.h"

#include <functional>
#include <string_view>
#include <utility>

#include "common/base/outside_text.h"
#include "common/job/tables/figure_tables.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/telemetry/figures_json.h"
#include "common/telemetry/prometheus_text.h"
#include "common/telemetry/samples.h"

namespace hdps {
namespace {

HttpAnswer Text(int status, std::string text) {
  return {.status = status,
          .type = "text/plain; charset=utf-8",
          .body = std::make_shared<const std::string>(std::move(text))};
}

// What all paths share.
struct Pages {
  MemberPagesOptions options;
  std::vector<std::string> tables;
  const MemberWatch& watch;
  MonotonicClock& clock;

  std::string_view role() const {
    return options.role == FigureRole::kServer ? "server" : "worker";
  }
  std::vector<Sample> Samples(const MemberCopy& copy) const {
    return SamplesOf(FigureLayout(options.role, tables.size()), copy.readings, tables);
  }

  HttpAnswer Metrics(const MemberCopy& copy) const {
    return {.type = std::string(kPrometheusType),
            .body = std::make_shared<const std::string>(PrometheusText(Samples(copy)))};
  }
  HttpAnswer Figures(const MemberCopy& copy) const {
    const std::string rank = copy.joined ? std::to_string(copy.rank) : "null";
    return {.body = std::make_shared<const std::string>(
                "{\"schema\":1,\"role\":\"" + std::string(role()) + "\",\"rank\":" + rank +
                ",\"figures\":" + FiguresJson(Samples(copy)) + "}")};
  }
  HttpAnswer Health(const MemberCopy& copy) const {
    constexpr int64_t kHeartbeats = 2;
    const int64_t age_ms = clock.NowMs() - copy.made_ms;
    if (age_ms <= kHeartbeats * options.job->cluster.heartbeat_ms) return Text(200, "ok\n");
    return Text(503, "the loop of this " + std::string(role()) + " has not turned for " +
                         std::to_string(age_ms) + " ms\n");
  }
  HttpAnswer Readiness(const MemberCopy& copy) const {
    if (copy.joined) return Text(200, "ok\n");
    return Text(503, "this " + std::string(role()) + " waits for the scheduler at " +
                         options.scheduler_address + " to say that everybody is here\n");
  }
  HttpAnswer Front(const MemberCopy& copy) const {
    const std::string name =
        std::string(role()) + (copy.joined ? " " + std::to_string(copy.rank) : "");
    return Text(200, "hdps " + name + " of job '" + EscapeUntrusted(options.job->name) +
                         "', whose scheduler is at " + options.scheduler_address +
                         ".\nThe page of the job is the scheduler's: the line 'watch at' of its "
                         "output names the address.\nHere are /metrics, /healthz, /readyz and "
                         "/api/v1/figures of this " +
                         std::string(role()) + ".\n");
  }
};

}  // namespace

std::vector<HttpPath> MemberPages(const MemberPagesOptions& options, const MemberWatch& watch,
                                  MonotonicClock& clock) {
  const auto pages =
      std::make_shared<const Pages>(Pages{options, FigureTables(*options.job), watch, clock});
  const auto path = [&pages](std::string name, bool open,
                             HttpAnswer (Pages::*answer)(const MemberCopy&) const) {
    return HttpPath{std::move(name), open, [pages, answer](const HttpRequest&) {
                      const std::shared_ptr<const MemberCopy> copy = pages->watch.Get();
                      if (copy == nullptr) return Text(503, "this process has just begun\n");
                      return ((*pages).*answer)(*copy);
                    }};
  };
  return {path("/", false, &Pages::Front), path("/metrics", false, &Pages::Metrics),
          path("/healthz", true, &Pages::Health), path("/readyz", true, &Pages::Readiness),
          path("/api/v1/figures", false, &Pages::Figures)};
}

}  // namespace hdps
