// The names of all failpoints.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace hdps {

struct FailpointName {
  std::string_view name;
  bool can_fail = false;  // The function returns a Status, so an error can be injected.
};

// Failpoints lie between two steps that change state, so a crash at each leaves another partial
// state behind. A name says whose point it is, what it is about, and what has just happened.
inline constexpr auto kFailpointNames = std::to_array<FailpointName>({
    // Every member.
    {"member.join.sent"},
    {"member.view.taken"},
    {"member.command.accepted"},
    // A server, in the order of a job.
    {"server.view.entered"},
    {"server.command.begun"},
    {"server.command.before_answer"},
    {"server.load.begun", true},
    {"server.load.read", true},
    {"server.load.taken"},
    {"server.store.before_apply"},
    {"server.store.applied"},
    {"server.pull.before_answer"},
    {"server.push.judged"},
    {"server.push.recorded"},
    {"server.push.before_apply"},
    {"server.push.applied"},
    {"server.push.before_ack"},
    {"server.step.ended"},
    {"server.advance.taken"},
    {"server.save.begun", true},
    {"server.save.written", true},
    {"server.save.taken", true},
    {"server.save.before_write", true},
    {"server.save.in_file"},
    {"server.digest.begun", true},
    {"server.finish.taken"},
    // Rows on the way to disk and back.
    {"snapshot.write.begun", true},
    {"snapshot.before_rename", true},
    {"snapshot.renamed", true},
    {"snapshot.read.begun", true},
    {"spill.write", true},
    {"spill.read", true},
    {"file.before_rename", true},
    // The scheduler.
    {"checkpoint.prepared", true},
    {"checkpoint.before_manifest", true},
    {"checkpoint.manifest_written", true},
    {"checkpoint.half_removed", true},
    {"checkpoint.pruned"},
    {"scheduler.view.formed"},
    {"scheduler.view.sent"},
    {"scheduler.state.before_write", true},
    {"scheduler.state.written"},
    {"scheduler.state.forgotten"},
    {"scheduler.command.sent"},
    {"scheduler.command.answered"},
    {"scheduler.phase.quiet"},
    {"scheduler.phase.move_dense"},
    {"scheduler.phase.move_save"},
    {"scheduler.phase.move_servers"},
    {"scheduler.phase.move_workers"},
    {"scheduler.phase.load_servers"},
    {"scheduler.phase.load_workers"},
    {"scheduler.phase.init_dense"},
    {"scheduler.phase.train"},
    {"scheduler.phase.store_dense"},
    {"scheduler.phase.evaluate"},
    {"scheduler.phase.digest"},
    {"scheduler.phase.save"},
    {"scheduler.phase.finish"},
    {"scheduler.save.taken"},
    {"scheduler.save.in_files"},
    {"scheduler.summary.written"},
    {"scheduler.member.lost"},
    {"scheduler.job.went_back"},
    {"scheduler.worker.replaced"},
    {"scheduler.state.taken_over"},
    // A worker.
    {"worker.view.first"},
    {"worker.stand.known"},
    {"worker.command.begun"},
    {"worker.command.answered"},
    {"worker.command.dropped"},
    {"worker.dense.before_init", true},
    {"worker.dense.before_store", true},
    {"worker.load.taken"},
    {"worker.group.formed", true},
    {"worker.train.begun"},
    {"worker.step.pulled"},
    {"worker.step.computed"},
    {"worker.step.reduced"},
    {"worker.step.pushed"},
    {"worker.step.acked"},
    {"worker.step.ended"},
    {"worker.evaluate.begun", true},
});

// Returns the index of `name` in the list. A name that is not in the list does not compile.
consteval size_t FailpointIndex(std::string_view name) {
  for (size_t i = 0; i < kFailpointNames.size(); ++i) {
    if (kFailpointNames[i].name == name) return i;
  }
  throw "this failpoint is not in kFailpointNames";
}

// The same for a point that must be able to return an error.
consteval size_t FailingPointIndex(std::string_view name) {
  const size_t index = FailpointIndex(name);
  if (!kFailpointNames[index].can_fail) throw "this failpoint is not said to return an error";
  return index;
}

}  // namespace hdps
