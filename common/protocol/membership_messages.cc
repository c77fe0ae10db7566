// Codec of the messages between the scheduler and its members.
#include "common/protocol/message_codec.h"
#include "common/protocol/messages.h"

namespace hdps {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using MemberVector = flatbuffers::Vector<Offset<wire::Member>>;

constexpr size_t kShardsMax = 1u << 16;
constexpr int32_t kExitStatusMax = 255;

Offset<MemberVector> PackMembers(FlatBufferBuilder& builder, const std::vector<Member>& members) {
  std::vector<Offset<wire::Member>> offsets;
  offsets.reserve(members.size());
  for (const Member& member : members) {
    const auto address = PackName(builder, member.address);
    wire::MemberBuilder packed(builder);
    packed.add_peer(member.peer.value);
    packed.add_rank(member.rank);
    packed.add_address(address);
    offsets.push_back(packed.Finish());
  }
  return builder.CreateVector(offsets);
}

std::vector<Member> UnpackMembers(const MemberVector* packed, EnvelopeReader& reader) {
  std::vector<Member> members(reader.Count(packed));
  for (uint32_t i = 0; i < members.size(); ++i) {
    const wire::Member& from = *packed->Get(i);
    members[i].peer.value = from.peer();
    members[i].rank = from.rank();
    members[i].address = reader.Text(from.address());
    reader.Require(members[i].rank == i, "ranks are 0..n-1, in order");
  }
  return members;
}

// A power of two of shards, each with an owner among the servers; none only where no server is.
void RequireShards(const View& view, EnvelopeReader& reader) {
  const std::vector<ServerId>& owner = view.shards.owner;
  if (view.servers.empty() && owner.empty()) return;
  reader.Require(!owner.empty() && (owner.size() & (owner.size() - 1)) == 0,
                 "the number of shards is a power of two");
  for (const ServerId server : owner) {
    reader.Require(server.value < view.servers.size(), "owners of shards are servers");
  }
}

int32_t UnpackExitStatus(int32_t exit_status, EnvelopeReader& reader) {
  reader.Require(exit_status >= 0 && exit_status <= kExitStatusMax, "exit statuses are 0..255");
  return exit_status;
}

}  // namespace

// ---- JoinRequest, JoinRefused, View, Heartbeat, HeartbeatAck -----------------------------------

static Offset<wire::JoinRequest> Pack(FlatBufferBuilder& builder, const JoinRequest& message) {
  const auto address = PackName(builder, message.address);
  const auto host = PackText(builder, message.host);
  wire::JoinRequestBuilder packed(builder);
  packed.add_role(static_cast<uint8_t>(message.role));
  packed.add_rank(message.rank);
  packed.add_address(address);
  packed.add_job_digest(message.job_digest);
  packed.add_num_servers(message.num_servers);
  packed.add_num_workers(message.num_workers);
  packed.add_host(host);
  return packed.Finish();
}

static void Unpack(const wire::JoinRequest& from, EnvelopeReader& reader, JoinRequest* message) {
  message->role = reader.Enumerator(from.role(), Role::kWorker);
  message->rank = from.rank();
  message->address = reader.Text(from.address());
  message->job_digest = from.job_digest();
  message->num_servers = from.num_servers();
  message->num_workers = from.num_workers();
  message->host = reader.Text(from.host());
  reader.Require(message->role != Role::kScheduler, "servers and workers join");
  reader.Require(message->rank >= -1, "a rank is -1 or more");
}

static Offset<wire::JoinRefused> Pack(FlatBufferBuilder& builder, const JoinRefused& message) {
  const auto text = PackText(builder, message.message);
  wire::JoinRefusedBuilder packed(builder);
  packed.add_exit_status(message.exit_status);
  packed.add_message(text);
  return packed.Finish();
}

static void Unpack(const wire::JoinRefused& from, EnvelopeReader& reader, JoinRefused* message) {
  message->exit_status = UnpackExitStatus(from.exit_status(), reader);
  message->message = reader.Text(from.message());
}

static Offset<wire::View> Pack(FlatBufferBuilder& builder, const View& message) {
  const auto servers = PackMembers(builder, message.servers);
  const auto workers = PackMembers(builder, message.workers);
  std::vector<uint32_t> owner;
  owner.reserve(message.shards.owner.size());
  for (const ServerId server : message.shards.owner) owner.push_back(server.value);
  const auto shard_owner = builder.CreateVector(owner);
  wire::ViewBuilder packed(builder);
  packed.add_view(message.view.value);
  packed.add_servers(servers);
  packed.add_workers(workers);
  packed.add_shard_owner(shard_owner);
  return packed.Finish();
}

static void Unpack(const wire::View& from, EnvelopeReader& reader, View* message) {
  message->view.value = from.view();
  message->servers = UnpackMembers(from.servers(), reader);
  message->workers = UnpackMembers(from.workers(), reader);
  message->shards.owner.clear();
  for (const uint32_t server : reader.Numbers(from.shard_owner(), kShardsMax)) {
    message->shards.owner.push_back({server});
  }
  RequireShards(*message, reader);
}

static Offset<wire::CacheTally> PackTally(FlatBufferBuilder& builder, const CacheTally& tally) {
  if (tally == CacheTally()) return {};
  return wire::CreateCacheTally(builder, tally.lookups, tally.hits, tally.swaps, tally.bytes);
}

static CacheTally UnpackTally(const wire::CacheTally* from) {
  if (from == nullptr) return {};
  return {from->lookups(), from->hits(), from->swaps(), from->bytes()};
}

static Offset<wire::LabelTally> PackLabels(FlatBufferBuilder& builder, const LabelTally& tally) {
  if (tally.count == 0) return {};
  return wire::CreateLabelTally(builder, tally.count, tally.least, tally.largest, tally.texts);
}

static LabelTally UnpackLabels(const wire::LabelTally* from) {
  if (from == nullptr) return {};
  return {from->count(), from->least(), from->largest(), from->texts()};
}

static Offset<wire::Heartbeat> Pack(FlatBufferBuilder& builder, const Heartbeat& message) {
  const auto cache = PackTally(builder, message.cache);
  wire::HeartbeatBuilder packed(builder);
  packed.add_view(message.view.value);
  packed.add_clock(message.clock);
  packed.add_examples(message.examples);
  packed.add_loss_sum(message.loss_sum);
  packed.add_epoch_progress(message.epoch_progress);
  packed.add_staleness_max(message.staleness_max);
  packed.add_cache(cache);
  return packed.Finish();
}

static void Unpack(const wire::Heartbeat& from, EnvelopeReader& reader, Heartbeat* message) {
  message->view.value = from.view();
  message->clock = from.clock();
  message->examples = from.examples();
  message->loss_sum = from.loss_sum();
  message->epoch_progress = from.epoch_progress();
  message->staleness_max = from.staleness_max();
  message->cache = UnpackTally(from.cache());
  reader.Require(message->clock >= 0, "clocks are not negative");
}

static Offset<wire::HeartbeatAck> Pack(FlatBufferBuilder& builder, const HeartbeatAck& message) {
  wire::HeartbeatAckBuilder packed(builder);
  packed.add_view(message.view.value);
  return packed.Finish();
}

static void Unpack(const wire::HeartbeatAck& from, EnvelopeReader&, HeartbeatAck* message) {
  message->view.value = from.view();
}

// ---- Command, CommandDone ----------------------------------------------------------------------

static Offset<wire::Command> Pack(FlatBufferBuilder& builder, const Command& message) {
  const auto path = PackName(builder, message.path);
  wire::CommandBuilder packed(builder);
  packed.add_id(message.id.value);
  packed.add_command(static_cast<uint8_t>(message.command));
  packed.add_until(message.until);
  packed.add_epoch(message.epoch);
  packed.add_epoch_start(message.epoch_start);
  packed.add_path(path);
  return packed.Finish();
}

static void Unpack(const wire::Command& from, EnvelopeReader& reader, Command* message) {
  message->id.value = from.id();
  message->command = reader.Enumerator(from.command(), CommandKind::kFinish);
  message->until = from.until();
  message->epoch = from.epoch();
  message->epoch_start = from.epoch_start();
  message->path = reader.Text(from.path());
  reader.Require(message->id.value > 0, "commands are numbered from 1");
  reader.Require(message->until >= 0 && message->epoch_start >= 0, "clocks are not negative");
}

static Offset<flatbuffers::Vector<Offset<wire::SavedFile>>> PackFiles(
    FlatBufferBuilder& builder, const std::vector<SavedFile>& files) {
  std::vector<Offset<wire::SavedFile>> offsets;
  offsets.reserve(files.size());
  for (const SavedFile& file : files) {
    const auto name = PackName(builder, file.name);
    wire::SavedFileBuilder packed(builder);
    packed.add_name(name);
    packed.add_bytes(file.bytes);
    packed.add_checksum(file.checksum);
    packed.add_rows(file.rows);
    offsets.push_back(packed.Finish());
  }
  return builder.CreateVector(offsets);
}

static Offset<wire::CommandDone> Pack(FlatBufferBuilder& builder, const CommandDone& message) {
  const auto text = PackText(builder, message.message);
  const auto files = PackFiles(builder, message.files);
  const auto cache = PackTally(builder, message.cache);
  const auto labels = PackLabels(builder, message.label_tally);
  const auto arithmetic = PackText(builder, message.arithmetic);
  wire::CommandDoneBuilder packed(builder);
  packed.add_id(message.id.value);
  packed.add_code(static_cast<uint8_t>(message.code));
  packed.add_message(text);
  packed.add_clock(message.clock);
  packed.add_end_of_epoch(message.end_of_epoch);
  packed.add_examples(message.examples);
  packed.add_loss_sum(message.loss_sum);
  packed.add_bad_rows(message.bad_rows);
  packed.add_digest_low(message.digest[0]);
  packed.add_digest_high(message.digest[1]);
  packed.add_rows(message.rows);
  packed.add_row_bytes(message.row_bytes);
  packed.add_files(files);
  packed.add_cache(cache);
  packed.add_rows_admitted(message.counts.admitted);
  packed.add_gradients_refused(message.counts.refused);
  packed.add_rows_evicted(message.counts.evicted);
  packed.add_rows_fetched(message.counts.fetched);
  packed.add_rows_on_disk(message.counts.on_disk);
  packed.add_process_bytes(message.process_bytes);
  packed.add_label_tally(labels);
  packed.add_dense_parameters(message.dense_parameters);
  packed.add_dense_rows(message.dense_rows);
  packed.add_arithmetic(arithmetic);
  return packed.Finish();
}

static void Unpack(const wire::CommandDone& from, EnvelopeReader& reader, CommandDone* message) {
  message->id.value = from.id();
  message->code = reader.Enumerator(from.code(), Code::kCancelled);
  message->message = reader.Text(from.message());
  message->clock = from.clock();
  message->end_of_epoch = from.end_of_epoch();
  message->examples = from.examples();
  message->loss_sum = from.loss_sum();
  message->bad_rows = from.bad_rows();
  message->cache = UnpackTally(from.cache());
  message->digest[0] = from.digest_low();
  message->digest[1] = from.digest_high();
  message->rows = from.rows();
  message->row_bytes = from.row_bytes();
  message->counts = {from.rows_admitted(), from.gradients_refused(), from.rows_evicted(),
                     from.rows_fetched(), from.rows_on_disk()};
  message->process_bytes = from.process_bytes();
  message->label_tally = UnpackLabels(from.label_tally());
  message->dense_parameters = from.dense_parameters();
  message->dense_rows = from.dense_rows();
  message->arithmetic = reader.Text(from.arithmetic());
  message->files.assign(reader.Count(from.files()), SavedFile());
  for (uint32_t i = 0; i < message->files.size(); ++i) {
    const wire::SavedFile& file = *from.files()->Get(i);
    message->files[i] = {reader.Text(file.name()), file.bytes(), file.checksum(), file.rows()};
  }
  message->scores = reader.Section(0);
  message->labels = reader.Section(1);
  reader.Require(message->clock >= 0, "clocks are not negative");
  reader.Require(message->scores.size() == message->labels.size() &&
                     message->scores.size() % sizeof(float) == 0,
                 "there is one label, a float, for each score");
}

static std::vector<Buffer> SectionsOf(const CommandDone& message) {
  return {message.scores, message.labels};
}

// ---- StopRequest, Abort, KvPut, KvGet, KvValue -------------------------------------------------

static Offset<wire::StopRequest> Pack(FlatBufferBuilder& builder, const StopRequest& message) {
  const auto reason = PackText(builder, message.reason);
  wire::StopRequestBuilder packed(builder);
  packed.add_reason(reason);
  return packed.Finish();
}

static void Unpack(const wire::StopRequest& from, EnvelopeReader& reader, StopRequest* message) {
  message->reason = reader.Text(from.reason());
}

static Offset<wire::Abort> Pack(FlatBufferBuilder& builder, const Abort& message) {
  const auto text = PackText(builder, message.message);
  wire::AbortBuilder packed(builder);
  packed.add_exit_status(message.exit_status);
  packed.add_message(text);
  return packed.Finish();
}

static void Unpack(const wire::Abort& from, EnvelopeReader& reader, Abort* message) {
  message->exit_status = UnpackExitStatus(from.exit_status(), reader);
  message->message = reader.Text(from.message());
}

static Offset<wire::KvPut> Pack(FlatBufferBuilder& builder, const KvPut& message) {
  const auto key = PackName(builder, message.key);
  const auto value = PackName(builder, message.value);
  wire::KvPutBuilder packed(builder);
  packed.add_key(key);
  packed.add_value(value);
  return packed.Finish();
}

static void Unpack(const wire::KvPut& from, EnvelopeReader& reader, KvPut* message) {
  message->key = reader.Text(from.key());
  message->value = reader.Text(from.value());
}

static Offset<wire::KvGet> Pack(FlatBufferBuilder& builder, const KvGet& message) {
  const auto key = PackName(builder, message.key);
  wire::KvGetBuilder packed(builder);
  packed.add_key(key);
  return packed.Finish();
}

static void Unpack(const wire::KvGet& from, EnvelopeReader& reader, KvGet* message) {
  message->key = reader.Text(from.key());
}

static Offset<wire::KvValue> Pack(FlatBufferBuilder& builder, const KvValue& message) {
  const auto key = PackName(builder, message.key);
  const auto value = PackName(builder, message.value);
  wire::KvValueBuilder packed(builder);
  packed.add_key(key);
  packed.add_found(message.found);
  packed.add_value(value);
  return packed.Finish();
}

static void Unpack(const wire::KvValue& from, EnvelopeReader& reader, KvValue* message) {
  message->key = reader.Text(from.key());
  message->found = from.found();
  message->value = reader.Text(from.value());
}

template Frame EncodeMessage(const JoinRequest&);
template Frame EncodeMessage(const JoinRefused&);
template Frame EncodeMessage(const View&);
template Frame EncodeMessage(const Heartbeat&);
template Frame EncodeMessage(const HeartbeatAck&);
template Frame EncodeMessage(const Command&);
template Frame EncodeMessage(const CommandDone&);
template Frame EncodeMessage(const StopRequest&);
template Frame EncodeMessage(const Abort&);
template Frame EncodeMessage(const KvPut&);
template Frame EncodeMessage(const KvGet&);
template Frame EncodeMessage(const KvValue&);
template Status DecodeMessage(const Frame&, JoinRequest*);
template Status DecodeMessage(const Frame&, JoinRefused*);
template Status DecodeMessage(const Frame&, View*);
template Status DecodeMessage(const Frame&, Heartbeat*);
template Status DecodeMessage(const Frame&, HeartbeatAck*);
template Status DecodeMessage(const Frame&, Command*);
template Status DecodeMessage(const Frame&, CommandDone*);
template Status DecodeMessage(const Frame&, StopRequest*);
template Status DecodeMessage(const Frame&, Abort*);
template Status DecodeMessage(const Frame&, KvPut*);
template Status DecodeMessage(const Frame&, KvGet*);
template Status DecodeMessage(const Frame&, KvValue*);

}  // namespace hdps
