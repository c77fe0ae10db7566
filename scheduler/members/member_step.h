// What a job is to do about its members, as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/net/node.h"
#include "common/protocol/view.h"
#include "scheduler/members/job_failure.h"

namespace hdps {

// Where the job stands, as far as a change of its members depends on it.
struct JobStand {
  Clock clock = 0;              // It has come to this step.
  std::string point_of_return;  // "step 300, checkpoint OUT/checkpoint/..."
  bool needs_restart = false;   // Rows were lost on their way to other servers.
  bool moving = false;          // Rows are on their way.
  bool quiet = false;           // All workers stand at one clock.
};

struct MemberStep {
  enum class Do : uint8_t {
    kNothing,
    kGoBack,       // Enter `view`, and load the newest checkpoint.
    kAskForQuiet,  // Come to one clock.
    kGoOn,         // Train on: nobody has to stand still any more.
    kChange,       // Take rows to where `view` has them, and enter it.
    kEnd,
  };
  Do what = Do::kNothing;
  View view;
  size_t num_lost = 0;            // kGoBack: so many members,
  TimeMs stood_since = 0;         // and since when the job stands for them.
  JobFailure end;                 // kEnd: with what.
  std::string wait;               // Who is waited for, while that lasts; for people, now and then.
  std::vector<std::string> gone;  // Lines about those who came and went silent.

  static MemberStep End(int exit_status, std::string message) {
    MemberStep step;
    step.what = Do::kEnd;
    step.end = {exit_status, std::move(message)};
    return step;
  }
};

// What the loss of members at one moment comes to.
struct AfterLoss {
  struct Lost {
    std::string name;
    TimeMs silent_ms = 0;
  };
  struct NewPrimary {
    ServerId group;
    std::string from, to;
  };
  std::vector<Lost> lost;
  std::vector<NewPrimary> promoted;
  // Others that hold the rows of the lost ones go on with them at once; none: the job stands.
  std::optional<View> view;
  std::vector<std::string> notices;
};

}  // namespace hdps
