// Opens a worker's partitions, and parses the messages of each step.
#include "worker/data/kafka/topic_reader.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/formats/row_adder.h"
#include "worker/data/indexed_reader.h"
#include "worker/data/kafka/late_messages.h"
#include "worker/data/kafka/partition_turns.h"
#include "worker/data/kafka/rdkafka_source.h"
#include "worker/data/records/tfrecord_files.h"

namespace hdps {
namespace {

class TopicReader : public BatchReader {
 public:
  TopicReader(const DataSpec& data, const std::string& entry, const ReaderOptions& options,
              std::unique_ptr<MessageSource> source)
      : data_(data),
        entry_(entry),
        options_(options),
        rules_(RulesOf(data, {entry}, options)),
        source_(std::move(source)) {}

  Status StartEpoch(uint32_t epoch, uint64_t skip_steps) override {
    CHECK(turns_ == nullptr) << "a topic has one epoch";
    epoch_ = epoch;
    position_ = skip_steps * options_.batch_size;
    HDPS_ASSIGN_OR_RETURN(std::vector<PartitionOffset> own, OwnPartitions());
    std::vector<std::string> places;
    for (const PartitionOffset& at : own) {
      places.push_back(entry_ + "/" + std::to_string(at.partition));
    }
    HDPS_ASSIGN_OR_RETURN(rows_, RowAdder::Make(data_, std::move(places), options_.LabelsWanted(),
                                                nullptr, options_.bad_rows));
    rows_->Restart(bad_rows_before_);
    HDPS_RETURN_IF_ERROR(source_->Begin(own));
    const TurnOptions turns{.topic = entry_,
                            .flush_ms = static_cast<int64_t>(data_.kafka.flush_s * 1000),
                            .warn = [](const std::string& text) { LOG(WARNING) << text; },
                            .await = [this](const std::string& behind) { Await(behind); }};
    last_time_ms_.resize(own.size());
    Await("");
    turns_ =
        std::make_unique<PartitionTurns>(*source_, *options_.topic->clock, std::move(own), turns);
    return {};
  }

  Result<std::optional<Batch>> Next() override {
    const uint64_t first_row = position_;
    const auto [before, count] = OwnRows(first_row);
    BatchBuilder builder = rows_->NewBatch(count);
    HDPS_ASSIGN_OR_RETURN(std::vector<int64_t> ends, EndsOfStep());
    const std::vector<PartitionOffset> from = turns_->offsets();
    turns_->BeginStep(before, std::move(ends));
    LateMessages late;
    uint32_t added = 0;
    const auto add = [&](std::optional<Line> row) -> Status {
      if (!row) return {};
      row->row = first_row + options_.FirstOwn(first_row) + uint64_t{added} * options_.Stride();
      return rows_->Add(*row, {epoch_, row->row, added++}, &builder);
    };
    for (uint32_t number = 0; number < count;) {
      HDPS_ASSIGN_OR_RETURN(const std::optional<TurnMessage> taken, turns_->Next());
      if (!taken) break;
      bytes_read_ += taken->message.text.size();
      last_time_ms_[taken->index] = taken->message.time_ms;
      const std::optional<Line> row = RowIn(*taken);
      if (row) ++number;
      if (late.empty() && taken->index == taken->turn) {
        HDPS_RETURN_IF_ERROR(add(row));
      } else {
        late.Add(*taken, from.size());
      }
    }
    HDPS_RETURN_IF_ERROR(late.InTurns([&](const TurnMessage& taken) { return add(RowIn(taken)); }));
    position_ += options_.batch_size;
    ++steps_;
    Await("");
    Tell();
    Batch batch = builder.Finish(first_row);
    for (size_t i = 0; i < from.size(); ++i) {
      batch.messages.push_back({from[i].partition, from[i].next, turns_->offsets()[i].next});
    }
    return std::optional<Batch>(std::move(batch));
  }

  void Stop() override { source_->Stop(); }
  uint64_t bad_rows() const override {
    return rows_ == nullptr ? bad_rows_before_ : rows_->bad_rows();
  }
  void SetBadRows(uint64_t count) override {
    bad_rows_before_ = count;
    if (rows_ != nullptr) rows_->Restart(count);
  }
  uint64_t bytes_read() const override { return bytes_read_; }
  double progress() const override { return 0; }  // Nobody knows how much is to come.

 private:
  // Returns the row of a message; nothing if it has none.
  std::optional<Line> RowIn(const TurnMessage& taken) const {
    std::string_view text = taken.message.text;
    if (text.empty()) return std::nullopt;
    // A line of text may have its end, which belongs to no cell. A record may end with any byte.
    if (rules_.records == nullptr && text.ends_with('\n')) text.remove_suffix(1);
    const LinePlace place{static_cast<uint32_t>(taken.index),
                          static_cast<uint64_t>(taken.message.offset)};
    const std::optional<std::string_view> row = rules_.RowOf(text, place);
    return row ? std::optional(Line{*row, place}) : std::nullopt;
  }

  // Returns before which offset the next step ends in each of this worker's partitions; empty if
  // nobody has read it before.
  Result<std::vector<int64_t>> EndsOfStep() const {
    std::vector<int64_t> ends;
    if (steps_ >= options_.topic->step_ends.size()) return ends;
    const std::vector<PartitionOffset>& known = options_.topic->step_ends[steps_];
    for (const PartitionOffset& at : turns_->offsets()) {
      const auto end = std::ranges::find(known, at.partition, &PartitionOffset::partition);
      if (end == known.end()) {
        return Status(Code::kCorruption, entry_ + ": nobody says what the step has of partition " +
                                             std::to_string(at.partition));
      }
      ends.push_back(end->next);
    }
    return ends;
  }

  // Tells the place behind which a message is waited for, or "" if none is any more.
  void Await(const std::string& behind) {
    if (std::exchange(awaits_, !behind.empty()) || !behind.empty()) {
      if (options_.topic->await) options_.topic->await(behind);
    }
    if (awaits_) Tell();
  }

  // Returns how many rows of this part lie before the step that begins at `first_row`, and how many
  // it has in the step.
  std::pair<uint64_t, uint32_t> OwnRows(uint64_t first_row) const {
    if (options_.own_rows) {
      const uint32_t each = options_.own_rows->end - options_.own_rows->begin;
      return {first_row / options_.batch_size * each, each};
    }
    const uint64_t parts = options_.num_parts;
    const auto before = [&](uint64_t row) { return (row + parts - 1 - options_.part) / parts; };
    const uint64_t begin = before(first_row);
    return {begin, static_cast<uint32_t>(before(first_row + options_.batch_size) - begin)};
  }

  // Returns this worker's partitions, each with the offset to begin at.
  Result<std::vector<PartitionOffset>> OwnPartitions() {
    HDPS_ASSIGN_OR_RETURN(const uint32_t count, source_->CountPartitions());
    if (count % options_.num_parts != 0) {
      return Status(Code::kInvalidArgument,
                    entry_ + ": " + std::to_string(count) + " partitions for " +
                        std::to_string(options_.num_parts) +
                        " workers, some of which would have fewer than others: expected a "
                        "multiple; take as many workers as divide the partitions");
    }
    const std::vector<PartitionOffset>& from = options_.topic->from;
    for (const PartitionOffset& at : from) {
      if (at.partition < count) continue;
      return Status(Code::kCorruption,
                    entry_ + ": partition " + std::to_string(at.partition) +
                        ", of which the job has read, is gone: the topic has " +
                        std::to_string(count) +
                        "; it was made anew, so begin a job with another --out, from this one's "
                        "rows with --init");
    }
    std::vector<PartitionOffset> own;
    for (uint32_t p = options_.part; p < count; p += options_.num_parts) {
      const auto known = std::ranges::find(from, p, &PartitionOffset::partition);
      if (known != from.end()) {
        own.push_back(*known);
        continue;
      }
      // A partition that is new since the checkpoint begins at its first message.
      HDPS_ASSIGN_OR_RETURN(const int64_t next,
                            from.empty() ? source_->StartOf(p) : source_->FirstOf(p));
      own.push_back({p, next});
    }
    return own;
  }

  void Tell() {
    if (!options_.topic->tell) return;
    TopicFigures figures;
    figures.new_missing = turns_->missing() - std::exchange(missing_told_, turns_->missing());
    const int64_t now_ms = UnixMs();
    for (size_t i = 0; i < last_time_ms_.size(); ++i) {
      const uint64_t behind = source_->Behind(turns_->offsets()[i]);
      figures.behind += behind;
      if (behind == 0 || last_time_ms_[i] == 0) continue;
      const auto age_ms = static_cast<double>(now_ms - last_time_ms_[i]);
      figures.behind_s = std::max(figures.behind_s, age_ms / 1e3);
    }
    options_.topic->tell(figures);
  }

  const DataSpec& data_;
  const std::string entry_;
  const ReaderOptions options_;
  const LineRules rules_;
  const std::unique_ptr<MessageSource> source_;
  std::unique_ptr<RowAdder> rows_;  // Null before StartEpoch(), as is turns_.
  std::unique_ptr<PartitionTurns> turns_;
  uint32_t epoch_ = 0;
  uint64_t position_ = 0;  // Of the next step's first row.
  size_t steps_ = 0;       // That Next() has given.
  uint64_t bad_rows_before_ = 0;
  uint64_t bytes_read_ = 0;
  std::vector<int64_t> last_time_ms_;  // Of each partition's last message; 0: unknown.
  // The wait for a message was told, maybe by a reader before this one, and its end was not.
  bool awaits_ = true;
  uint64_t missing_told_ = 0;
};

}  // namespace

Result<std::unique_ptr<BatchReader>> NewTopicReader(FileSystem& files, const DataSpec& data,
                                                    const std::vector<std::string>& paths,
                                                    const ReaderOptions& options) {
  CHECK_EQ(paths.size(), 1u);
  CHECK(options.topic != nullptr);
  if (data.format == DataFormat::kTfrecord) HDPS_RETURN_IF_ERROR(ExamplesAreRead());
  std::unique_ptr<MessageSource> source;
  if (options.topic->open) {
    HDPS_ASSIGN_OR_RETURN(source, options.topic->open());
  } else {
    HDPS_ASSIGN_OR_RETURN(source,
                          NewRdkafkaSource(paths[0], data.kafka, files, options.topic->trouble));
  }
  return std::unique_ptr<BatchReader>(
      std::make_unique<TopicReader>(data, paths[0], options, std::move(source)));
}

}  // namespace hdps
