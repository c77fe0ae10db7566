// Tests the batches of a topic: which rows are whose, and where the partitions are behind each.
#include "worker/data/kafka/topic_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "tests/worker/data/kafka/scripted_source.h"
#include "tests/worker/data/records/example_maker.h"
#include "worker/data/records/tfrecord_files.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TopicReaderTest : public testing::Test {
 protected:
  TopicReaderTest() : files_(NewMemoryFileSystem()), data_(NumberedRows()) {
    data_.train = {"kafka://b:9092/clicks"};
    data_.kafka.flush_s = 0;
  }

  // Adds rows to each partition of the next source: row i of partition p has the id 100 p + i.
  void Fill(int rows) {
    for (uint32_t p = 0; p < partitions_; ++p) {
      for (int i = 0; i < rows; ++i) {
        const std::string id = std::to_string(100 * p + static_cast<uint32_t>(i));
        texts_.push_back({p, "0," + id + ",c" + id});
      }
    }
  }
  // Begins to read behind `skip` steps. `step_ends`: where the first ones end.
  Status Open(uint32_t part, uint32_t parts, std::vector<PartitionOffset> from = {},
              uint64_t skip = 0, std::vector<std::vector<PartitionOffset>> step_ends = {}) {
    auto source = std::make_unique<ScriptedSource>(partitions_, clock_);
    for (const auto& [partition, text] : texts_) source->Add(partition, text);
    source_ = source.get();
    auto reading = std::make_shared<TopicReading>();
    reading->from = std::move(from);
    reading->step_ends = std::move(step_ends);
    reading->clock = &clock_;
    reading->tell = [this](const TopicFigures& figures) { told_ = figures; };
    reading->await = [this](const std::string& behind) { awaited_.push_back(behind); };
    auto given = std::make_shared<std::unique_ptr<MessageSource>>(std::move(source));
    reading->open = [given]() -> Result<std::unique_ptr<MessageSource>> {
      return std::move(*given);
    };
    const ReaderOptions options{
        .batch_size = batch_size_, .part = part, .num_parts = parts, .topic = reading};
    Result<std::unique_ptr<BatchReader>> reader =
        NewTopicReader(*files_, data_, data_.train, options);
    if (!reader.ok()) return reader.status();
    reader_ = *std::move(reader);
    return reader_->StartEpoch(0, skip);
  }
  Batch Next() {
    Result<std::optional<Batch>> batch = reader_->Next();
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    return batch.ok() && batch->has_value() ? **std::move(batch) : Batch();
  }

  SettableClock clock_;
  std::unique_ptr<FileSystem> files_;
  DataSpec data_;
  uint32_t partitions_ = 4, batch_size_ = 6;
  std::vector<std::pair<uint32_t, std::string>> texts_;
  ScriptedSource* source_ = nullptr;
  std::unique_ptr<BatchReader> reader_;
  TopicFigures told_;
  std::vector<std::string> awaited_;
};

TEST_F(TopicReaderTest, WorkersReadTheirOwnPartitions) {
  Fill(10);
  ASSERT_TRUE(Open(0, 2).ok());
  EXPECT_THAT(IdsOf(Next()), ElementsAre(0, 200, 1));
  EXPECT_THAT(IdsOf(Next()), ElementsAre(201, 2, 202));
  EXPECT_EQ(told_.behind, 14u);
  ASSERT_TRUE(Open(1, 2).ok());
  EXPECT_THAT(IdsOf(Next()), ElementsAre(100, 300, 101));
}

TEST_F(TopicReaderTest, AReaderThatGoesOnFromOffsetsGivesTheStepsThatCameNext) {
  Fill(30);
  batch_size_ = 7;  // The parts of steps differ in length.
  for (uint32_t part = 0; part < 2; ++part) {
    ASSERT_TRUE(Open(part, 2).ok());
    std::vector<Batch> steps;
    for (int step = 0; step < 6; ++step) steps.push_back(Next());
    for (size_t done = 1; done < steps.size(); ++done) {
      ASSERT_TRUE(Open(part, 2, EndsOf(steps[done - 1].messages), done).ok());
      const Batch again = Next();
      EXPECT_EQ(IdsOf(again), IdsOf(steps[done])) << part << ", step " << done;
      EXPECT_EQ(again.messages, steps[done].messages);
      EXPECT_EQ(again.first_row, steps[done].first_row);
    }
  }
}

// Steps with a flush depend on when messages arrive. Who reads one again takes the same messages,
// and gives the rows in the same order, however they arrive this time.
TEST_F(TopicReaderTest, AStepIsReadAgainAsItWas) {
  data_.kafka.flush_s = 2;
  const auto arrives = [this](uint32_t partition, const char* text) {
    source_->Then([this, partition, text] {
      source_->Add(partition, text);
      texts_.push_back({partition, text});
    });
  };
  texts_ = {{0, "0,1,a"}, {0, "0,2,a"}};
  ASSERT_TRUE(Open(0, 2).ok());
  arrives(2, "0,200,a");
  arrives(2, "");  // It has its turn, and is no row.
  arrives(2, "0,201,a");
  arrives(0, "0,3,a");
  const Batch first = Next(), second = Next();
  EXPECT_THAT(IdsOf(first), ElementsAre(1, 200, 2));
  EXPECT_THAT(IdsOf(second), ElementsAre(3, 201));
  EXPECT_THAT(first.messages, ElementsAre(PartitionSpan{0, 0, 2}, PartitionSpan{2, 0, 1}));
  EXPECT_THAT(second.messages, ElementsAre(PartitionSpan{0, 2, 3}, PartitionSpan{2, 1, 3}));

  const std::vector<std::pair<uint32_t, std::string>> written = texts_;
  texts_.push_back({0, "0,4,a"});  // Without the ends it were of the second step.
  const std::vector<std::vector<PartitionOffset>> ends = {EndsOf(first.messages),
                                                          EndsOf(second.messages)};
  const auto reads_the_same = [&] {
    for (const Batch* step : {&first, &second}) {
      const Batch again = Next();
      EXPECT_EQ(IdsOf(again), IdsOf(*step));
      EXPECT_EQ(again.messages, step->messages);
    }
  };
  ASSERT_TRUE(Open(0, 2, BeginsOf(first.messages), 0, ends).ok());
  reads_the_same();
  EXPECT_THAT(source_->waits, ElementsAre());
  EXPECT_THAT(IdsOf(Next()), ElementsAre(4));

  // They arrive once more, partition 0 last of all, and later than any flush.
  texts_.clear();
  ASSERT_TRUE(Open(0, 2, BeginsOf(first.messages), 0, ends).ok());
  for (const uint32_t partition : {2, 0}) {
    for (const auto& [of, text] : written) {
      if (of == partition) arrives(partition, text.c_str());
    }
    source_->Then([this] { clock_.now_ms += 10000; });
  }
  reads_the_same();
}

TEST_F(TopicReaderTest, AMessageThatIsGoneSinceIsTold) {
  Fill(2);
  ASSERT_TRUE(Open(0, 2, {{0, 0}, {2, 0}}, 0, {{{0, 1}, {2, 2}}}).ok());
  source_->RewindTo(0, 1);
  const Result<std::optional<Batch>> next = reader_->Next();
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.status().code(), Code::kCorruption);
  EXPECT_THAT(next.status().message(), HasSubstr("partition 0: offset 1 came where a step that was"
                                                 " pushed has messages before 1"));
  ASSERT_TRUE(Open(0, 2, {{0, 0}, {2, 0}}, 0, {{{0, 1}}}).ok());
  EXPECT_THAT(reader_->Next().status().message(), HasSubstr("of partition 2"));
}

TEST_F(TopicReaderTest, BadRowsAndEmptyMessagesAreBehindTheStep) {
  partitions_ = 1;
  batch_size_ = 3;
  data_.max_bad_rows = 1;
  texts_ = {{0, "0,1,a"}, {0, ""}, {0, "no row"}, {0, "1,2,b\n"}, {0, "no row either"}};
  ASSERT_TRUE(Open(0, 1).ok());
  const Batch batch = Next();
  EXPECT_THAT(IdsOf(batch), ElementsAre(1, 2));
  EXPECT_THAT(batch.messages, ElementsAre(PartitionSpan{0, 0, 4}));
  EXPECT_EQ(reader_->bad_rows(), 1u);
  const Result<std::optional<Batch>> next = reader_->Next();
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(next.status().message(), HasSubstr("kafka://b:9092/clicks/0:4:"));
}

TEST_F(TopicReaderTest, AStepWithoutMessagesIsEmptyAfterAWhile) {
  Fill(1);
  data_.kafka.flush_s = 2;
  ASSERT_TRUE(Open(0, 2).ok());
  EXPECT_THAT(IdsOf(Next()), ElementsAre(0, 200));
  const Batch empty = Next();
  EXPECT_EQ(empty.num_examples, 0u);
  EXPECT_THAT(empty.messages, ElementsAre(PartitionSpan{0, 1, 1}, PartitionSpan{2, 1, 1}));
  EXPECT_EQ(empty.first_row, 6u);
  // What a reader before this one told ends, and so does each wait.
  EXPECT_THAT(awaited_,
              ElementsAre("", "kafka://b:9092/clicks/0:0", "", "kafka://b:9092/clicks/2:0", ""));
}

TEST_F(TopicReaderTest, MessagesAreRecordsOfTheJobsFormat) {
  struct Form {
    DataFormat format;
    std::vector<std::string> messages;
  };
  // The last byte of the first example is that of an LF, which a line of text may end with.
  const std::string example = ExampleOf(
      {{"y", IntegerFeature({0})}, {"id", FloatFeature({1})}, {"c", TextFeature({"a\n"})}});
  ASSERT_EQ(example.back(), '\n');
  const Form forms[] = {
      {DataFormat::kJsonl,
       {R"({"c": "a\n", "y": 0, "id": 1})", "", "{\"y\": 0, \"id\": 2, \"c\": null}\n"}},
      {DataFormat::kTfrecord,
       {example, "", ExampleOf({{"id", FloatFeature({2})}, {"y", IntegerFeature({0})}})}}};
  std::vector<Batch> batches;
  for (const Form& form : forms) {
    SCOPED_TRACE(static_cast<int>(form.format));
    if (form.format == DataFormat::kTfrecord && !ExamplesAreRead().ok()) GTEST_SKIP();
    partitions_ = 1;
    batch_size_ = 2;
    data_ = NumberedRows();
    data_.format = form.format;
    data_.columns[0].name = "y";
    data_.columns[1].name = "id";
    data_.columns[2].name = "c";
    data_.train = {"kafka://b:9092/clicks"};
    data_.kafka.flush_s = 0;
    texts_.clear();
    for (const std::string& message : form.messages) texts_.push_back({0, message});
    ASSERT_TRUE(Open(0, 1).ok());
    batches.push_back(Next());
    EXPECT_THAT(IdsOf(batches.back()), ElementsAre(1, 2));
    EXPECT_THAT(batches.back().messages, ElementsAre(PartitionSpan{0, 0, 3}));
    ASSERT_EQ(batches.back().sparse.size(), 1u);
  }
  EXPECT_EQ(batches[0].sparse[0].keys, batches[1].sparse[0].keys);
}

TEST_F(TopicReaderTest, AMessageOfAnotherFormatIsNamedByItsPlace) {
  data_.format = DataFormat::kJsonl;
  partitions_ = 1;
  texts_ = {{0, "0,1,a"}};
  ASSERT_TRUE(Open(0, 1).ok());
  const Result<std::optional<Batch>> next = reader_->Next();
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(next.status().message(), HasSubstr("kafka://b:9092/clicks/0:0"));
}

TEST_F(TopicReaderTest, WhereReadingBegins) {
  Fill(10);
  ASSERT_TRUE(Open(1, 4, {{0, 3}, {1, 7}}).ok());
  EXPECT_THAT(source_->begun, ElementsAre(PartitionOffset{1, 7}));
  // Partitions that the checkpoint does not know begin at their first message.
  ASSERT_TRUE(Open(1, 2, {{0, 3}, {1, 7}}).ok());
  EXPECT_THAT(source_->begun, ElementsAre(PartitionOffset{1, 7}, PartitionOffset{3, 0}));
}

TEST_F(TopicReaderTest, TopicsThatDoNotFitAreRefused) {
  Fill(1);
  Status status = Open(0, 3);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("4 partitions for 3 workers"));
  status = Open(0, 2, {{0, 1}, {4, 1}});
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_THAT(status.message(), HasSubstr("partition 4"));
}

}  // namespace
}  // namespace hdps
