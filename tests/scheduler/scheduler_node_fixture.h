// Fixture for tests of a whole scheduler: a scripted cluster with files in memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "common/job/job_spec.h"
#include "common/platform/file_system.h"
#include "scheduler/scheduler_node.h"
#include "tests/scheduler/scripted_cluster.h"

namespace hdps {

class SchedulerNodeTest : public ::testing::Test {
 protected:
  SchedulerNodeTest() { options_.job = ScriptedJob(); }

  void Start() { cluster_ = std::make_unique<ScriptedCluster>(options_, *files_); }
  SchedulerNode& node() { return *cluster_->node; }
  void ExpectDone() {
    ASSERT_TRUE(cluster_->RunToTheEnd()) << cluster_->transcript();
    EXPECT_EQ(node().exit_status(), 0) << node().exit_reason();
  }
  void ExpectFailed(int status) {
    ASSERT_TRUE(cluster_->RunToTheEnd()) << cluster_->transcript();
    EXPECT_EQ(node().exit_status(), status) << node().exit_reason();
  }
  Status Refused(uint32_t servers, uint32_t workers) {
    SchedulerOptions options;
    options.job = std::make_shared<const Job>(options_.job);
    options.out = "out";
    options.num_servers = servers;
    options.num_workers = workers;
    options.resume = options_.resume;
    return SchedulerNode::Make(options, {}, *files_).status();
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  ScriptedOptions options_;
  std::unique_ptr<ScriptedCluster> cluster_;
};

}  // namespace hdps
