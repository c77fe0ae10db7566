// Checks what a server or a worker answers about itself.
#include "common/process/member_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/telemetry/meters.h"
#include "tests/common/platform/settable_clock.h"

namespace hdps {
namespace {

using testing::HasSubstr;

class MemberPagesTest : public testing::Test {
 protected:
  MemberPagesTest() {
    Job job;
    job.name = "a\nb";
    job.cluster.heartbeat_ms = 500;
    job.tables.resize(2);
    job.tables[0].name = "ids";
    job.tables[1].name = "pieces";
    job.tables[1].dense = true;
    const MemberPagesOptions options{FigureRole::kServer, std::make_shared<const Job>(job),
                                     "tcp://a:1"};
    for (HttpPath& path : MemberPages(options, watch_, clock_)) {
      const std::string name = path.path;
      paths_.emplace(name, std::move(path));
    }
  }
  void PutOut(bool joined) {
    Meters meters(FigureLayout(FigureRole::kServer, 1));
    meters.Add(FigureNamed("hdps_server_keys_total"), 7);
    watch_.PutOut(clock_.now_ms, {0, joined, joined ? 3u : 0u, meters.Read()});
  }
  HttpAnswer Ask(const std::string& path) const { return paths_.at(path).answer({path, {}}); }
  std::string Body(const std::string& path) const { return *Ask(path).body; }

  SettableClock clock_;
  MemberWatch watch_;
  std::map<std::string, HttpPath> paths_;
};

TEST_F(MemberPagesTest, ProbesAloneNeedNoToken) {
  for (const auto& [name, path] : paths_) {
    EXPECT_EQ(path.open, name == "/healthz" || name == "/readyz") << name;
  }
}

TEST_F(MemberPagesTest, BeforeTheFirstTurnNothingIsKnown) {
  for (const auto& [name, path] : paths_) EXPECT_EQ(Ask(name).status, 503) << name;
}

TEST_F(MemberPagesTest, ALoopThatStandsStillIsNotHealthy) {
  PutOut(true);
  clock_.now_ms += 1000;
  EXPECT_EQ(Ask("/healthz").status, 200);
  clock_.now_ms += 1;
  EXPECT_EQ(Ask("/healthz").status, 503);
  EXPECT_THAT(Body("/healthz"), HasSubstr("has not turned for 1001 ms"));
  PutOut(true);
  EXPECT_EQ(Ask("/healthz").status, 200);
}

TEST_F(MemberPagesTest, AMemberIsReadyOnceItHasJoined) {
  PutOut(false);
  EXPECT_EQ(Ask("/readyz").status, 503);
  EXPECT_THAT(Body("/readyz"), HasSubstr("tcp://a:1"));
  EXPECT_TRUE(nlohmann::json::parse(Body("/api/v1/figures"))["rank"].is_null());
  PutOut(true);
  EXPECT_EQ(Ask("/readyz").status, 200);
}

TEST_F(MemberPagesTest, FiguresAreThoseOfTheLastCopy) {
  PutOut(true);
  EXPECT_THAT(Body("/metrics"), HasSubstr("hdps_server_keys_total{table=\"ids\"} 7\n"));
  const auto figures = nlohmann::json::parse(Body("/api/v1/figures"));
  EXPECT_EQ(figures["role"], "server");
  EXPECT_EQ(figures["rank"], 3);
  EXPECT_EQ(figures["figures"]["hdps_server_keys_total"]["ids"], 7);
  EXPECT_THAT(Body("/"), HasSubstr("server 3 of job 'a\\nb', whose scheduler is at tcp://a:1"));
}

TEST(MemberWatch, PutsOutAtMostTenCopiesASecond) {
  MemberWatch watch;
  int made = 0;
  for (int64_t now = 5000; now < 6000; now += 20) {
    watch.OnTurn(now, [&made] {
      ++made;
      return MemberCopy();
    });
  }
  EXPECT_EQ(made, 10);
  EXPECT_EQ(watch.Get()->made_ms, 5900);
}

}  // namespace
}  // namespace hdps
