// Implements the fixture of phases.
#include "tests/scheduler/phases/phase_fixture.h"

#include <utility>

#include "tests/scheduler/scripted_cluster.h"

namespace hdps {

Job PhaseTest::JobOfPhases() { return ScriptedJob(); }

PhaseTest::PhaseTest() : PhaseTest(ScriptedJob()) {}

PhaseTest::PhaseTest(const Job& job)
    : spec_(std::make_shared<const Job>(job)),
      members_(1000),
      checkpoints_(*files_, "out/checkpoint", spec_, Resume::kAuto),
      report_(*files_, out_, *spec_, "", false),
      facts_(
          *spec_, [this](const std::string& line) { said_.push_back(line); },
          [this](const std::string& line) { said_.push_back("warning: " + line); }),
      pending_(checkpoints_, facts_, [this](const std::string& line) { said_.push_back(line); }),
      parts_{*spec_,
             out_,
             members_,
             tracker_,
             checkpoints_,
             report_,
             *files_,
             facts_,
             pending_,
             [this](const std::string& line) { said_.push_back(line); },
             [this](const std::string& line) { said_.push_back("warning: " + line); }},
      job_(*spec_) {
  EXPECT_TRUE(files_->MakeDirectories("out/checkpoint").ok());
  std::map<PeerId, MemberProcess> processes;
  for (const uint64_t peer : {11, 12, 21, 22}) processes[PeerId{peer}] = {"host", "process"};
  members_.Enter(ViewOf({{0}, {0}, {1}, {1}}), processes, now_);
}

View PhaseTest::ViewOf(std::vector<ServerId> owners) {
  View view;
  view.view = view.placed = {1};
  view.servers = {{kServers[0], 0, "tcp://a:1"}, {kServers[1], 1, "tcp://b:1"}};
  view.workers = {{kWorkers[0], 0, ""}, {kWorkers[1], 1, ""}};
  view.shards.owner = std::move(owners);
  return view;
}

Next PhaseTest::Begin(Phase& phase) { return phase.Begin({job_, orders_, now_}); }

Next PhaseTest::Done(Phase& phase, PeerId from, const CommandDone& done) {
  for (auto sent = orders_.sent.rbegin(); sent != orders_.sent.rend(); ++sent) {
    if (sent->to != from) continue;
    const Command command = sent->command;
    return phase.OnAnswer({from, command, done}, {job_, orders_, now_});
  }
  ADD_FAILURE() << from.value << " was told nothing";
  return Next::Wait();
}

bool PhaseTest::Refuses(Phase& phase, PeerId from, Code code, const std::string& message) {
  CommandDone done;
  done.code = code;
  done.message = message;
  for (const Orders::Sent& sent : orders_.sent) {
    if (sent.to == from) return phase.TakesRefusal({from, sent.command, done});
  }
  ADD_FAILURE() << from.value << " was told nothing";
  return false;
}

Next PhaseTest::AllAnswered(Phase& phase) { return phase.OnAllAnswered({job_, orders_, now_}); }

Next PhaseTest::Tick(Phase& phase, TimeMs at) {
  now_ = at;
  return phase.OnTick({job_, orders_, now_});
}

std::string PhaseTest::told() {
  std::string text;
  for (; told_before_ < orders_.sent.size(); ++told_before_) {
    const auto& [to, command] = orders_.sent[told_before_];
    text += (text.empty() ? "" : ", ") + std::to_string(to.value) + ": " +
            CommandKindName(command.command);
    if (command.until > 0) text += " " + std::to_string(command.until);
  }
  return text;
}

void PhaseTest::PlanBehindAnEpoch() {
  job_.plan.emplace(*spec_, JobPosition(), JobPlan::Past());
  job_.plan->Trained(10, /*end_of_epoch=*/true);
}

}  // namespace hdps
