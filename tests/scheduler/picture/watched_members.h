// Members of a made-up job whose heartbeats carry figures, and a watch over them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/file_system.h"
#include "common/protocol/membership_messages.h"
#include "common/telemetry/meters.h"
#include "scheduler/members/membership.h"
#include "scheduler/members/rendezvous.h"
#include "scheduler/picture/job_watch.h"

namespace hdps {

// Invariant: members 0 .. servers-1 are servers, the others workers; each counts with meters of its
// own.
struct WatchedMembers {
  static Job JobOfTwoTables() {
    Job job;
    job.name = "watched";
    job.cluster.heartbeat_ms = 500;
    for (const char* name : {"wide", "deep", "dense"}) {
      TableSpec table;
      table.name = name;
      table.dense = table.name == "dense";
      job.tables.push_back(table);
    }
    return job;
  }

  WatchedMembers(uint32_t servers, uint32_t workers)
      : membership(10'000), rendezvous({.num_servers = servers, .num_workers = workers}) {
    options.job = std::make_shared<const Job>(JobOfTwoTables());
    options.out = "out";
    options.pictures = std::make_shared<Published<JobPicture>>();
    View view;
    view.view = {1};
    for (uint32_t m = 0; m < servers + workers; ++m) {
      const bool server = m < servers;
      const Member member{PeerId{m + 1}, server ? m : m - servers, server ? "inproc://s" : ""};
      (server ? view.servers : view.workers).push_back(member);
      meters.push_back(std::make_unique<Meters>(
          FigureLayout(server ? FigureRole::kServer : FigureRole::kWorker, 2)));
    }
    membership.Enter(std::move(view), {}, 0);
    EXPECT_TRUE(files->MakeDirectories("out").ok());
    watch.emplace(options, *files);
  }

  // All members send a heartbeat.
  void Beat(TimeMs now) {
    ++beats;
    for (size_t m = 0; m < meters.size(); ++m) {
      Heartbeat heartbeat;
      heartbeat.view = {1};
      heartbeat.number = beats;
      heartbeat.clock = static_cast<Clock>(beats);
      heartbeat.examples = beats;
      heartbeat.readings = meters[m]->Read();
      membership.Heard({m + 1}, now);
      membership.OnHeartbeat({m + 1}, heartbeat, now);
    }
  }
  WatchedJob Now(TimeMs now) const {
    WatchedJob job{.members = &membership, .rendezvous = rendezvous};
    job.status.job = "watched";
    job.status.heartbeat_ms = 500;
    job.status.hot_shards = {{.shard = {3}, .server = {0}, .busy = 0.5},
                             {.shard = {7}, .server = {1}, .busy = 0.25}};
    job.status.busiest_over_mean = 1.25;
    membership.AddTo(&job.status, now);
    job.progress.clock = static_cast<Clock>(beats);
    job.progress.examples = job.examples = beats;
    return job;
  }
  std::shared_ptr<const JobPicture> Ask(TimeMs now) {
    return watch->Ask(now, [&] { return Now(now); });
  }

  std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  SchedulerOptions options;
  Membership membership;
  Rendezvous rendezvous;
  std::vector<std::unique_ptr<Meters>> meters;
  uint64_t beats = 0;
  std::optional<JobWatch> watch;
};

}  // namespace hdps
