// Fixture for one phase: a job, members that send nothing by themselves, and the commands they get.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/platform/file_system.h"
#include "scheduler/members/membership.h"
#include "scheduler/phases/pending_save.h"
#include "scheduler/phases/phase.h"
#include "scheduler/phases/worker_facts.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "scheduler/plan/command_tracker.h"

namespace hdps {

struct Job;

// A cluster of two servers, 11 and 12, with two of four shards each, and two workers, 21 and 22.
class PhaseTest : public ::testing::Test {
 protected:
  static constexpr PeerId kServers[2] = {{11}, {12}}, kWorkers[2] = {{21}, {22}};

  explicit PhaseTest(const Job& job);
  PhaseTest();
  static Job JobOfPhases();  // Returns ScriptedJob().
  static View ViewOf(std::vector<ServerId> owners);

  // Each call returns the next phase; told() has the commands to members.
  Next Begin(Phase& phase);
  // Answers the last command of `from`.
  Next Done(Phase& phase, PeerId from, const CommandDone& done = {});
  bool Refuses(Phase& phase, PeerId from, Code code, const std::string& message);
  Next AllAnswered(Phase& phase);
  Next Tick(Phase& phase, TimeMs at);
  // Returns the commands since the last call: "21: train until 10, 22: train until 10".
  std::string told();
  // Sets the plan of a job at step 10, the end of its first epoch.
  void PlanBehindAnEpoch();

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  const std::shared_ptr<const Job> spec_;
  const std::string out_ = "out";
  Membership members_;
  CommandTracker tracker_{500};
  CheckpointCatalog checkpoints_;
  RunReport report_;
  std::vector<std::string> said_;
  WorkerFacts facts_;
  PendingSave pending_;
  const PhaseParts parts_;
  JobAtHand job_;
  TimeMs now_ = 1000;
  Orders orders_;  // Commands of all calls.

 private:
  size_t told_before_ = 0;
};

}  // namespace hdps
