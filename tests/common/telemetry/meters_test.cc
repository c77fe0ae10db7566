// Checks the places of figures in readings, the counters, and copies that are put out.
#include "common/telemetry/meters.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/platform/executor.h"
#include "common/telemetry/published.h"
#include "common/telemetry/samples.h"

namespace hdps {
namespace {

constexpr FigureId kStep = FigureNamed("hdps_worker_step_seconds");
constexpr FigureId kExamples = FigureNamed("hdps_worker_examples_total");
constexpr FigureId kLoss = FigureNamed("hdps_worker_loss");
constexpr FigureId kStage = FigureNamed("hdps_worker_stage_seconds_total");
constexpr FigureId kStaleness = FigureNamed("hdps_worker_staleness_clocks");
constexpr FigureId kRows = FigureNamed("hdps_server_rows");
constexpr FigureId kKeys = FigureNamed("hdps_server_keys_total");

constexpr FigureRole kRoles[] = {FigureRole::kWorker, FigureRole::kServer, FigureRole::kScheduler,
                                 FigureRole::kServing};

TEST(FigureRecords, HaveNamesOfPrometheusInBaseUnits) {
  std::set<std::string_view> names;
  for (const FigureRecord& record : kFigures) {
    const std::string name(record.name);
    EXPECT_TRUE(names.insert(record.name).second) << name << " is there twice";
    EXPECT_TRUE(name.starts_with("hdps_") || record.role == FigureRole::kProcess) << name;
    EXPECT_EQ(name.ends_with("_total"), record.kind == FigureKind::kCounter) << name;
    const bool in_seconds = record.unit == FigureUnit::kSeconds;
    const bool in_bytes = record.unit == FigureUnit::kBytes;
    EXPECT_EQ(name.find("_seconds") != name.npos, in_seconds) << name;
    EXPECT_EQ(name.find("_bytes") != name.npos, in_bytes) << name;
    EXPECT_FALSE(record.help.empty() || record.help.ends_with('.')) << name;
  }
}

TEST(FigureLayout, GivesEachNumberToOneFigure) {
  for (const FigureRole role : kRoles) {
    for (const size_t tables : {0, 1, 3}) {
      const FigureLayout layout(role, tables);
      std::vector<int> used(layout.size());
      for (uint16_t i = 0; i < kFigures.size(); ++i) {
        const size_t offset = layout.OffsetOf({i});
        const bool has = kFigures[i].role == role || kFigures[i].role == FigureRole::kProcess;
        ASSERT_EQ(offset != FigureLayout::kNone, has) << kFigures[i].name;
        if (!has) continue;
        const size_t count = layout.LabelsOf({i}) * FigureLayout::WidthOf(kFigures[i]);
        for (size_t n = 0; n < count; ++n) ++used.at(offset + n);
      }
      EXPECT_EQ(used, std::vector<int>(layout.size(), 1));
    }
  }
  EXPECT_EQ(FigureLayout(FigureRole::kServer, 3).LabelsOf(kRows), 6u);
  EXPECT_EQ(FigureLayout(FigureRole::kServer, 3).LabelsOf(kKeys), 3u);
}

TEST(Meters, CountFromSeveralThreads) {
  constexpr int kThreads = 4, kTimes = 5000;
  Meters meters(FigureLayout(FigureRole::kWorker, 0));
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.push_back(StartThread("count", [&meters, t] {
      for (int i = 0; i < kTimes; ++i) {
        meters.Add(kExamples, 3);
        meters.Add(kStage, 1, static_cast<size_t>(t));
        meters.Observe(kStaleness, t);
      }
    }));
  }
  for (const auto& thread : threads) thread->Join();
  const Readings readings = meters.Read();
  const FigureLayout& layout = meters.layout();
  EXPECT_EQ(readings[layout.OffsetOf(kExamples)], uint64_t{kThreads} * kTimes * 3);
  const size_t stale = layout.OffsetOf(kStaleness);
  for (size_t t = 0; t < kThreads; ++t) {
    EXPECT_EQ(readings[layout.OffsetOf(kStage) + t], uint64_t{kTimes});
  }
  // Bounds 0, 1, 2, 4: the values 0 to 3 each have a bucket of their own here.
  for (size_t bucket = 0; bucket < 4; ++bucket)
    EXPECT_EQ(readings[stale + bucket], uint64_t{kTimes});
  EXPECT_EQ(readings[stale + kClockBounds.size() + 1], uint64_t{0 + 1 + 2 + 3} * kTimes);
}

TEST(Meters, PutAValueIntoTheBucketWhoseBoundItDoesNotExceed) {
  const auto bucket_of = [](FigureId id, int64_t value) {
    Meters meters(FigureLayout(FigureRole::kWorker, 0));
    meters.Observe(id, value);
    const Readings readings = meters.Read();
    const size_t first = meters.layout().OffsetOf(id);
    const size_t buckets = BoundsOf(RecordOf(id)).size() + 1;
    EXPECT_EQ(readings[first + buckets], static_cast<uint64_t>(std::max<int64_t>(value, 0)));
    size_t found = buckets;
    for (size_t b = 0; b < buckets; ++b) {
      if (readings[first + b] != 0) found = b;
    }
    return found;
  };
  EXPECT_EQ(bucket_of(kStep, 0), 0u);
  EXPECT_EQ(bucket_of(kStep, -5), 0u);
  for (size_t b = 0; b < kTimeBoundsNs.size(); ++b) {
    EXPECT_EQ(bucket_of(kStep, kTimeBoundsNs[b]), b);
    EXPECT_EQ(bucket_of(kStep, kTimeBoundsNs[b] + 1), b + 1);
  }
  EXPECT_EQ(bucket_of(kStaleness, 64), 7u);
  EXPECT_EQ(bucket_of(kStaleness, 65), 8u);
}

TEST(Meters, IgnoreWhatTheirRoleDoesNotHave) {
  Meters meters(FigureLayout(FigureRole::kServer, 1));
  const Readings before = meters.Read();
  meters.Add(kExamples, 1);
  meters.Set(kLoss, 2);
  meters.Observe(kStep, 3);
  meters.Add(kKeys, 1, 1);  // There is one table.
  meters.Set(kRows, 1, 2);
  EXPECT_EQ(meters.Read(), before);
}

TEST(Published, GivesTheLastCopyAndKeepsTheOneThatIsRead) {
  Published<int> published;
  EXPECT_EQ(published.Get(), nullptr);
  published.Put(std::make_shared<const int>(1));
  const std::shared_ptr<const int> read = published.Get();
  published.Put(std::make_shared<const int>(2));
  EXPECT_EQ(*read, 1);
  EXPECT_EQ(*published.Get(), 2);
}

TEST(Published, LetsOneThreadPutAndOthersRead) {
  Published<std::vector<int>> published;
  published.Put(std::make_shared<const std::vector<int>>(8, 0));
  std::vector<std::unique_ptr<Thread>> readers;
  std::vector<int> torn(3);
  for (int& count : torn) {
    readers.push_back(StartThread("read", [&published, &count] {
      for (int last = 0; last < 2000;) {
        const auto copy = published.Get();
        for (const int number : *copy) count += number != copy->front();
        count += copy->front() < last;
        last = copy->front();
      }
    }));
  }
  for (int i = 1; i <= 2000; ++i) published.Put(std::make_shared<const std::vector<int>>(8, i));
  for (const auto& reader : readers) reader->Join();
  EXPECT_EQ(torn, std::vector<int>(3, 0));
}

}  // namespace
}  // namespace hdps
