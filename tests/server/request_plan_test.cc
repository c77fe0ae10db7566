// Tests what a request may ask for, and by which shards its sections are cut.
#include "server/request_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/spec/train_spec.h"
#include "common/platform/executor.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"
#include "server/row_service.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

using testing::HasSubstr;

// Rows of one float each may all come with their position: both together fit into a frame, or
// neither is sent.
TEST(RequestPlan, RowsAndTheirPositionsFitOneFrame) {
  const Job job = TestJob(Mode::kSync);
  const auto plan = [&](uint32_t num_keys) {
    return PlanRequest(job, {1}, RowShape::kWeights, {{{0}, num_keys, 1, {num_keys}}});
  };
  // One weight each, and in a push its key.
  constexpr uint64_t kKeysMax =
      (kFrameBytesMax - kEnvelopeBytesMax) / (sizeof(float) + sizeof(Key));
  EXPECT_TRUE(plan(kKeysMax).ok());
  const Status refused = plan(kKeysMax + 1).status();
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("a smaller train.batch_size or more servers"));
}

// A worker that does not know the view yet splits by the old shards, which is not a mistake, and
// its earlier key lists do not apply to the new shards.
TEST(RequestPlan, ShardsThatMovedMakeASplitStale) {
  const Job job = TestJob(Mode::kAsync);
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  ServerMeters meters(job, nullptr);
  RowService service(job, *executor, {100}, {}, nullptr, meters);
  View view;
  view.view = {1};
  view.workers = {{{1000}, 0, ""}};
  const std::vector<ShardId> first = {{0}, {1}}, second = {{1}};
  const auto ask = [&](const std::vector<ShardId>& shards, uint64_t list, bool with_keys) {
    PullRequest pull;
    pull.mode = PullMode::kRead;
    pull.list = list;
    if (with_keys) pull.tables = {{{0}, 0, 1, std::vector<uint32_t>(shards.size())}};
    Frame frame = EncodeMessage(pull);
    frame.header.view = view.view.value;
    service.OnRequest({1000}, frame);
    const std::vector<Outgoing> out = service.TakeOutgoing();
    PullReply reply;
    EXPECT_EQ(out.size(), 1u);
    EXPECT_TRUE(!out.empty() && DecodeMessage(out[0].frame, &reply).ok());
    return reply.code;
  };
  service.OnView(view, first);
  EXPECT_EQ(ask(second, 0, true), Code::kCorruption);
  EXPECT_EQ(ask(first, 7, true), Code::kOk);
  EXPECT_EQ(ask(first, 7, false), Code::kOk);
  view.view = {2};
  service.OnView(view, second);
  EXPECT_EQ(ask(first, 0, true), Code::kStaleView);
  EXPECT_EQ(ask(second, 7, false), Code::kNotFound);
  EXPECT_EQ(ask(second, 0, true), Code::kOk);
}

}  // namespace
}  // namespace hdps
