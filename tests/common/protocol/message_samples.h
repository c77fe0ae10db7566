// Makes one message of each kind with every field set, and lists the fields of each kind.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "common/protocol/board_messages.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/manifest_parts.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/status_messages.h"
#include "common/protocol/trace/trace_messages.h"
#include "common/protocol/view.h"
#include "tests/common/protocol/predict_samples.h"
#include "tests/common/protocol/status_samples.h"

namespace hdps {

// These comparisons exist only in tests. Structured bindings name every field, so a new field that
// is missing here does not compile.
inline bool operator==(const Member& a, const Member& b) {
  return std::tie(a.peer, a.rank, a.address) == std::tie(b.peer, b.rank, b.address);
}
inline bool operator==(const GroupBackup& a, const GroupBackup& b) {
  return a.group == b.group && a.member == b.member;
}
inline bool operator==(const SavedFile& a, const SavedFile& b) {
  return std::tie(a.name, a.bytes, a.checksum, a.rows) ==
         std::tie(b.name, b.bytes, b.checksum, b.rows);
}
inline bool operator==(const SilentServer& a, const SilentServer& b) {
  return std::tie(a.peer, a.for_ms) == std::tie(b.peer, b.for_ms);
}
inline bool operator==(const TableKeys& a, const TableKeys& b) {
  return std::tie(a.table, a.num_keys, a.row_floats, a.shard_counts, a.keys_of) ==
         std::tie(b.table, b.num_keys, b.row_floats, b.shard_counts, b.keys_of);
}
inline bool operator==(const Buffer& a, const Buffer& b) {
  return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

namespace testing_samples {

inline Buffer KeysOf(std::vector<Key> keys) { return Buffer::CopyOf<Key>(keys); }
inline Buffer FloatsOf(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = 0.5f * static_cast<float>(i) - 1.0f;
  return Buffer::CopyOf<float>(values);
}
inline std::vector<TableKeys> TwoTables() {
  return {{{1}, 3, 2, {1, 0, 2}}, {{4}, 2, 3, {2, 0, 0}}};
}

inline Activity SomeActivity() {
  return {"pull", "part-3.gz", WaitReason::kMembers, 1200, {{{12}, 1100}, {{13}, 900}}};
}

inline auto Fields(const JoinRequest& m) {
  const auto& [a, b, c, d, e, f, g, h, records] = m;
  return std::tie(a, b, c, d, e, f, g, h, records);
}
inline auto Fields(const JoinRefused& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const View& m) {
  const auto& [a, b, c, d, e, f, g, reign] = m;
  return std::tie(a, b, c, d.owner, e, f, g, reign);
}
inline auto Fields(const Heartbeat& m) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, activity, finished, wants, readings, loads] = m;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, activity, finished, wants, readings, loads);
}
inline auto Fields(const HeartbeatAck& m) {
  const auto& [a, b, c, d, e] = m;
  return std::tie(a, b, c, d, e);
}
inline auto Fields(const Command& m) {
  // `view` is not encoded.
  const auto& [a, b, c, d, e, f, g, h, i, j, k, next, rate, init, taken, last, offsets, before,
               eval_set, reign, begun, view] = m;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, next, rate, init, taken, last, offsets, before,
                  eval_set, reign, begun);
}
inline auto Fields(const CommandDone& m) {
  const auto& [a, b, c, d, e, f, g, h, cache, collectives, tally, digest, j, k, rows, process, l, n,
               o, p, weights, groups, more, weight_sum, data_files, data_changes, q, r, s, figures,
               offsets, steps_again, examples_again] = m;
  return std::tie(a, b, c, d, e, f, g, h, cache, collectives, tally, digest[0], digest[1], j, k,
                  rows, process, l, n, o, p, weights, groups, more, weight_sum, data_files, q, r, s,
                  figures, offsets, steps_again, examples_again);
}
inline auto Fields(const ScaleRequest& m) {
  const auto& [a, b, c, d] = m;
  return std::tie(a, b, c, d);
}
inline auto Fields(const ScaleReply& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const JobRequest&) { return std::tuple<>(); }
inline auto Fields(const JobReply& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const RowPlacesRequest&) { return std::tuple<>(); }
inline auto Fields(const TracePart& m) {
  const auto& [a, b, c, d, e, f] = m;
  return std::tie(a, b, c, d, e, f.spans, f.words);
}
inline auto Fields(const TraceRequest& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const TraceReply& m) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k] = m;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k.spans, k.words);
}
inline auto Fields(const PanelRequest& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const PanelReply& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const RowPlacesReply& m) {
  const auto& [a, b, c, d, e] = m;
  return std::tie(a, b, c, d, e.owner);
}
inline auto Fields(const StopRequest& m) {
  const auto& [a] = m;
  return std::tie(a);
}
inline auto Fields(const LeaveRequest& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const Abort& m) {
  const auto& [a, b, c, d] = m;
  return std::tie(a, b, c, d);
}
inline auto Fields(const KvPut& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}
inline auto Fields(const KvGet& m) {
  const auto& [a] = m;
  return std::tie(a);
}
inline auto Fields(const KvValue& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c);
}
inline auto Fields(const StatusRequest&) { return std::tuple<>(); }
inline auto Fields(const PullRequest& m) {
  const auto& [a, b, c, d, e, f, g, h, part] = m;
  return std::tie(a, b, c, d, e, f, g, h, part);
}
inline auto Fields(const PullReply& m) {
  const auto& [a, b, c, d, e, f, g, mark] = m;
  return std::tie(a, b, c, d, e, f, g, mark);
}
inline auto Fields(const PushRequest& m) {
  const auto& [a, b, c, d, e, f, g, h, i, epoch, part, exponent, before, mark, dense_mark, counts,
               messages] = m;
  return std::tie(a, b, c, d, e, f, g, h, i, epoch, part, exponent, before, mark, dense_mark,
                  counts, messages);
}
inline auto Fields(const PushAck& m) {
  const auto& [a, b, c, too_old] = m;
  return std::tie(a, b, c, too_old);
}
inline auto Fields(const AdvanceRequest& m) {
  const auto& [a, b, asks] = m;
  return std::tie(a, b.words, asks);
}
inline auto Fields(const AdvanceAck& m) {
  const auto& [a, counts, pushed, reached, steps] = m;
  return std::tie(a, counts, pushed, reached, steps);
}
inline auto Fields(const SquaresRequest& m) {
  const auto& [a] = m;
  return std::tie(a);
}
inline auto Fields(const SquaresReply& m) {
  const auto& [a, b, c] = m;
  return std::tie(a, b, c.words);
}
inline auto Fields(const StoreRequest& m) {
  const auto& [a, b, c, d, e] = m;
  return std::tie(a, b, c, d, e);
}
inline auto Fields(const StoreAck& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}

inline auto Fields(const Replicate& m) {
  const auto& [a, b, c, d, e, f] = m;
  return std::tie(a, b, c, d, e, f);
}
inline auto Fields(const ReplicateAck& m) {
  const auto& [a, b] = m;
  return std::tie(a, b);
}

inline auto Fields(const Probe&) { return std::tuple<>(); }
inline auto Fields(const ProbeAck&) { return std::tuple<>(); }

inline View SampleView() {
  View view;
  view.view = {7};
  view.servers = {{{11}, 0, "tcp://127.0.0.1:1"}, {{12}, 1, "ipc:///tmp/x"}};
  view.workers = {{{21}, 0, ""}, {{22}, 1, ""}, {{23}, 2, ""}};
  view.shards.owner = {{0}, {1}, {1}, {0}};
  view.restarts = 3;
  view.placed = {7};
  view.backups = {{{0}, view.servers[1]}, {{1}, {{13}, 2, "tcp://127.0.0.1:3"}}};
  view.reign = 14;
  return view;
}

inline Heartbeat SampleHeartbeat() {
  Heartbeat heartbeat = {
      {5}, 6, 7, 8.5, 0.5, 9, {4, 3, 2, 1}, 21, 20, "no space", {{{12}, 3500}}, SomeActivity()};
  heartbeat.finished = true;
  heartbeat.wants_checkpoint = 30;
  heartbeat.readings = {7, 0, uint64_t{9} << 40};
  heartbeat.loads = {{{3}, uint64_t{1} << 50, 12, 4096}, {{31}, 7, 0, 0}};
  return heartbeat;
}

inline RoundCounts SampleCounts() { return {7, 0.5, 2, {17, -1, 3, 5, 4, 6}}; }

inline CommandDone SampleDone() {
  CommandDone done;
  done.id = {9};
  done.code = Code::kIoError;
  done.message = "no room";
  done.clock = 77;
  done.end_of_epoch = true;
  done.examples = 1234;
  done.loss_sum = 0.25;
  done.bad_rows = 3;
  done.cache = {40, 30, 20, 10};
  done.collectives = {9, 8, 7, 6, 5, 4, 3};
  done.digest[0] = ~uint64_t{0};
  done.digest[1] = 5;
  done.rows = 6;
  done.row_bytes = 7;
  done.counts = {11, 12, 13, 14, 15};
  done.process_bytes = 16;
  done.files = {{"shard_0", 100, 200, 300}, {"shard_1", 1, 2, 3}};
  done.taken = true;
  done.scores = FloatsOf(5);
  done.labels = FloatsOf(5);
  done.weights = FloatsOf(5);
  done.groups = KeysOf({1, 2, 3, 4, 5});
  done.more = true;
  done.weight_sum = 2.5;
  done.label_tally = {17, -1, 3, 0x8000000000000001u, 4, 5};
  done.data_files = {{100, ~uint64_t{0}}, {0, 1}};
  done.data_changes = "a.csv is gone";
  done.dense_parameters = 18;
  done.dense_rows = 19;
  done.arithmetic = "avx2 vectors";
  done.figures = {{"auc", 0.75}, {"hits_10", -2}};
  done.offsets = {{4, int64_t{1} << 40}};
  done.steps_again = 20;
  done.examples_again = 21;
  return done;
}

// Calls visit(message) with a sample of each kind between the scheduler and callers that are no
// members.
template <typename Visit>
void ForEachSampleOfGuests(const Visit& visit) {
  visit(StatusRequest{});
  visit(SampleStatus(SomeActivity()));
  visit(ScaleRequest{-1, true, 4, false});
  visit(ScaleReply{Code::kInvalidArgument, "no worker would be left"});
  visit(JobRequest{});
  visit(JobReply{Code::kUnavailable, "not told", KeysOf({123, 125})});
  visit(TracePart{3, 4, -5, 6, true, {KeysOf({1, 2}), KeysOf({3})}});
  visit(TraceRequest{3, 20, 7});
  visit(TraceReply{Code::kNotFound,
                   "gone",
                   true,
                   5,
                   25,
                   true,
                   "worker 1",
                   4,
                   -5,
                   6,
                   {KeysOf({1}), KeysOf({3})}});
  visit(PanelRequest{"health", 12});
  visit(PanelReply{Code::kInvalidArgument, "no such panel", KeysOf({123, 125})});
  visit(RowPlacesRequest{});
  visit(RowPlacesReply{
      Code::kUnavailable, "none yet", {7}, SampleView().servers, SampleView().shards});
}

// Calls visit(message) with a sample of every kind.
template <typename Visit>
void ForEachSample(const Visit& visit) {
  visit(JoinRequest{Role::kServer, 3, "tcp://127.0.0.1:5", 99, 2, 4, "host 12", "boot:ns:12:3",
                    true});
  visit(JoinRefused{2, "one too many", true});
  visit(SampleView());
  visit(SampleHeartbeat());
  visit(HeartbeatAck{{5}, 21, 22, {3, TracePhase::kRecord, 30, 50}, true});
  visit(Command{.id = {3},
                .command = CommandKind::kLoad,
                .until = 100,
                .epoch = 2,
                .epoch_start = 50,
                .path = "out/checkpoint",
                .shards = {{1}, {7}},
                .keep = true,
                .files = {{"shard_0", 100, 200, 300}},
                .since = 60,
                .next = true,
                .rate = 0.25,
                .init = true,
                .taken = {0, 4},
                .last_steps = {0, 90},
                .offsets = {{0, 7}, {3, int64_t{1} << 40}},
                .steps_before = 70,
                .eval_set = "late",
                .reign = 12,
                .begun = true,
                .view = {}});
  visit(SampleDone());
  visit(StopRequest{"terminated"});
  visit(Abort{3, "server 1 is gone", true, 13});
  visit(KvPut{"gloo/0", std::string("\0\1\2", 3)});
  visit(KvGet{"gloo/0"});
  visit(KvValue{"gloo/0", true, "value"});
  ForEachSampleOfGuests(visit);
  visit(PullRequest{8, PullMode::kRefresh, TwoTables(), KeysOf({1, 2, 3, 4, 5}), 6, 17, 3,
                    DType::kBf16, 4});
  visit(PullReply{Code::kStaleView, "view 3", 4, TwoTables(), FloatsOf(12),
                  Buffer::CopyOf<uint32_t>(std::vector<uint32_t>{0, 2, 1}), DType::kFp32, 23});
  PushRequest push{{6},          7,    8, TwoTables(), KeysOf({1, 2, 3, 4, 5}), FloatsOf(6), 18,
                   DType::kFp16, 0.25, 3};
  push.part = 2, push.scale_exponent = -9, push.steps_before = 40;
  push.rows_mark = 21, push.dense_mark = 22;
  push.counts = SampleCounts();
  push.messages = {{0, 7, 9}, {3, 1, int64_t{1} << 40}};
  visit(push);
  visit(PushAck{{6}, Code::kResourceExhausted, "full", true});
  visit(AdvanceRequest{12, {{1, 2, 3, 4}}, true});
  visit(AdvanceAck{13, SampleCounts(), 14, 15, {{12, {{0, 5, 7}}}, {13, {{0, 7, 9}, {3, 1, 1}}}}});
  visit(StoreRequest{TwoTables(), KeysOf({1, 2, 3, 4, 5}), FloatsOf(12), {4}, 9});
  visit(StoreAck{Code::kInvalidArgument, "no such table"});
  visit(Replicate{5, {21}, MessageKind::kStoreRequest, KeysOf({9}), KeysOf({1, 2}), FloatsOf(3)});
  visit(ReplicateAck{6, true});
  visit(Probe{});
  visit(ProbeAck{});
  visit(SquaresRequest{14});
  visit(SquaresReply{Code::kUnavailable, "soon", {{5, 6, 7, 8}}});
  visit(SamplePredict());
  visit(SampleScores());
  visit(LeaveRequest{"worker was told to leave", true});
}

}  // namespace testing_samples
}  // namespace hdps
