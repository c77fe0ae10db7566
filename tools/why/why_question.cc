// Asks for the status of a job, and looks at the address if there is no answer.
#include "tools/why/why_question.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tools/doctor/machine_facts.h"
#include "tools/scheduler_question.h"

namespace hdps {
namespace {

// The sum leaves a second for the closing of an unanswered connection, and one for a busy machine,
// within the promised five seconds.
constexpr int64_t kFirstMs = 2000, kApartMs = 1000, kSecondMs = 500;
constexpr int kProbeMs = 500;
constexpr int64_t kClosingMs = 1000, kBusyMs = 1000, kPromisedMs = 5000;
static_assert(kFirstMs + kProbeMs + kClosingMs + kBusyMs <= kPromisedMs);
static_assert(kFirstMs + kApartMs + kSecondMs + kBusyMs <= kPromisedMs);

Status SchedulerSilent(const SchedulerConnection& connection) {
  const std::string trouble = ReachError(connection.address(), connection.may_leave(), kProbeMs);
  if (!trouble.empty()) {
    return {Code::kUnavailable,
            "the scheduler is not there: " + trouble +
                ". Is it running, and is this the address in --address_file or in the first lines "
                "of its log? Without it members go on as far as they were told, and end after "
                "cluster.scheduler_timeout_s; started again on its address and --out it goes on"};
  }
  return {Code::kUnavailable,
          "the scheduler stands still: connections to " + connection.address() +
              " are taken, and nothing was answered for " + Duration(kFirstMs) +
              ". Look at its process: is it stopped (SIGSTOP, a debugger) or swapped out, or does "
              "its --out hang? Or that port is another program's. Members go on as far as they "
              "were told, and end after cluster.scheduler_timeout_s"};
}

}  // namespace

Result<WhyFacts> AskWhy(SchedulerConnection& connection) {
  const Result<StatusReply> first = connection.Ask<StatusReply>(StatusRequest(), kFirstMs);
  if (!first.ok() && first.status().code() == Code::kUnavailable) {
    return SchedulerSilent(connection);
  }
  HDPS_RETURN_IF_ERROR(first.status());
  // Two answers show whether the job moves.
  WhyFacts facts{.now = *first, .before = {}, .apart_ms = 0};
  const int64_t begin = connection.NowMs();
  connection.Pause(kApartMs);
  Result<StatusReply> second = connection.Ask<StatusReply>(StatusRequest(), kSecondMs);
  if (second.ok()) {
    facts.before = std::move(facts.now);
    facts.now = *std::move(second);
    facts.apart_ms = connection.NowMs() - begin;
  }
  return facts;
}

}  // namespace hdps
