// Tests which processes get a place, stand by, or are refused; and the wait for the first cluster.
#include "scheduler/members/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/scheduler/members/arrivals.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Stage = Admission::Stage;

class AdmissionTest : public ::testing::Test {
 protected:
  static ClusterSpec Spec() {
    ClusterSpec cluster;
    cluster.dead_after_ms = 1000;
    cluster.heartbeat_ms = 100;
    cluster.rendezvous_timeout_s = 30;
    return cluster;
  }
  Admission::Answer Join(uint64_t peer, Stage stage, TimeMs now, int32_t rank = -1) {
    return admission_.OnJoin({peer}, RequestOf(Role::kWorker, "w", rank), stage, now);
  }
  // Returns whether the process stands by because all places are taken.
  static bool StandsBy(const Admission::Answer& answer) {
    return answer.refused && answer.refused->stands_by;
  }
  const ClusterSpec cluster_ = Spec();
  Rendezvous rendezvous_{ClusterOf(1, 1)};
  Admission admission_{cluster_, rendezvous_, /*taken_is_final=*/false};
};

TEST_F(AdmissionTest, OneWhoHasAPlaceIsNewOnce) {
  EXPECT_TRUE(Join(20, Stage::kGathering, 0).newcomer);
  const Admission::Answer again = Join(20, Stage::kGathering, 0);
  EXPECT_FALSE(again.refused);
  EXPECT_FALSE(again.newcomer);
  EXPECT_EQ(again.line, "");
}

TEST_F(AdmissionTest, OneWhoFindsEveryPlaceTakenStandsByForAsLongAsALossGoesUnnoticed) {
  Join(20, Stage::kGathering, 0);
  const Admission::Answer first = Join(21, Stage::kGathering, 0);
  EXPECT_TRUE(StandsBy(first));
  EXPECT_THAT(first.line, HasSubstr("w stands by: "));
  EXPECT_THAT(admission_.standing_by(), ElementsAre(PeerId{21}));
  const Admission::Answer last = Join(21, Stage::kGathering, 1200);
  EXPECT_TRUE(StandsBy(last));
  EXPECT_EQ(last.line, "");  // It was reported before.
  const Admission::Answer refused = Join(21, Stage::kGathering, 1201);
  EXPECT_FALSE(StandsBy(refused));
  EXPECT_THAT(refused.line, HasSubstr("refused w: "));
  EXPECT_THAT(admission_.last_refusal(), HasSubstr("w was refused: "));
}

TEST_F(AdmissionTest, PatienceBeginsAnewWithAViewAndIsLongerByAStandstillOfThisProcess) {
  Join(20, Stage::kGathering, 0);
  Join(21, Stage::kGathering, 0);
  Join(21, Stage::kGathering, 1000);
  admission_.OnView(1000);
  EXPECT_TRUE(StandsBy(Join(21, Stage::kUnderWay, 2200)));
  admission_.ForgiveSilence(5000);
  EXPECT_TRUE(StandsBy(Join(21, Stage::kUnderWay, 7200)));
  EXPECT_FALSE(StandsBy(Join(21, Stage::kUnderWay, 7201)));
}

TEST_F(AdmissionTest, OnceTheJobHasBegunWhoAsksForARankWaitsForGood) {
  Join(20, Stage::kGathering, 0, 0);
  EXPECT_TRUE(StandsBy(Join(21, Stage::kUnderWay, 0, 0)));
  EXPECT_TRUE(StandsBy(Join(21, Stage::kUnderWay, 1000, 0)));
  EXPECT_TRUE(StandsBy(Join(21, Stage::kUnderWay, 2000, 0)));
  EXPECT_TRUE(StandsBy(Join(21, Stage::kEnding, 3000)));
  Admission final(cluster_, rendezvous_, /*taken_is_final=*/true);
  const JoinRequest request = RequestOf(Role::kWorker, "w", 0);
  EXPECT_TRUE(StandsBy(final.OnJoin({22}, request, Stage::kUnderWay, 0)));
  EXPECT_TRUE(StandsBy(final.OnJoin({22}, request, Stage::kUnderWay, 1000)));
  EXPECT_FALSE(StandsBy(final.OnJoin({22}, request, Stage::kUnderWay, 2000)));
}

TEST_F(AdmissionTest, BeforeItBeginsTwoWhoAskForOneRankAreAMistakeButAPlaceOfAnyRankIsNot) {
  const auto late = [&](int32_t rank) {
    Rendezvous rendezvous(ClusterOf(1, 1));
    Admission admission(cluster_, rendezvous, /*taken_is_final=*/false);
    admission.OnJoin({20}, RequestOf(Role::kWorker, "v", rank), Stage::kGathering, 0);
    const JoinRequest request = RequestOf(Role::kWorker, "w", 0);
    for (const TimeMs at : {0, 1200}) {
      EXPECT_TRUE(StandsBy(admission.OnJoin({21}, request, Stage::kGathering, at)));
    }
    return admission.OnJoin({21}, request, Stage::kGathering, 1201);
  };
  EXPECT_TRUE(StandsBy(late(-1)));
  EXPECT_FALSE(StandsBy(late(0)));
}

TEST_F(AdmissionTest, NoMoreThanSixtyFourStandByAndTheSilentMakeRoom) {
  Join(20, Stage::kGathering, 0);
  for (uint64_t i = 0; i < Admission::kStandingByMax; ++i) {
    EXPECT_TRUE(StandsBy(Join(100 + i, Stage::kGathering, 0)));
  }
  EXPECT_FALSE(StandsBy(Join(1000, Stage::kGathering, 0)));
  EXPECT_TRUE(StandsBy(Join(1000, Stage::kGathering, 1201)));
  EXPECT_THAT(admission_.standing_by(), ElementsAre(PeerId{1000}));
}

TEST_F(AdmissionTest, WhoGetsAPlaceStandsByNoMore) {
  Join(20, Stage::kGathering, 0);
  Join(21, Stage::kGathering, 0);
  rendezvous_.Vacate({20});
  EXPECT_TRUE(Join(21, Stage::kGathering, 1).newcomer);
  EXPECT_THAT(admission_.standing_by(), IsEmpty());
}

TEST_F(AdmissionTest, AMistakeIsRefusedAtOnce) {
  JoinRequest other = RequestOf(Role::kWorker, "w");
  other.job_digest = 1;
  const auto answer = admission_.OnJoin({21}, other, Stage::kUnderWay, 0);
  ASSERT_TRUE(answer.refused);
  EXPECT_FALSE(StandsBy(answer));
  EXPECT_THAT(answer.line, HasSubstr("refused w: "));
}

TEST_F(AdmissionTest, TheFirstClusterIsWaitedForAsLongAsTheJobSays) {
  EXPECT_FALSE(admission_.gathers_since());
  MemberStep step = admission_.Gather(5000);
  EXPECT_EQ(admission_.gathers_since(), 5000);
  EXPECT_EQ(step.what, MemberStep::Do::kNothing);
  EXPECT_EQ(step.wait, "waiting for 1 of 1 server and 1 of 1 worker; here: nobody");
  Join(20, Stage::kGathering, 5000);
  step = admission_.Gather(6001);
  EXPECT_THAT(step.gone,
              ElementsAre(HasSubstr("went silent before the cluster was complete; its place is")));
  EXPECT_EQ(admission_.Gather(34999).what, MemberStep::Do::kNothing);
  step = admission_.Gather(35000);
  ASSERT_EQ(step.what, MemberStep::Do::kEnd);
  EXPECT_EQ(step.end.exit_status, 3);
  EXPECT_THAT(step.end.message, HasSubstr("after 30 s the cluster is not complete: missing 1 of"));
}

}  // namespace
}  // namespace hdps
