// Chooses the panel by the path.
#include "scheduler/picture/picture_paths.h"

#include <charconv>
#include <functional>
#include <utility>

#include "common/telemetry/prometheus_text.h"
#include "scheduler/page/page_paths.h"
#include "scheduler/picture/job_picture.h"
#include "scheduler/picture/panels.h"
#include "scheduler/why/explanation.h"

namespace hdps {
namespace {

using Pictures = std::shared_ptr<Published<JobPicture>>;

HttpAnswer Text(int status, std::string text) {
  return {.status = status,
          .type = "text/plain; charset=utf-8",
          .body = std::make_shared<const std::string>(std::move(text))};
}

// Answers from the newest picture; while there is none, with 503.
HttpPath Path(const Pictures& pictures, std::string path, bool open,
              std::function<HttpAnswer(const JobPicture&, const HttpRequest&)> answer) {
  return {.path = std::move(path),
          .open = open,
          .answer = [pictures, answer = std::move(answer)](const HttpRequest& request) {
            const std::shared_ptr<const JobPicture> picture = pictures->Get();
            if (picture == nullptr) return Text(503, "the scheduler has not begun yet\n");
            return answer(*picture, request);
          }};
}

uint64_t SinceOf(const HttpRequest& request) {
  const std::string text = request.query("since");
  uint64_t since = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), since);
  return error == std::errc() && end == text.data() + text.size() ? since : 0;
}

HttpAnswer Health(const JobPicture& picture, TimeMs now) {
  constexpr TimeMs kHeartbeats = 2;
  const TimeMs age = now - picture.made_at;
  if (age <= kHeartbeats * static_cast<TimeMs>(picture.frame->heartbeat_ms)) {
    return Text(200, "ok\n");
  }
  return Text(503, "the scheduler's loop has not turned for " + std::to_string(age) + " ms\n");
}

HttpAnswer Readiness(const JobPicture& picture) {
  if (picture.ended) return Text(503, "the job is over: " + *picture.ended + "\n");
  const auto all = [](const MemberCounts& counts) { return counts.alive == counts.expected; };
  if (all(picture.servers) && all(picture.workers)) return Text(200, "ok\n");
  return Text(503, ExplanationOf(picture).sentence + "\n");
}

void Append(std::vector<Sample> more, std::vector<Sample>* samples) {
  for (Sample& sample : more) samples->push_back(std::move(sample));
}

}  // namespace

std::vector<Sample> SamplesToTell(const JobPicture& picture, MembersHere members) {
  std::vector<Sample> samples = picture.own;
  if (members == MembersHere::kNone) return samples;
  const PictureFrame& frame = *picture.frame;
  Append(SamplesOf(frame.workers, SumOf(picture, true), frame.tables), &samples);
  Append(SamplesOf(frame.servers, SumOf(picture, false), frame.tables), &samples);
  return samples;
}

std::vector<HttpPath> PicturePaths(std::shared_ptr<Published<JobPicture>> pictures,
                                   MonotonicClock& clock, MembersHere members) {
  std::vector<HttpPath> paths;
  for (const std::string_view panel : PanelNames()) {
    paths.push_back(Path(pictures, "/api/v1/" + std::string(panel), false,
                         [panel](const JobPicture& picture, const HttpRequest& request) {
                           return HttpAnswer{.body = std::make_shared<const std::string>(
                                                 *PanelJson(picture, panel, SinceOf(request)))};
                         }));
  }
  paths.push_back(
      Path(pictures, "/metrics", false, [members](const JobPicture& picture, const HttpRequest&) {
        return HttpAnswer{.type = std::string(kPrometheusType),
                          .body = std::make_shared<const std::string>(
                              PrometheusText(SamplesToTell(picture, members)))};
      }));
  paths.push_back(
      Path(pictures, "/healthz", true, [&clock](const JobPicture& picture, const HttpRequest&) {
        return Health(picture, clock.NowMs());
      }));
  paths.push_back(
      Path(pictures, "/readyz", true,
           [](const JobPicture& picture, const HttpRequest&) { return Readiness(picture); }));
  for (HttpPath& path : PagePaths([pictures] {
         const std::shared_ptr<const JobPicture> picture = pictures->Get();
         return picture == nullptr ? std::string() : WholeJson(*picture);
       })) {
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace hdps
