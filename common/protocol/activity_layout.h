// An Activity field by field as in messages.fbs, for the messages that carry one.
#pragma once

#include "common/protocol/message_codec.h"

namespace hdps {

template <>
struct Layout<Awaited> {
  static void Describe(auto& fields, auto& awaited) {
    fields.Number(awaited.peer);
    fields.Number(awaited.for_ms);
  }
};

template <>
struct Layout<Activity> {
  static void Describe(auto& fields, auto& activity) {
    fields.Text(activity.stage);
    fields.Text(activity.subject);
    fields.Enumerator(activity.hold, Hold::kOrders);
    fields.Number(activity.for_ms);
    fields.Tables(activity.awaited);
  }
  static void Check(const Activity& activity, Rules& rules) {
    rules.Require(activity.awaited.size() <= kAwaitedMax, "a member names few that it waits for");
  }
};

}  // namespace hdps
