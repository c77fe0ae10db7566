// The places in the code at which a process can be made to fail, by their names.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace hdps {

struct FailpointName {
  std::string_view name;
  bool can_fail = false;  // It lies where a Status is returned, so an error can come out of it.
};

// Where something changes hands: between two of them a death leaves another half behind. A name
// says whose it is, about what, and what has just happened.
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
    // Rows on their way to disk and back.
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
    {"scheduler.state.taken_over"},
    // A worker.
    {"worker.view.first"},
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

// The place of `name` in the list; a name that is not in it does not compile.
consteval size_t FailpointIndex(std::string_view name) {
  for (size_t i = 0; i < kFailpointNames.size(); ++i) {
    if (kFailpointNames[i].name == name) return i;
  }
  throw "this failpoint is not in kFailpointNames";
}

// The same where an error must be possible.
consteval size_t FailingPointIndex(std::string_view name) {
  const size_t index = FailpointIndex(name);
  if (!kFailpointNames[index].can_fail) throw "this failpoint is not said to return an error";
  return index;
}

}  // namespace hdps
