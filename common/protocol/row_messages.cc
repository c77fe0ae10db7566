// The layouts of the messages between worker and server, in the order of messages.fbs: rows by
// table, keys and gradients as sections.
#include <cmath>
#include <limits>

#include "common/base/dtype.h"
#include "common/protocol/message_codec.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/tally_layouts.h"

namespace hdps {
namespace {

constexpr Code kLastCode = Code::kCancelled;
constexpr DType kLastFormat = DType::kBf16;

// Requires a clock that can be incremented, because a server counts on from it.
void RequireClock(Clock clock, Rules& rules) {
  rules.Require(clock >= 0 && clock < std::numeric_limits<Clock>::max(),
                "clocks are not negative, and another follows");
}

// Requires ascending tables, each once, with counts that add up.
void RequireTables(const std::vector<TableKeys>& tables, Rules& rules) {
  for (size_t i = 0; i < tables.size(); ++i) {
    const TableKeys& table = tables[i];
    rules.Require(i == 0 || tables[i - 1].table < table.table, "tables ascend");
    if (!table.has_own_keys()) {
      const uint32_t of = table.keys_of - 1;
      rules.Require(of < i && tables[of].has_own_keys() && tables[of].num_keys == table.num_keys &&
                        table.shard_counts.empty(),
                    "keys_of names a table before it with as many keys of its own");
      continue;
    }
    if (table.shard_counts.empty()) continue;
    uint64_t sum = 0;
    for (const uint32_t count : table.shard_counts) sum += count;
    rules.Require(sum == table.num_keys, "shard_counts sum to num_keys");
  }
}

void RequireKeys(const std::vector<TableKeys>& tables, const Buffer& keys, Rules& rules) {
  RequireTables(tables, rules);
  uint64_t num_keys = 0;  // At most 2^24 tables of less than 2^32 keys each: no overflow.
  for (const TableKeys& table : tables) num_keys += table.has_own_keys() ? table.num_keys : 0;
  rules.Require(keys.size() % sizeof(Key) == 0 && keys.size() / sizeof(Key) == num_keys,
                "num_keys of tables with keys of their own sum to the length of keys");
}

void RequireRows(const std::vector<TableKeys>& tables, DType format, const Buffer& rows,
                 Rules& rules) {
  constexpr const char* kRule = "num_keys times row_floats sum to the length of the rows";
  uint64_t left = rows.size() / FloatBytes(format);
  for (const TableKeys& table : tables) {
    if (table.num_keys == 0) continue;
    rules.Require(table.row_floats > 0, "rows have floats");
    const uint64_t floats = uint64_t{table.num_keys} * table.row_floats;
    if (floats > left) return rules.Require(false, kRule);
    left -= floats;
  }
  rules.Require(left == 0 && rows.size() % FloatBytes(format) == 0, kRule);
}

}  // namespace

template <>
struct Layout<TableKeys> {
  static void Describe(auto& fields, auto& table) {
    fields.Number(table.table);
    fields.Number(table.num_keys);
    fields.Number(table.row_floats);
    fields.Numbers(table.shard_counts);
    fields.Number(table.keys_of);
  }
};

// ---- PullRequest, PullReply.

template <>
struct Layout<PullRequest> {
  using Table = wire::PullRequest;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.clock);
    fields.Enumerator(message.mode, PullMode::kRefresh);
    fields.Tables(message.tables);
    fields.Number(message.pushed);
    fields.Number(message.list);
    fields.Number(message.since);
    fields.Enumerator(message.format, kLastFormat);
    fields.Number(message.part);
    fields.Section(message.keys);
  }
  static void Check(const PullRequest& message, Rules& rules) {
    rules.Require(message.clock >= 0 && message.pushed >= 0 && message.since >= 0,
                  "clocks are not negative");
    rules.Require(message.mode != PullMode::kWithState || message.format == DType::kFp32,
                  "rows with their state have 32 bits");
    RequireKeys(message.tables, message.keys, rules);
  }
};
HDPS_MESSAGE(PullRequest);

template <>
struct Layout<PullReply> {
  using Table = wire::PullReply;
  static void Describe(auto& fields, auto& message) {
    fields.Enumerator(message.code, kLastCode);
    fields.Text(message.message);
    fields.Number(message.min_clock);
    fields.Tables(message.tables);
    fields.Enumerator(message.format, kLastFormat);
    fields.Number(message.mark);
    fields.Section(message.rows);
    fields.CopiedSection(message.positions);
  }
  static void Check(const PullReply& message, Rules& rules) {
    RequireTables(message.tables, rules);
    RequireRows(message.tables, message.format, message.rows, rules);
    uint64_t num_rows = 0;
    for (const TableKeys& table : message.tables) num_rows += table.num_keys;
    const size_t positions = message.positions.size();
    rules.Require(positions % sizeof(uint32_t) == 0 && positions / sizeof(uint32_t) <= num_rows,
                  "there are no more positions than rows");
  }
};
HDPS_MESSAGE(PullReply);

// ---- PushRequest, PushAck.

template <>
struct Layout<PartitionSpan> {
  static void Describe(auto& fields, auto& span) {
    fields.Number(span.partition);
    fields.Number(span.begin);
    fields.Number(span.end);
  }
  static void Check(const PartitionSpan& span, Rules& rules) {
    rules.Require(span.begin >= 0 && span.begin <= span.end, "offsets grow from 0 on");
  }
};

template <>
struct Layout<PushRequest> {
  using Table = wire::PushRequest;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.sequence);
    fields.Number(message.clock);
    fields.Number(message.num_examples);
    fields.Tables(message.tables);
    fields.Number(message.list);
    fields.Enumerator(message.format, kLastFormat);
    fields.Number(message.rate);
    fields.Number(message.epoch);
    fields.Number(message.part);
    fields.Number(message.scale_exponent);
    fields.Number(message.steps_before);
    fields.Number(message.rows_mark);
    fields.Number(message.dense_mark);
    fields.Table(message.counts);
    fields.Tables(message.messages);
    fields.Section(message.keys);
    fields.Section(message.gradients);
  }
  static void Check(const PushRequest& message, Rules& rules) {
    RequireClock(message.clock, rules);
    rules.Require(std::isfinite(message.rate) && message.rate >= 0, "rates are not negative");
    rules.Require(message.steps_before >= 0, "steps are not negative");
    rules.Require(
        message.scale_exponent >= -kScaleExponentMax && message.scale_exponent <= kScaleExponentMax,
        "scales are normal numbers");
    RequireKeys(message.tables, message.keys, rules);
    if (message.list != 0 && message.tables.empty()) {  // The number of keys is that of the list.
      rules.Require(message.gradients.size() % FloatBytes(message.format) == 0,
                    "gradients are whole numbers of their format");
    } else {
      RequireRows(message.tables, message.format, message.gradients, rules);
    }
  }
};
HDPS_MESSAGE(PushRequest);

template <>
struct Layout<PushAck> {
  using Table = wire::PushAck;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.sequence);
    fields.Enumerator(message.code, kLastCode);
    fields.Text(message.message);
    fields.Number(message.too_old);
  }
};
HDPS_MESSAGE(PushAck);

// ---- AdvanceRequest, AdvanceAck.

template <>
struct Layout<AdvanceRequest> {
  using Table = wire::AdvanceRequest;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.clock);
    for (auto& word : message.squares.words) fields.Number(word);
    fields.Number(message.asks);
  }
  static void Check(const AdvanceRequest& message, Rules& rules) {
    RequireClock(message.clock, rules);
  }
};
HDPS_MESSAGE(AdvanceRequest);

template <>
struct Layout<TopicStep> {
  static void Describe(auto& fields, auto& step) {
    fields.Number(step.clock);
    fields.Tables(step.messages);
  }
};

template <>
struct Layout<AdvanceAck> {
  using Table = wire::AdvanceAck;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.clock);
    fields.Table(message.counts);
    fields.Number(message.pushed);
    fields.Number(message.reached);
    fields.Tables(message.steps);
  }
  static void Check(const AdvanceAck& message, Rules& rules) {
    rules.Require(message.clock >= 0 && message.pushed >= 0 && message.reached >= 0,
                  "clocks are not negative");
  }
};
HDPS_MESSAGE(AdvanceAck);

// ---- SquaresRequest, SquaresReply.

template <>
struct Layout<SquaresRequest> {
  using Table = wire::SquaresRequest;
  static void Describe(auto& fields, auto& message) { fields.Number(message.clock); }
  static void Check(const SquaresRequest& message, Rules& rules) {
    RequireClock(message.clock, rules);
  }
};
HDPS_MESSAGE(SquaresRequest);

template <>
struct Layout<SquaresReply> {
  using Table = wire::SquaresReply;
  static void Describe(auto& fields, auto& message) {
    fields.Enumerator(message.code, kLastCode);
    fields.Text(message.message);
    for (auto& word : message.squares.words) fields.Number(word);
  }
};
HDPS_MESSAGE(SquaresReply);

// ---- StoreRequest, StoreAck.

template <>
struct Layout<StoreRequest> {
  using Table = wire::StoreRequest;
  static void Describe(auto& fields, auto& message) {
    fields.Tables(message.tables);
    fields.Number(message.sequence);
    fields.Number(message.clock);
    fields.Section(message.keys);
    fields.Section(message.rows);
  }
  static void Check(const StoreRequest& message, Rules& rules) {
    RequireClock(message.clock, rules);
    RequireKeys(message.tables, message.keys, rules);
    RequireRows(message.tables, DType::kFp32, message.rows, rules);
  }
};
HDPS_MESSAGE(StoreRequest);

template <>
struct Layout<StoreAck> {
  using Table = wire::StoreAck;
  static void Describe(auto& fields, auto& message) {
    fields.Enumerator(message.code, kLastCode);
    fields.Text(message.message);
  }
};
HDPS_MESSAGE(StoreAck);

// ---- Replicate, ReplicateAck.

template <>
struct Layout<Replicate> {
  using Table = wire::Replicate;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.number);
    fields.Number(message.worker);
    fields.Kind(message.request);
    fields.CopiedSection(message.envelope);
    fields.Section(message.keys);
    fields.Section(message.values);
  }
  static void Check(const Replicate& message, Rules& rules) {
    rules.Require(message.number > 0 && message.number < std::numeric_limits<uint64_t>::max(),
                  "changes are numbered from 1, and another follows");
    rules.Require(message.request == MessageKind::kPushRequest ||
                      message.request == MessageKind::kAdvanceRequest ||
                      message.request == MessageKind::kStoreRequest,
                  "a change is a push, an advance or a store");
  }
};
HDPS_MESSAGE(Replicate);

template <>
struct Layout<ReplicateAck> {
  using Table = wire::ReplicateAck;
  static void Describe(auto& fields, auto& message) {
    fields.Number(message.number);
    fields.Number(message.again);
  }
};
HDPS_MESSAGE(ReplicateAck);

// ---- Probe, ProbeAck.

template <>
struct Layout<Probe> {
  using Table = wire::Probe;
  static void Describe(auto&, auto&) {}
};
HDPS_MESSAGE(Probe);

template <>
struct Layout<ProbeAck> {
  using Table = wire::ProbeAck;
  static void Describe(auto&, auto&) {}
};
HDPS_MESSAGE(ProbeAck);

}  // namespace hdps
