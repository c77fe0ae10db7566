// Makes servers' replies to the requests of a KeySplit.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "gtest/gtest.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/pull_plan.h"
#include "worker/exchange/push_plan.h"

namespace hdps {

template <typename Float>
std::vector<std::span<Float>> Spans(std::vector<std::vector<float>>& values) {
  return {values.begin(), values.end()};
}

// Returns the reply of `server` with these rows.
inline PullReply ReplyWith(const KeySplit& split, ServerId server, Buffer rows) {
  PullReply reply;
  reply.tables = split.at(server).tables;
  for (TableKeys& table : reply.tables) table.shard_counts.clear(), table.keys_of = 0;
  reply.rows = std::move(rows);
  return reply;
}

// Returns a plan that pulls all keys of the split.
inline PullPlan PullOf(const KeySplit& split) {
  PullPlan plan;
  plan.Pull(split, {});
  return plan;
}

// Returns the sections that carry the caller's values, [servers].
inline std::vector<Buffer> SectionsOf(const KeySplit& split,
                                      std::span<const std::span<const float>> values,
                                      DType format = DType::kFp32) {
  std::vector<Buffer> sections;
  for (const ServerRequest& request :
       PushPlan(split).Requests({.sequence = {0}, .format = format}, values)) {
    PushRequest push;
    EXPECT_TRUE(DecodeMessage(request.frame, &push).ok());
    sections.push_back(push.gradients);
  }
  return sections;
}

}  // namespace hdps
