// Tests the end of a run: digests of the servers, the summary, and confirmations.
#include "scheduler/phases/finish.h"

#include "common/job/job_spec.h"
#include "scheduler/phases/digest.h"
#include "tests/scheduler/phases/phase_fixture.h"

namespace hdps {
namespace {

using What = Next::What;

class FinishPhaseTest : public PhaseTest {
 protected:
  FinishPhaseTest() {
    job_.plan.emplace(*spec_, JobPosition(), JobPlan::Past());
    job_.plan->Stop();
    job_.plan->Trained(6, false);
  }
};

TEST_F(FinishPhaseTest, TheDigestIsTheSumOfTheServers) {
  job_.record.counts_before.admitted = 5;
  DigestPhase digest(parts_);
  EXPECT_EQ(Begin(digest).what, What::kWait);
  EXPECT_EQ(told(), "11: digest 6, 12: digest 6");
  CommandDone done;
  done.digest[0] = ~uint64_t{0};
  done.rows = 10;
  done.counts.admitted = 2;
  done.process_bytes = 7;
  Done(digest, kServers[0], done);
  done.process_bytes = 3;
  Done(digest, kServers[1], done);
  EXPECT_EQ(AllAnswered(digest).what, What::kDone);
  const RunSummary& summary = job_.record.summary;
  EXPECT_EQ(summary.digest[0], ~uint64_t{0} - 1);
  EXPECT_EQ(summary.rows, 20u);
  EXPECT_EQ(summary.row_counts.admitted, 9u);
  EXPECT_EQ(summary.server_bytes_max, 7u);
  EXPECT_EQ(job_.plan->next(), JobStep::kSave);
}

TEST_F(FinishPhaseTest, TheSummaryIsThereBeforeAnybodyHearsOfTheEnd) {
  job_.record.trained = {100, 1.0};
  job_.record.examples_before = 20;
  FinishPhase finish(parts_);
  EXPECT_EQ(Begin(finish).what, What::kWait);
  EXPECT_TRUE(files_->Exists("out/summary.json"));
  EXPECT_EQ(job_.record.summary.examples, 120u);
  EXPECT_EQ(job_.record.summary.stopped_at, 6);
  EXPECT_EQ(told(), "11: finish, 12: finish, 21: finish, 22: finish");
  EXPECT_TRUE(members_.released(kWorkers[1]));
  EXPECT_EQ(AllAnswered(finish).what, What::kOver);
}

TEST_F(FinishPhaseTest, WhoIsSilentIsNotWaitedFor) {
  FinishPhase finish(parts_);
  Begin(finish);
  Command command;
  tracker_.Send(kWorkers[0], command, now_);
  EXPECT_EQ(Tick(finish, now_ + 1999).what, What::kWait);
  EXPECT_EQ(Tick(finish, now_ + 1).what, What::kOver);
  EXPECT_EQ(orders_.dropped, std::vector<PeerId>{kWorkers[0]});
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0], "worker 0 (host) has not confirmed the end of the job");
}

TEST_F(FinishPhaseTest, WithoutASummaryTheJobFails) {
  // A folder blocks the file's name.
  ASSERT_TRUE(files_->MakeDirectories("out/summary.json").ok());
  FinishPhase finish(parts_);
  const Next next = Begin(finish);
  EXPECT_EQ(next.what, What::kFail);
  EXPECT_EQ(next.exit_status, 3);
  EXPECT_EQ(told(), "");
}

}  // namespace
}  // namespace hdps
