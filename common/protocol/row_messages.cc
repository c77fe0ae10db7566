// Codec of the messages between worker and server: rows by table, keys and gradients as sections.
#include <limits>

#include "common/protocol/message_codec.h"
#include "common/protocol/messages.h"

namespace hdps {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using TableVector = flatbuffers::Vector<Offset<wire::TableKeys>>;

constexpr Code kLastCode = Code::kCancelled;
constexpr DType kLastFormat = DType::kBf16;
constexpr size_t kShardsMax = 1u << 16;

Offset<TableVector> PackTables(FlatBufferBuilder& builder, const std::vector<TableKeys>& tables) {
  std::vector<Offset<wire::TableKeys>> offsets;
  offsets.reserve(tables.size());
  for (const TableKeys& table : tables) {
    const auto shard_counts = builder.CreateVector(table.shard_counts);
    wire::TableKeysBuilder packed(builder);
    packed.add_table(table.table.value);
    packed.add_num_keys(table.num_keys);
    packed.add_row_floats(table.row_floats);
    packed.add_shard_counts(shard_counts);
    offsets.push_back(packed.Finish());
  }
  return builder.CreateVector(offsets);
}

// Ascending, each table once, and counts that add up.
std::vector<TableKeys> UnpackTables(const TableVector* packed, EnvelopeReader& reader) {
  std::vector<TableKeys> tables(reader.Count(packed));
  for (uint32_t i = 0; i < tables.size(); ++i) {
    const wire::TableKeys& from = *packed->Get(i);
    TableKeys& table = tables[i];
    table.table.value = from.table();
    table.num_keys = from.num_keys();
    table.row_floats = from.row_floats();
    table.shard_counts = reader.Numbers(from.shard_counts(), kShardsMax);
    reader.Require(i == 0 || tables[i - 1].table < table.table, "tables ascend");
    if (table.shard_counts.empty()) continue;
    uint64_t sum = 0;
    for (const uint32_t count : table.shard_counts) sum += count;
    reader.Require(sum == table.num_keys, "shard_counts sum to num_keys");
  }
  return tables;
}

// A server counts on from the clocks that it is told of.
void RequireClock(Clock clock, EnvelopeReader& reader) {
  reader.Require(clock >= 0 && clock < std::numeric_limits<Clock>::max(),
                 "clocks are not negative, and another follows");
}

void RequireKeys(const std::vector<TableKeys>& tables, const Buffer& keys, EnvelopeReader& reader) {
  uint64_t num_keys = 0;  // At most 2^24 tables of less than 2^32 keys each: no overflow.
  for (const TableKeys& table : tables) num_keys += table.num_keys;
  reader.Require(keys.size() % sizeof(Key) == 0 && keys.size() / sizeof(Key) == num_keys,
                 "num_keys sum to the length of keys");
}

void RequireRows(const std::vector<TableKeys>& tables, DType format, const Buffer& rows,
                 EnvelopeReader& reader) {
  constexpr const char* kRule = "num_keys times row_floats sum to the length of the rows";
  uint64_t left = rows.size() / FloatBytes(format);
  for (const TableKeys& table : tables) {
    if (table.num_keys == 0) continue;
    reader.Require(table.row_floats > 0, "rows have floats");
    const uint64_t floats = uint64_t{table.num_keys} * table.row_floats;
    if (floats > left) return reader.Require(false, kRule);
    left -= floats;
  }
  reader.Require(left == 0 && rows.size() % FloatBytes(format) == 0, kRule);
}

}  // namespace

// ---- PullRequest, PullReply --------------------------------------------------------------------

static Offset<wire::PullRequest> Pack(FlatBufferBuilder& builder, const PullRequest& message) {
  const auto tables = PackTables(builder, message.tables);
  wire::PullRequestBuilder packed(builder);
  packed.add_clock(message.clock);
  packed.add_mode(static_cast<uint8_t>(message.mode));
  packed.add_tables(tables);
  packed.add_pushed(message.pushed);
  packed.add_list(message.list);
  packed.add_since(message.since);
  packed.add_format(static_cast<uint8_t>(message.format));
  return packed.Finish();
}

static void Unpack(const wire::PullRequest& from, EnvelopeReader& reader, PullRequest* message) {
  message->clock = from.clock();
  message->mode = reader.Enumerator(from.mode(), PullMode::kRefresh);
  message->tables = UnpackTables(from.tables(), reader);
  message->keys = reader.Section(0);
  message->pushed = from.pushed();
  message->list = from.list();
  message->since = from.since();
  message->format = reader.Enumerator(from.format(), kLastFormat);
  reader.Require(message->clock >= 0 && message->pushed >= 0 && message->since >= 0,
                 "clocks are not negative");
  reader.Require(message->mode != PullMode::kWithState || message->format == DType::kFp32,
                 "rows with their state have 32 bits");
  RequireKeys(message->tables, message->keys, reader);
}

static std::vector<Buffer> SectionsOf(const PullRequest& message) { return {message.keys}; }

static Offset<wire::PullReply> Pack(FlatBufferBuilder& builder, const PullReply& message) {
  const auto text = PackText(builder, message.message);
  const auto tables = PackTables(builder, message.tables);
  wire::PullReplyBuilder packed(builder);
  packed.add_code(static_cast<uint8_t>(message.code));
  packed.add_message(text);
  packed.add_min_clock(message.min_clock);
  packed.add_tables(tables);
  packed.add_format(static_cast<uint8_t>(message.format));
  return packed.Finish();
}

static void Unpack(const wire::PullReply& from, EnvelopeReader& reader, PullReply* message) {
  message->code = reader.Enumerator(from.code(), kLastCode);
  message->message = reader.Text(from.message());
  message->min_clock = from.min_clock();
  message->tables = UnpackTables(from.tables(), reader);
  message->rows = reader.Section(0);
  // Copied: they become addresses, and whoever shares the memory of a section with this process
  // could change them after they were checked.
  message->positions = Buffer::CopyOf(reader.Section(1).bytes());
  message->format = reader.Enumerator(from.format(), kLastFormat);
  RequireRows(message->tables, message->format, message->rows, reader);
  uint64_t num_rows = 0;
  for (const TableKeys& table : message->tables) num_rows += table.num_keys;
  const size_t positions = message->positions.size();
  reader.Require(positions % sizeof(uint32_t) == 0 && positions / sizeof(uint32_t) <= num_rows,
                 "there are no more positions than rows");
}

static std::vector<Buffer> SectionsOf(const PullReply& message) {
  return {message.rows, message.positions};
}

// ---- PushRequest, PushAck ----------------------------------------------------------------------

static Offset<wire::PushRequest> Pack(FlatBufferBuilder& builder, const PushRequest& message) {
  const auto tables = PackTables(builder, message.tables);
  wire::PushRequestBuilder packed(builder);
  packed.add_sequence(message.sequence.value);
  packed.add_clock(message.clock);
  packed.add_num_examples(message.num_examples);
  packed.add_tables(tables);
  packed.add_list(message.list);
  packed.add_format(static_cast<uint8_t>(message.format));
  return packed.Finish();
}

static void Unpack(const wire::PushRequest& from, EnvelopeReader& reader, PushRequest* message) {
  message->sequence.value = from.sequence();
  message->clock = from.clock();
  message->num_examples = from.num_examples();
  message->tables = UnpackTables(from.tables(), reader);
  message->keys = reader.Section(0);
  message->gradients = reader.Section(1);
  message->list = from.list();
  message->format = reader.Enumerator(from.format(), kLastFormat);
  RequireClock(message->clock, reader);
  RequireKeys(message->tables, message->keys, reader);
  if (message->list != 0 && message->tables.empty()) {  // How many there are, the list says.
    reader.Require(message->gradients.size() % FloatBytes(message->format) == 0,
                   "gradients are whole numbers of their format");
  } else {
    RequireRows(message->tables, message->format, message->gradients, reader);
  }
}

static std::vector<Buffer> SectionsOf(const PushRequest& message) {
  return {message.keys, message.gradients};
}

static Offset<wire::PushAck> Pack(FlatBufferBuilder& builder, const PushAck& message) {
  const auto text = PackText(builder, message.message);
  wire::PushAckBuilder packed(builder);
  packed.add_sequence(message.sequence.value);
  packed.add_code(static_cast<uint8_t>(message.code));
  packed.add_message(text);
  return packed.Finish();
}

static void Unpack(const wire::PushAck& from, EnvelopeReader& reader, PushAck* message) {
  message->sequence.value = from.sequence();
  message->code = reader.Enumerator(from.code(), kLastCode);
  message->message = reader.Text(from.message());
}

// ---- AdvanceRequest, AdvanceAck ----------------------------------------------------------------

static Offset<wire::AdvanceRequest> Pack(FlatBufferBuilder& builder,
                                         const AdvanceRequest& message) {
  wire::AdvanceRequestBuilder packed(builder);
  packed.add_clock(message.clock);
  return packed.Finish();
}

static void Unpack(const wire::AdvanceRequest& from, EnvelopeReader& reader,
                   AdvanceRequest* message) {
  message->clock = from.clock();
  RequireClock(message->clock, reader);
}

static Offset<wire::AdvanceAck> Pack(FlatBufferBuilder& builder, const AdvanceAck& message) {
  wire::AdvanceAckBuilder packed(builder);
  packed.add_clock(message.clock);
  return packed.Finish();
}

static void Unpack(const wire::AdvanceAck& from, EnvelopeReader& reader, AdvanceAck* message) {
  message->clock = from.clock();
  reader.Require(message->clock >= 0, "clocks are not negative");
}

// ---- StoreRequest, StoreAck --------------------------------------------------------------------

static Offset<wire::StoreRequest> Pack(FlatBufferBuilder& builder, const StoreRequest& message) {
  const auto tables = PackTables(builder, message.tables);
  wire::StoreRequestBuilder packed(builder);
  packed.add_tables(tables);
  packed.add_sequence(message.sequence.value);
  packed.add_clock(message.clock);
  return packed.Finish();
}

static void Unpack(const wire::StoreRequest& from, EnvelopeReader& reader, StoreRequest* message) {
  message->tables = UnpackTables(from.tables(), reader);
  message->keys = reader.Section(0);
  message->rows = reader.Section(1);
  message->sequence.value = from.sequence();
  message->clock = from.clock();
  RequireClock(message->clock, reader);
  RequireKeys(message->tables, message->keys, reader);
  RequireRows(message->tables, DType::kFp32, message->rows, reader);
}

static std::vector<Buffer> SectionsOf(const StoreRequest& message) {
  return {message.keys, message.rows};
}

static Offset<wire::StoreAck> Pack(FlatBufferBuilder& builder, const StoreAck& message) {
  const auto text = PackText(builder, message.message);
  wire::StoreAckBuilder packed(builder);
  packed.add_code(static_cast<uint8_t>(message.code));
  packed.add_message(text);
  return packed.Finish();
}

static void Unpack(const wire::StoreAck& from, EnvelopeReader& reader, StoreAck* message) {
  message->code = reader.Enumerator(from.code(), kLastCode);
  message->message = reader.Text(from.message());
}

template Frame EncodeMessage(const PullRequest&);
template Frame EncodeMessage(const PullReply&);
template Frame EncodeMessage(const PushRequest&);
template Frame EncodeMessage(const PushAck&);
template Frame EncodeMessage(const AdvanceRequest&);
template Frame EncodeMessage(const AdvanceAck&);
template Frame EncodeMessage(const StoreRequest&);
template Frame EncodeMessage(const StoreAck&);
template Status DecodeMessage(const Frame&, PullRequest*);
template Status DecodeMessage(const Frame&, PullReply*);
template Status DecodeMessage(const Frame&, PushRequest*);
template Status DecodeMessage(const Frame&, PushAck*);
template Status DecodeMessage(const Frame&, AdvanceRequest*);
template Status DecodeMessage(const Frame&, AdvanceAck*);
template Status DecodeMessage(const Frame&, StoreRequest*);
template Status DecodeMessage(const Frame&, StoreAck*);

}  // namespace hdps
