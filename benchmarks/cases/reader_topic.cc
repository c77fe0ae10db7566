// Copies the messages of a topic to a file, and reads both in turns.
#include "benchmarks/cases/reader_topic.h"

#include <glog/logging.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "common/platform/monotonic_clock.h"
#include "worker/data/batch_reader.h"
#include "worker/data/kafka/rdkafka_source.h"
#include "worker/data/kafka/topic_reader.h"

namespace hdps {
namespace {

constexpr char kBench[] = "reader", kCase[] = "topic";
constexpr uint32_t kBatch = 4096;

// Takes every message that the topic has now, and gives its text to `each`. Returns their number.
template <typename Each>
Result<uint64_t> TakeAll(const DataSpec& data, FileSystem& files, Each each) {
  HDPS_ASSIGN_OR_RETURN(const auto source, NewRdkafkaSource(data.train[0], data.kafka, files));
  HDPS_ASSIGN_OR_RETURN(const uint32_t partitions, source->CountPartitions());
  std::vector<PartitionOffset> at;
  for (uint32_t p = 0; p < partitions; ++p) {
    HDPS_ASSIGN_OR_RETURN(const int64_t first, source->FirstOf(p));
    at.push_back({p, first});
  }
  HDPS_RETURN_IF_ERROR(source->Begin(at));
  uint64_t taken = 0;
  for (PartitionOffset& next : at) {
    while (true) {
      HDPS_ASSIGN_OR_RETURN(const std::optional<TopicMessage> message,
                            source->Take(next.partition));
      if (message) {
        each(message->text);
        next.next = message->offset + 1;
        ++taken;
      } else if (source->Behind(next) == 0 && next.next > 0) {
        break;
      } else {
        source->Wait(-1);
      }
    }
  }
  return taken;
}

struct Speed {
  double rows_per_second = 0, rows_per_cpu_second = 0, rows_per_process_second = 0;
};

// Reads `steps` steps of the rows; of the topic if `topic` is set.
Result<Speed> ReadSteps(FileSystem& files, const DataSpec& data, uint64_t steps,
                        std::shared_ptr<const TopicReading> topic) {
  const ReaderOptions options{.batch_size = kBatch, .shuffle = false, .topic = std::move(topic)};
  HDPS_ASSIGN_OR_RETURN(const auto reader, NewBatchReader(files, data, data.train, options));
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  uint64_t rows = 0;
  Status status;
  const double cpu_before = ThreadCpuSeconds(), all_before = ProcessCpuSeconds();
  const double seconds = SecondsOf([&] {
    for (uint64_t step = 0; step < steps && status.ok(); ++step) {
      const Result<std::optional<Batch>> batch = reader->Next();
      status = batch.status();
      if (status.ok() && batch->has_value()) rows += (*batch)->num_examples;
    }
  });
  HDPS_RETURN_IF_ERROR(status);
  CHECK_EQ(rows, steps * kBatch) << "the partitions are not filled evenly";
  const auto count = static_cast<double>(rows);
  return Speed{count / seconds, count / (ThreadCpuSeconds() - cpu_before),
               count / (ProcessCpuSeconds() - all_before)};
}

}  // namespace

Status RunTopicCase(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  PrintProgress(kBench, kCase);
  DataSpec of_topic, of_text;
  of_topic.format = of_text.format = DataFormat::kCriteo;
  of_topic.train = {setting.data};
  of_topic.kafka.flush_s = 0;
  of_text.train = {JoinPath(setting.scratch, "messages.tsv")};
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(of_text.train[0]));
  std::string text;
  HDPS_ASSIGN_OR_RETURN(const uint64_t messages, TakeAll(of_topic, files, [&](std::string_view m) {
                          text.append(m).append("\n");
                        }));
  HDPS_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
  HDPS_RETURN_IF_ERROR(file->Close());
  const uint64_t steps = messages / kBatch;
  if (steps == 0) {
    return {Code::kInvalidArgument, setting.data + ": " + std::to_string(messages) +
                                        " messages; expected " + std::to_string(kBatch) +
                                        " or more"};
  }
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  auto reading = std::make_shared<TopicReading>();
  reading->clock = clock.get();
  std::vector<double> topic, topic_cpu, topic_all, lines, lines_cpu, alone;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    HDPS_ASSIGN_OR_RETURN(const Speed of_messages, ReadSteps(files, of_topic, steps, reading));
    HDPS_ASSIGN_OR_RETURN(const Speed of_lines, ReadSteps(files, of_text, steps, nullptr));
    uint64_t bytes = 0;
    Status status;
    const double seconds = SecondsOf([&] {
      status = TakeAll(of_topic, files, [&](std::string_view m) { bytes += m.size(); }).status();
    });
    HDPS_RETURN_IF_ERROR(status);
    topic.push_back(of_messages.rows_per_second);
    topic_cpu.push_back(of_messages.rows_per_cpu_second);
    topic_all.push_back(of_messages.rows_per_process_second);
    lines.push_back(of_lines.rows_per_second);
    lines_cpu.push_back(of_lines.rows_per_cpu_second);
    alone.push_back(static_cast<double>(messages) / seconds);
  }
  report.AddBeside(kBench, kCase, "rows of a topic", "rows/s", topic, "text", lines);
  report.AddBeside(kBench, kCase, "the same, by the reader's CPU time", "rows/s", topic_cpu, "text",
                   lines_cpu);
  report.AddBeside(kBench, kCase, "the same, with librdkafka's threads", "rows/s", topic_all,
                   "text", lines_cpu);
  report.AddBeside(kBench, kCase, "messages that are not parsed", "rows/s", alone, "text", lines);
  return Status();
}

}  // namespace hdps
