// Measures the constants of this machine for `hdps plan`: products, reader and disk here; layers,
// exchanges and rows in files of their own.
#include <algorithm>
#include <memory>
#include <utility>

#include "benchmarks/cases/constants/constants.h"
#include "benchmarks/clusters/job_run.h"
#include "benchmarks/yardsticks/model_products.h"
#include "benchmarks/yardsticks/plain_file.h"
#include "common/base/hash.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/table_spec.h"
#include "embedding/snapshot/snapshot.h"
#include "tools/synthetic/synthetic_log.h"
#include "worker/data/batch_reader.h"
#include "worker/model/model.h"
#include "worker/model/step_parts.h"

namespace hdps {

std::string ConstantsJob(uint32_t dim, const std::string& hidden, const std::string& folder,
                         const std::string& first_layer) {
  return R"({"name": "constants", "data": {"format": "criteo", "train": [")" +
         JoinPath(folder, "train.tsv") + R"("]}, "model": {"type": "wide_deep", "device": "cpu",
         "embedding_dim": )" +
         std::to_string(dim) + R"(, "first_layer": ")" + first_layer + R"(", "hidden": [)" +
         hidden + R"(]}, "train": {"batch_size": )" + std::to_string(kConstantsBatch) + "}}";
}

Result<std::vector<Batch>> FirstBatches(FileSystem& files, const DataSpec& data, size_t count) {
  HDPS_ASSIGN_OR_RETURN(
      const auto reader,
      NewBatchReader(files, data, data.train, {.batch_size = kConstantsBatch, .shuffle = true}));
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  std::vector<Batch> batches;
  while (batches.size() < count) {
    HDPS_ASSIGN_OR_RETURN(auto batch, reader->Next());
    if (!batch.has_value()) return Status(Code::kUnavailable, "constants: too few batches");
    batches.push_back(*std::move(batch));
  }
  return batches;
}

namespace {

constexpr char kBench[] = "constants";
constexpr uint32_t kBatch = kConstantsBatch;
constexpr size_t kBatches = kConstantsBatches;
constexpr double kNano = 1e9;
constexpr uint64_t kLogRows = 131'072;  // Twice the rows that a reader shuffles.

double Above0(double value) { return std::max(value, 0.0); }

Status MeasureProducts(const BenchSetting& setting, ConstantSamples* samples) {
  constexpr Product kShapes[] = {{3120, 1024}, {1024, 512}, {429, 1024}, {512, 256}, {256, 128},
                                 {429, 64},    {1300, 64},  {64, 32},    {128, 64},  {128, 1}};
  for (const size_t batch : {size_t{256}, size_t{1024}, size_t{kBatch}}) {
    PrintProgress(kBench, "products of batches of " + std::to_string(batch));
    for (const Product& shape : kShapes) {
      HDPS_ASSIGN_OR_RETURN(const auto products,
                            ModelProducts::Make("cpu", setting.threads, {shape}, batch));
      constexpr double kPasses = 3, kEnoughFlops = 3e9;
      const double flops = kPasses * shape.flops();
      const int steps =
          std::clamp(static_cast<int>(kEnoughFlops / (flops * double(batch))), 1, 200);
      const ProductRate rate = {double(shape.inputs), double(shape.units), double(batch), 0};
      for (int repeat = 0; repeat < setting.repeats; ++repeat) {
        (*samples)[ProductCase(rate) + ".rate"].push_back(products->ExamplesPerSecond(steps) *
                                                          flops * 1e-9);
      }
    }
  }
  return Status();
}

// ---- The reader.

// Times of the first epoch and the next.
struct ParseSeconds {
  double first = 0, later = 0;
};
Result<ParseSeconds> SecondsToParse(FileSystem& files, const DataSpec& data, uint32_t parts) {
  HDPS_ASSIGN_OR_RETURN(const auto reader,
                        NewBatchReader(files, data, data.train,
                                       {.batch_size = std::max(kBatch, parts * kBatch / 16),
                                        .num_parts = parts,
                                        .shuffle = true}));
  ParseSeconds seconds;
  for (const uint32_t epoch : {0u, 1u}) {
    const double before = ThreadCpuSeconds();
    HDPS_RETURN_IF_ERROR(reader->StartEpoch(epoch, 0));
    while (true) {
      HDPS_ASSIGN_OR_RETURN(const auto batch, reader->Next());
      if (!batch.has_value()) break;
    }
    (epoch == 0 ? seconds.first : seconds.later) = ThreadCpuSeconds() - before;
  }
  return seconds;
}

Status MeasureReader(const BenchSetting& setting, FileSystem& files, const Job& job,
                     ConstantSamples* samples) {
  PrintProgress(kBench, "reader");
  HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, files.FileSize(job.data.train[0]));
  HDPS_ASSIGN_OR_RETURN(const std::vector<Batch> batches, FirstBatches(files, job.data, kBatches));
  KeyFinder finder(job);
  std::vector<KeySet> sets;
  StepParts whole, cut;
  constexpr uint32_t kParts = 4;
  constexpr double kKeys = 26.0 * kBatch * kBatches;
  const auto cpu_ns = [](const std::function<void()>& work) {
    const double before = ThreadCpuSeconds();
    work();
    return kNano * (ThreadCpuSeconds() - before);
  };
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    HDPS_ASSIGN_OR_RETURN(const ParseSeconds whole_log, SecondsToParse(files, job.data, 1));
    HDPS_ASSIGN_OR_RETURN(const ParseSeconds quarter, SecondsToParse(files, job.data, kParts));
    HDPS_ASSIGN_OR_RETURN(const ParseSeconds few, SecondsToParse(files, job.data, kPartsMany));
    HDPS_ASSIGN_OR_RETURN(const ParseSeconds many, SecondsToParse(files, job.data, 4 * kPartsMany));
    const double each = kNano / static_cast<double>(bytes);
    (*samples)["reader.read_byte"].push_back(each * whole_log.first);
    // A quarter of the rows was parsed too.
    (*samples)["reader.scan_byte"].push_back(
        each * Above0((kParts * quarter.first - whole_log.first) / 3));
    constexpr double kOwnOfFew = 1.0 / kPartsMany, kOwnOfMany = kOwnOfFew / 4;
    const double of_row = kNano / double(kLogRows);
    const double fetch = of_row * Above0(few.later - many.later) / (kOwnOfFew - kOwnOfMany);
    (*samples)["reader.fetch_row"].push_back(fetch);
    (*samples)["reader.draw_row"].push_back(Above0(of_row * many.later - kOwnOfMany * fetch));
    (*samples)["reader.find_byte"].push_back(each * Above0(many.first - many.later));
    const double find = cpu_ns([&] {
      for (const Batch& batch : batches) finder.Find(batch, &sets);
    });
    (*samples)["reader.dedup_key"].push_back(find / kKeys);
    std::vector<Batch> copies = batches;
    const double one = cpu_ns([&] {
      for (Batch& batch : copies) whole.Assign(std::move(batch), 1, finder);
    });
    copies = batches;
    const double parts = cpu_ns([&] {
      for (Batch& batch : copies) cut.Assign(std::move(batch), kParts, finder);
    });
    (*samples)["reader.cut_key"].push_back(Above0(parts - one) / kKeys);
  }
  return Status();
}

// ---- Disk and checkpoints.

Status MeasureDisk(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  PrintProgress(kBench, "disk");
  constexpr uint64_t kBytes = 200'000'000;
  const std::string path = JoinPath(setting.scratch, "disk");
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    HDPS_ASSIGN_OR_RETURN(const double written, SecondsToWrite(files, path, kBytes));
    ForgetFile(path);
    HDPS_ASSIGN_OR_RETURN(const double read, SecondsToRead(files, path));
    (*samples)["disk.write_byte"].push_back(kNano * written / double(kBytes));
    (*samples)["disk.read_byte"].push_back(kNano * read / double(kBytes));
  }
  return Status();
}

Status MeasureCheckpoint(const BenchSetting& setting, const Job& job, ConstantSamples* samples) {
  PrintProgress(kBench, "checkpoint");
  const std::unique_ptr<FileSystem> memory = NewMemoryFileSystem();
  constexpr uint64_t kRows = 200'000;
  TableSpec spec = job.tables.front();
  spec.dim = 16;
  TableSlice slice(spec, {0}, 1);
  std::vector<Key> keys;
  for (uint64_t row = 0; row < kRows; ++row) keys.push_back(MixBits(row));
  slice.Store(keys, spec.dim, std::vector<float>(kRows * spec.dim, 0.5f));
  const SnapshotHeader header{1, {0}, 1, 1};
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    double before = ThreadCpuSeconds();
    HDPS_ASSIGN_OR_RETURN(const SavedFile saved, WriteSnapshot(*memory, "c", header, {&slice}));
    const auto bytes = static_cast<double>(saved.bytes);
    (*samples)["checkpoint.save_byte"].push_back(kNano * (ThreadCpuSeconds() - before) / bytes);
    TableSlice empty(spec, {0}, 1);
    before = ThreadCpuSeconds();
    HDPS_RETURN_IF_ERROR(ReadSnapshot(*memory, "c", saved, header, {&empty}));
    (*samples)["checkpoint.load_byte"].push_back(kNano * (ThreadCpuSeconds() - before) / bytes);
  }
  return Status();
}

Status MeasureStart(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  PrintProgress(kBench, "start of a cluster");
  JobRunOptions options;
  options.job = ConstantsJob(16, "64, 32", setting.scratch, "auto");
  options.overrides = {"train.max_steps=2"};
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    options.out = JoinPath(setting.scratch, "start_" + std::to_string(repeat));
    HDPS_ASSIGN_OR_RETURN(const JobRun run, RunJob(setting, files, options));
    HDPS_RETURN_IF_ERROR(files.RemoveAll(options.out));
    (*samples)["cluster.start"].push_back(run.first_step_seconds);
  }
  return Status();
}

}  // namespace

Result<ConstantSamples> MeasureConstants(const BenchSetting& setting, FileSystem& files) {
  SyntheticLogSpec log;
  log.rows = kLogRows;
  log.eval_rows = 0;
  log.vocabulary = 100'000;
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, setting.scratch, log).status());
  HDPS_ASSIGN_OR_RETURN(const Job job,
                        ParseJob(ConstantsJob(16, "64, 32", setting.scratch, "auto"), kBench, {}));
  ConstantSamples samples;
  samples["machine.cores"] = {double(NewTbbExecutor(setting.threads)->threads())};
  HDPS_RETURN_IF_ERROR(MeasureProducts(setting, &samples));
  HDPS_RETURN_IF_ERROR(MeasureLayers(setting, files, &samples));
  HDPS_RETURN_IF_ERROR(MeasureParts(setting, files, &samples));
  HDPS_RETURN_IF_ERROR(MeasureSharing(setting, files, &samples));
  HDPS_RETURN_IF_ERROR(MeasureReader(setting, files, job, &samples));
  HDPS_RETURN_IF_ERROR(MeasureRows(setting, files, &samples));
  HDPS_RETURN_IF_ERROR(MeasureTier(setting, &samples));
  HDPS_RETURN_IF_ERROR(MeasureDisk(setting, files, &samples));
  HDPS_RETURN_IF_ERROR(MeasureCheckpoint(setting, job, &samples));
  HDPS_RETURN_IF_ERROR(MeasureStart(setting, files, &samples));
  return samples;
}

Result<MachineConstants> ConstantsOf(const ConstantSamples& samples) {
  std::map<std::string, double> values;
  for (const auto& [name, of_name] : samples) values[name] = MedianOf(of_name);
  return ConstantsFrom(values);
}

Status RunConstantsBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  HDPS_ASSIGN_OR_RETURN(const ConstantSamples samples, MeasureConstants(setting, files));
  // Fails if a constant is missing.
  HDPS_ASSIGN_OR_RETURN(MachineConstants constants, ConstantsOf(samples));
  const std::vector<NamedConstant> named = NamedConstants(&constants);
  for (const auto& [name, of_name] : samples) {
    const size_t point = name.find('.');
    std::string unit = "GFLOP/s";  // The unit of products.
    for (const NamedConstant& constant : named) {
      if (name == constant.name) unit = constant.unit;
    }
    report.Add(kBench, name.substr(0, point), name.substr(point + 1), unit, of_name);
  }
  return Status();
}

}  // namespace hdps
