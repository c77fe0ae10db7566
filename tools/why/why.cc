// Implements hdps why: tells which members of a running job wait for which, and the cause.
#include <gflags/gflags.h>

#include <memory>
#include <string>

#include "common/process/terminal.h"
#include "scheduler/why/explanation.h"
#include "scheduler/why/why_facts.h"
#include "tools/commands.h"
#include "tools/scheduler_flags.h"
#include "tools/why/why_question.h"

DECLARE_bool(json);

namespace hdps {
namespace {

Status Run() {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SchedulerConnection> connection,
                        OpenScheduler({KeyRole::kReader, KeyRole::kAdmin}));
  HDPS_ASSIGN_OR_RETURN(const WhyFacts facts, AskWhy(*connection));
  const Explanation explanation = Explain(facts);
  const std::string text =
      FLAGS_json ? ToJson(facts.now, explanation) : ToText(facts.now, explanation);
  PrintOutText(text);
  return {};
}

}  // namespace

Subcommand WhyCommand() {
  return {"why",
          "say what a running job waits for",
          "hdps why --scheduler=ADDRESS [--keys=DIR] [--json]\n"
          "Says in a sentence which member the job waits for, since when and in what, or\n"
          "that it makes steps. Below it are each member's step, state, the member it waits\n"
          "for, its last order and its last sign of life. Answers within five seconds. Ends\n"
          "with status 3 when the scheduler cannot be reached.",
          {"scheduler", "elect_file", "keys", "insecure", "json"},
          Run};
}

}  // namespace hdps
