// The layouts of the messages of status_messages.h, in the order of messages.fbs.
#include "common/protocol/status_messages.h"
#include "common/protocol/message_codec.h"

namespace hdps {

template <>
struct Layout<StatusRequest> {
  using Table = wire::StatusRequest;
  static void Describe(auto&, auto&) {}
};
HDPS_MESSAGE(StatusRequest);

template <>
struct Layout<MemberStatus> {
  static void Describe(auto& fields, auto& member) {
    fields.Text(member.name);
    fields.Number(member.clock);
    fields.Number(member.silent_ms);
    fields.Number(member.number);
    fields.Table(member.activity);
    fields.Text(member.trouble);
    fields.Text(member.pending_command);
    fields.Number(member.pending_ms);
    fields.Number(member.deaf);
  }
};

template <>
struct Layout<HotShard> {
  static void Describe(auto& fields, auto& shard) {
    fields.Number(shard.shard);
    fields.Number(shard.server);
    fields.Number(shard.busy);
    fields.Number(shard.rows_per_second);
    fields.Number(shard.bytes);
  }
};

template <>
struct Layout<StatusReply> {
  using Table = wire::StatusReply;
  static void Describe(auto& fields, auto& message) {
    fields.Text(message.job);
    fields.Text(message.state);
    fields.Number(message.view);
    fields.Number(message.clock);
    fields.Tables(message.members);
    fields.Number(message.heartbeat_ms);
    fields.Enumerator(message.want, Want::kCopies);
    fields.Text(message.missing);
    fields.Text(message.reason);
    fields.Number(message.missing_ms);
    fields.Number(message.patience_ms);
    fields.Tables(message.hot_shards);
    fields.Number(message.busiest_over_mean);
  }
};
HDPS_MESSAGE(StatusReply);

// ---- ScaleRequest, ScaleReply.

template <>
struct Layout<ScaleRequest> {
  using Table = wire::ScaleRequest;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.servers);
    fields.Number(message.servers_relative);
    fields.Number(message.workers);
    fields.Number(message.workers_relative);
  }
};
HDPS_MESSAGE(ScaleRequest);

template <>
struct Layout<ScaleReply> {
  using Table = wire::ScaleReply;
  static void Describe(auto& fields, auto& message) {
    fields.Enumerator(message.code, Code::kCancelled);
    fields.Text(message.message);
  }
};
HDPS_MESSAGE(ScaleReply);

// ---- JobRequest, JobReply.

template <>
struct Layout<JobRequest> {
  using Table = wire::JobRequest;
  static void Describe(auto&, auto&) {}
};
HDPS_MESSAGE(JobRequest);

template <>
struct Layout<JobReply> {
  using Table = wire::JobReply;
  static void Describe(auto& fields, auto& message) {
    fields.Enumerator(message.code, Code::kCancelled);
    fields.Text(message.message);
    fields.CopiedSection(message.text);
  }
};
HDPS_MESSAGE(JobReply);

// ---- PanelRequest, PanelReply.

template <>
struct Layout<PanelRequest> {
  using Table = wire::PanelRequest;
  static void Describe(auto& fields, auto& message) {
    fields.Text(message.panel);
    fields.Number(message.since);
  }
};
HDPS_MESSAGE(PanelRequest);

template <>
struct Layout<PanelReply> {
  using Table = wire::PanelReply;
  static void Describe(auto& fields, auto& message) {
    fields.Enumerator(message.code, Code::kCancelled);
    fields.Text(message.message);
    fields.CopiedSection(message.text);
  }
};
HDPS_MESSAGE(PanelReply);

}  // namespace hdps
