// A decision about the members of a job, as a value.
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

// The state of the job, as far as changes of its members depend on it.
struct JobStand {
  Clock clock = 0;              // The step that the job has reached.
  std::string point_of_return;  // "step 300, checkpoint OUT/checkpoint/..."
  bool needs_restart = false;   // Rows were lost in transit to other servers.
  bool moving = false;          // Rows are in transit.
  bool quiet = false;           // All workers stand at one clock.
  bool saved = false;           // The newest checkpoint is of that clock.
  bool loads = false;           // It stands or loads: nothing is newer than the checkpoint.
  bool ends = false;            // It was told to stop, or no step is left.
  // Why a process that takes a lost worker's place cannot take up its step, so that all go back to
  // a checkpoint; empty: it can.
  std::string why_back = "the job was not training";
  bool takes_up = false;  // Such a process has not finished the steps that its place had begun.
};

struct MemberStep {
  enum class Do : uint8_t {
    kNothing,
    kGoBack,       // Enter `view`, and load the newest checkpoint.
    kReplace,      // Enter `view`; processes in lost workers' places take up their steps.
    kAskForQuiet,  // Come to one clock.
    kGoOn,         // Train on: no pause is needed any more.
    kChange,       // Move rows to where `view` has them, and enter it.
    kSave,         // Save a checkpoint at the common clock, and come back to it.
    kLetGo,        // `leavers` leave, and are lost.
    kEnd,
  };
  Do what = Do::kNothing;
  View view;
  std::vector<PeerId> leavers;    // kLetGo.
  bool unsaved = false;           // kLetGo: the steps since the newest checkpoint are lost.
  size_t num_lost = 0;            // kGoBack, kReplace: number of lost members that had not left.
  TimeMs stood_since = 0;         // kGoBack, kReplace: since when members have been missing.
  std::string because;            // kGoBack: why nobody is replaced in place; empty: not told.
  JobFailure end;                 // kEnd: how the job ends.
  std::string wait;               // Notice about who is waited for; empty: nobody.
  std::vector<std::string> gone;  // Notices about processes that came and went silent.

  static MemberStep End(int exit_status, std::string message) {
    MemberStep step;
    step.what = Do::kEnd;
    step.end = {exit_status, std::move(message)};
    return step;
  }
};

// The consequence of losing members at one moment.
struct AfterLoss {
  struct Lost {
    std::string name;
    TimeMs silent_ms = 0;
    std::string cause = {};  // Such as "its process has ended".
    bool left = false;       // It was told to leave, so its loss is no failure.
  };
  struct NewPrimary {
    ServerId group;
    std::string from, to;
  };
  std::vector<Lost> lost;
  std::vector<NewPrimary> promoted;
  // The view in which other holders of the lost rows take over at once; none: the job stands, or
  // waits only for the lost workers' replacements.
  std::optional<View> view;
  bool in_place = false;  // The job goes on, and replacements take up the lost workers' steps.
  std::vector<std::string> notices;
};

}  // namespace hdps
