// Consumes partitions by librdkafka's simple consumer, without a group.
#include "worker/data/kafka/rdkafka_source.h"

#include <glog/logging.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/threads/pause.h"
#include "worker/data/kafka/broker_states.h"

namespace hdps {
namespace {

// Requests to brokers are tried again after so long, until they are answered.
constexpr int kRequestMs = 1000;
// Messages that are taken from librdkafka at a time.
constexpr size_t kTakenMax = 512;
// Of each partition, if data.kafka.settings does not say it: librdkafka's own default is four times
// as much.
constexpr const char* kQueuedKbytes = "16384";

template <auto kDestroy>
struct Destroy {
  void operator()(auto* object) const { kDestroy(object); }
};
using Client = std::unique_ptr<rd_kafka_t, Destroy<rd_kafka_destroy>>;
using Topic = std::unique_ptr<rd_kafka_topic_t, Destroy<rd_kafka_topic_destroy>>;
using Queue = std::unique_ptr<rd_kafka_queue_t, Destroy<rd_kafka_queue_destroy>>;
using Message = std::unique_ptr<rd_kafka_message_t, Destroy<rd_kafka_message_destroy>>;
using Settings = std::unique_ptr<rd_kafka_conf_t, Destroy<rd_kafka_conf_destroy>>;
using Offsets = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                Destroy<rd_kafka_topic_partition_list_destroy>>;

bool MeansAway(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR__TRANSPORT || error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
         error == RD_KAFKA_RESP_ERR__RESOLVE || error == RD_KAFKA_RESP_ERR__TIMED_OUT;
}

bool MeansGone(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
         error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC || error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

// Errors that the next try may not have.
bool Passes(rd_kafka_resp_err_t error) {
  return MeansAway(error) || error == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ||
         error == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION ||
         error == RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT ||
         error == RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE ||
         error == RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION;
}

class RdkafkaSource : public MessageSource {
 public:
  RdkafkaSource(std::string entry, KafkaEntry name, const KafkaSpec& kafka, TellTrouble tell)
      : entry_(std::move(entry)), name_(std::move(name)), kafka_(kafka), tell_(std::move(tell)) {}
  ~RdkafkaSource() override;

  // Makes the client, which has no effect on brokers. `secrets` are settings too.
  Status Connect(const std::map<std::string, std::string>& secrets);

  Result<uint32_t> CountPartitions() override;
  Result<int64_t> StartOf(uint32_t partition) override;
  Result<int64_t> FirstOf(uint32_t partition) override {
    HDPS_ASSIGN_OR_RETURN(const auto ends, EndsOf(partition));
    return ends.first;
  }
  Status Begin(std::span<const PartitionOffset> from) override;
  Result<std::optional<TopicMessage>> Take(uint32_t partition) override;
  uint64_t Behind(const PartitionOffset& next) override;
  bool Wait(int64_t ms) override;
  void Stop() override {
    stopped_ = true;
    pause_.End();
  }

 private:
  // A partition, and the messages that were taken from librdkafka, [given, taken.size()) of which
  // are to be given. The one before them is kept for its text.
  struct Partition {
    Queue queue;
    std::vector<Message> taken;
    size_t given = 0;
  };

  static void OnArrival(rd_kafka_t*, void* self) {
    static_cast<RdkafkaSource*>(self)->pause_.Cut();
  }
  static void OnError(rd_kafka_t*, int error, const char* reason, void* self) {
    static_cast<RdkafkaSource*>(self)->TellError(static_cast<rd_kafka_resp_err_t>(error), reason);
  }
  static int OnStatistics(rd_kafka_t*, char* json, size_t bytes, void* self) {
    static_cast<RdkafkaSource*>(self)->LookAtBrokers({json, bytes});
    return 0;  // librdkafka frees the text.
  }
  static void OnLog(const rd_kafka_t*, int, const char* what, const char* text) {
    VLOG(1) << "librdkafka: " << what << ": " << text;
  }

  Status Set(rd_kafka_conf_t* settings, const std::string& name, const std::string& value,
             const char* place) const;
  void TellError(rd_kafka_resp_err_t error, const std::string& reason);
  void TellThere();
  // Ends the trouble if the leaders of all partitions are connected, and tells of partitions that
  // were added. `statistics` are librdkafka's.
  void LookAtBrokers(std::string_view statistics);
  // Calls `request`, which asks a broker, until one has answered. kInvalidArgument for an error
  // that does not pass; `what` was asked for.
  template <typename Request>
  Status UntilAnswered(const std::string& what, Request request);
  // Returns the offsets of the first message and behind the last.
  Result<std::pair<int64_t, int64_t>> EndsOf(uint32_t partition);
  Result<int64_t> OffsetAt(uint32_t partition, int64_t time_ms);
  Result<std::optional<TopicMessage>> Give(uint32_t partition, const rd_kafka_message_t& message);

  const std::string entry_;
  const KafkaEntry name_;
  const KafkaSpec kafka_;
  const TellTrouble tell_;  // May be empty.
  Pause pause_;             // Is cut when something arrives.
  std::atomic<bool> stopped_ = false;
  bool away_ = false;     // A broker is away, and that was told.
  size_t num_known_ = 0;  // Partitions of the topic, as was told last; 0: not asked yet.
  Client client_;
  Topic topic_;
  Queue events_;  // Errors of the client.
  std::map<uint32_t, Partition> partitions_;
};

RdkafkaSource::~RdkafkaSource() {
  if (away_ && tell_) tell_("");
  if (events_ != nullptr) rd_kafka_queue_cb_event_enable(events_.get(), nullptr, nullptr);
  for (auto& [number, partition] : partitions_) {
    rd_kafka_queue_cb_event_enable(partition.queue.get(), nullptr, nullptr);
    rd_kafka_consume_stop(topic_.get(), static_cast<int32_t>(number));
  }
}

Status RdkafkaSource::Set(rd_kafka_conf_t* settings, const std::string& name,
                          const std::string& value, const char* place) const {
  std::array<char, 512> why{};
  if (rd_kafka_conf_set(settings, name.c_str(), value.c_str(), why.data(), why.size()) ==
      RD_KAFKA_CONF_OK) {
    return {};
  }
  return {Code::kInvalidArgument, std::string(place) + "." + name + ": " + why.data() +
                                      "; expected a setting of a consumer by librdkafka's name"};
}

Status RdkafkaSource::Connect(const std::map<std::string, std::string>& secrets) {
  Settings settings(rd_kafka_conf_new());
  constexpr const char* kOwn = "data.kafka";
  HDPS_RETURN_IF_ERROR(Set(settings.get(), "queued.max.messages.kbytes", kQueuedKbytes, kOwn));
  for (const auto& [name, value] : kafka_.settings) {
    HDPS_RETURN_IF_ERROR(Set(settings.get(), name, value, "data.kafka.settings"));
  }
  for (const auto& [name, value] : secrets) {
    HDPS_RETURN_IF_ERROR(Set(settings.get(), name, value, kafka_.secrets.c_str()));
  }
  HDPS_RETURN_IF_ERROR(Set(settings.get(), "bootstrap.servers", name_.brokers, kOwn));
  // An offset that is no more begins at the first message there is, and the gap is counted.
  HDPS_RETURN_IF_ERROR(Set(settings.get(), "auto.offset.reset", "earliest", kOwn));
  rd_kafka_conf_set_error_cb(settings.get(), &OnError);
  rd_kafka_conf_set_log_cb(settings.get(), &OnLog);
  HDPS_RETURN_IF_ERROR(
      Set(settings.get(), "statistics.interval.ms", std::to_string(kLookEveryMs), kOwn));
  rd_kafka_conf_set_stats_cb(settings.get(), &OnStatistics);
  rd_kafka_conf_set_opaque(settings.get(), this);
  std::array<char, 512> why{};
  client_.reset(rd_kafka_new(RD_KAFKA_CONSUMER, settings.get(), why.data(), why.size()));
  if (client_ == nullptr) {
    return {Code::kInvalidArgument,
            entry_ + ": librdkafka refuses data.kafka.settings: " + std::string(why.data())};
  }
  static_cast<void>(settings.release());  // The client has it.
  topic_.reset(rd_kafka_topic_new(client_.get(), name_.topic.c_str(), nullptr));
  CHECK(topic_ != nullptr) << name_.topic;
  events_.reset(rd_kafka_queue_get_main(client_.get()));
  rd_kafka_queue_cb_event_enable(events_.get(), &OnArrival, this);
  return {};
}

void RdkafkaSource::TellError(rd_kafka_resp_err_t error, const std::string& reason) {
  if (!MeansAway(error)) {
    LOG(WARNING) << entry_ << ": " << rd_kafka_err2str(error) << ": " << reason;
    return;
  }
  if (std::exchange(away_, true)) return;
  const std::string trouble =
      entry_ + ": a broker is away: " + (reason.empty() ? name_.brokers : reason);
  LOG(WARNING) << trouble << "; it is waited for";
  if (tell_) tell_(trouble);
}

void RdkafkaSource::TellThere() {
  if (!std::exchange(away_, false)) return;
  LOG(INFO) << entry_ << ": the brokers answer again";
  if (tell_) tell_("");
}

void RdkafkaSource::LookAtBrokers(std::string_view statistics) {
  if (partitions_.empty()) return;
  if (const size_t now = NumPartitionsIn(statistics, name_.topic);
      num_known_ > 0 && now > num_known_) {
    LOG(WARNING) << entry_ << ": the topic has " << now << " partitions now, and had " << num_known_
                 << " when this job began to read: the others are read once it is started again";
    num_known_ = now;
  }
  if (!away_) return;
  std::vector<uint32_t> own;
  for (const auto& [number, partition] : partitions_) own.push_back(number);
  if (LeadersAreConnected(statistics, name_.topic, own)) TellThere();
}

template <typename Request>
Status RdkafkaSource::UntilAnswered(const std::string& what, Request request) {
  while (!stopped_) {
    const rd_kafka_resp_err_t error = request();
    rd_kafka_poll(client_.get(), 0);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      TellThere();
      return {};
    }
    if (MeansGone(error)) {
      return {Code::kInvalidArgument,
              "data.train: " + entry_ +
                  ": the brokers have no such topic; expected one that is there, as "
                  "kafka-topics --list tells"};
    }
    if (!Passes(error)) {
      return {Code::kInvalidArgument,
              entry_ + ": " + what + ": " + rd_kafka_err2str(error) +
                  "; see data.kafka.settings, data.kafka.secrets, and what this user may read"};
    }
    TellError(RD_KAFKA_RESP_ERR__TRANSPORT,
              name_.brokers + ": " + what + ": " + rd_kafka_err2str(error));
    if (!pause_.For(kRequestMs / 10)) break;
  }
  return {Code::kCancelled, "the reader was stopped"};
}

Result<uint32_t> RdkafkaSource::CountPartitions() {
  uint32_t count = 0;
  HDPS_RETURN_IF_ERROR(UntilAnswered("partitions", [&] {
    const struct rd_kafka_metadata* found = nullptr;
    rd_kafka_resp_err_t error =
        rd_kafka_metadata(client_.get(), /*all_topics=*/0, topic_.get(), &found, kRequestMs);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return error;
    if (found->topic_cnt != 1) {
      error = RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
    } else {
      error = found->topics[0].err;
      count = static_cast<uint32_t>(found->topics[0].partition_cnt);
    }
    rd_kafka_metadata_destroy(found);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR && count == 0) error = RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
    return error;
  }));
  num_known_ = count;
  return count;
}

Result<std::pair<int64_t, int64_t>> RdkafkaSource::EndsOf(uint32_t partition) {
  std::pair<int64_t, int64_t> ends;
  HDPS_RETURN_IF_ERROR(UntilAnswered("offsets of partition " + std::to_string(partition), [&] {
    return rd_kafka_query_watermark_offsets(client_.get(), name_.topic.c_str(),
                                            static_cast<int32_t>(partition), &ends.first,
                                            &ends.second, kRequestMs);
  }));
  return ends;
}

Result<int64_t> RdkafkaSource::OffsetAt(uint32_t partition, int64_t time_ms) {
  int64_t offset = 0;
  HDPS_RETURN_IF_ERROR(UntilAnswered("offset at " + kafka_.start, [&] {
    const Offsets asked(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_t& at = *rd_kafka_topic_partition_list_add(
        asked.get(), name_.topic.c_str(), static_cast<int32_t>(partition));
    at.offset = time_ms;
    const rd_kafka_resp_err_t error =
        rd_kafka_offsets_for_times(client_.get(), asked.get(), kRequestMs);
    offset = at.offset;
    return error != RD_KAFKA_RESP_ERR_NO_ERROR ? error : at.err;
  }));
  if (offset >= 0) return offset;
  // No message is as late.
  HDPS_ASSIGN_OR_RETURN(const auto ends, EndsOf(partition));
  return ends.second;
}

Result<int64_t> RdkafkaSource::StartOf(uint32_t partition) {
  if (!kafka_.start_offsets.empty()) {
    const auto found = kafka_.start_offsets.find(partition);
    if (found != kafka_.start_offsets.end()) return found->second;
    return Status(Code::kInvalidArgument, "data.kafka.start has no offset of partition " +
                                              std::to_string(partition) + ", which " + entry_ +
                                              " has; name all partitions");
  }
  if (const std::optional<int64_t> time_ms = ReadUtcTime(kafka_.start)) {
    return OffsetAt(partition, *time_ms);
  }
  HDPS_ASSIGN_OR_RETURN(const auto ends, EndsOf(partition));
  return kafka_.start == kKafkaLatest ? ends.second : ends.first;
}

Status RdkafkaSource::Begin(std::span<const PartitionOffset> from) {
  for (const PartitionOffset& at : from) {
    const auto number = static_cast<int32_t>(at.partition);
    Partition& partition = partitions_[at.partition];
    partition.queue.reset(rd_kafka_queue_get_partition(client_.get(), name_.topic.c_str(), number));
    CHECK(partition.queue != nullptr) << entry_ << " " << number;
    rd_kafka_queue_cb_event_enable(partition.queue.get(), &OnArrival, this);
    if (rd_kafka_consume_start(topic_.get(), number, at.next) != 0) {
      return {Code::kCorruption, entry_ + ": partition " + std::to_string(number) +
                                     " cannot be read: " + rd_kafka_err2str(rd_kafka_last_error())};
    }
  }
  return {};
}

Result<std::optional<TopicMessage>> RdkafkaSource::Take(uint32_t number) {
  Partition& partition = partitions_.at(number);
  while (true) {
    if (partition.given == partition.taken.size()) {
      partition.taken.clear();
      partition.given = 0;
      rd_kafka_poll(client_.get(), 0);
      std::array<rd_kafka_message_t*, kTakenMax> taken;
      const ssize_t count = rd_kafka_consume_batch(topic_.get(), static_cast<int32_t>(number), 0,
                                                   taken.data(), taken.size());
      for (ssize_t i = 0; i < count; ++i)
        partition.taken.emplace_back(taken[static_cast<size_t>(i)]);
      if (count <= 0) return std::optional<TopicMessage>();
    }
    HDPS_ASSIGN_OR_RETURN(const std::optional<TopicMessage> message,
                          Give(number, *partition.taken[partition.given++]));
    if (message) return message;
  }
}

// Returns nothing for an event that is no message, and that the job survives.
Result<std::optional<TopicMessage>> RdkafkaSource::Give(uint32_t partition,
                                                        const rd_kafka_message_t& message) {
  if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    const int64_t time_ms = rd_kafka_message_timestamp(&message, &type);
    const bool has_time = type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE && time_ms > 0;
    return std::optional<TopicMessage>({message.offset,
                                        has_time ? time_ms : 0,
                                        {static_cast<const char*>(message.payload), message.len}});
  }
  if (MeansGone(message.err)) {
    return Status(Code::kCorruption,
                  entry_ + ": partition " + std::to_string(partition) +
                      " is gone, of which the job has read: the topic was deleted or made anew; "
                      "begin a job with another --out, from this one's rows with --init");
  }
  if (message.err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
    return Status(Code::kInvalidArgument,
                  entry_ + ": " + rd_kafka_err2str(message.err) +
                      "; let the user of data.kafka.settings read the topic");
  }
  TellError(message.err, rd_kafka_message_errstr(&message));
  return std::optional<TopicMessage>();
}

uint64_t RdkafkaSource::Behind(const PartitionOffset& next) {
  int64_t low = 0, high = 0;
  rd_kafka_get_watermark_offsets(client_.get(), name_.topic.c_str(),
                                 static_cast<int32_t>(next.partition), &low, &high);
  return static_cast<uint64_t>(std::max<int64_t>(0, high - next.next));
}

bool RdkafkaSource::Wait(int64_t ms) {
  return pause_.For(ms < 0 ? kLookEveryMs : std::min(ms, kLookEveryMs));
}

}  // namespace

Result<std::unique_ptr<MessageSource>> NewRdkafkaSource(const std::string& entry,
                                                        const KafkaSpec& kafka, FileSystem& files,
                                                        TellTrouble tell) {
  HDPS_ASSIGN_OR_RETURN(KafkaEntry name, ReadKafkaEntry(entry));
  HDPS_ASSIGN_OR_RETURN(const auto secrets, ReadKafkaSecrets(files, kafka.secrets));
  auto source = std::make_unique<RdkafkaSource>(entry, std::move(name), kafka, std::move(tell));
  HDPS_RETURN_IF_ERROR(source->Connect(secrets));
  return std::unique_ptr<MessageSource>(std::move(source));
}

}  // namespace hdps
