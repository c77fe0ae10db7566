// What `hdps plan` must know of this machine: products, layers, reader, disk, and, from
// constants_of_rows.cc, exchanges and rows.
#include <algorithm>
#include <memory>
#include <utility>

#include "benchmarks/constants.h"
#include "benchmarks/job_run.h"
#include "benchmarks/model_products.h"
#include "benchmarks/plain_file.h"
#include "common/hash.h"
#include "embedding/snapshot.h"
#include "worker/data/batch_reader.h"
#include "worker/data/synthetic_log.h"
#include "worker/model/model.h"

namespace hdps {
namespace {

constexpr char kBench[] = "constants";
constexpr double kNano = 1e9;
constexpr uint32_t kBatch = 4096;

double Above0(double value) { return std::max(value, 0.0); }

std::string ModelJob(uint32_t dim, const std::string& hidden, const std::string& folder) {
  return R"({"name": "constants", "data": {"format": "criteo", "train": [")" +
         JoinPath(folder, "train.tsv") + R"("]}, "model": {"type": "wide_deep", "device": "cpu",
         "embedding_dim": )" +
         std::to_string(dim) + R"(, "hidden": [)" + hidden + R"(]},
         "train": {"batch_size": )" +
         std::to_string(kBatch) + "}}";
}

Status MeasureProducts(const BenchSetting& setting, ConstantSamples* samples) {
  constexpr Product kShapes[] = {{3120, 1024}, {1024, 512}, {429, 1024}, {512, 256}, {256, 128},
                                 {429, 64},    {1300, 64},  {64, 32},    {128, 64},  {128, 1}};
  for (const size_t batch : {size_t{256}, size_t{1024}, size_t{kBatch}}) {
    SayProgress(kBench, "products of batches of " + std::to_string(batch));
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

// ---- The reader --------------------------------------------------------------------------------

Result<double> SecondsToParse(FileSystem& files, const DataSpec& data, uint32_t parts) {
  HDPS_ASSIGN_OR_RETURN(
      const auto reader,
      NewBatchReader(files, data, data.train,
                     {.batch_size = kBatch, .num_parts = parts, .shuffle = true}));
  const double before = ThreadCpuSeconds();
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  while (true) {
    HDPS_ASSIGN_OR_RETURN(const auto batch, reader->Next());
    if (!batch.has_value()) return ThreadCpuSeconds() - before;
  }
}

Result<Batch> FirstBatch(FileSystem& files, const DataSpec& data) {
  HDPS_ASSIGN_OR_RETURN(const auto reader, NewBatchReader(files, data, data.train,
                                                          {.batch_size = kBatch, .shuffle = true}));
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  HDPS_ASSIGN_OR_RETURN(auto batch, reader->Next());
  if (!batch.has_value()) return Status(Code::kUnavailable, "constants: no batch");
  return *std::move(batch);
}

Status MeasureReader(const BenchSetting& setting, FileSystem& files, const Job& job,
                     ConstantSamples* samples) {
  SayProgress(kBench, "reader");
  HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, files.FileSize(job.data.train[0]));
  HDPS_ASSIGN_OR_RETURN(const Batch batch, FirstBatch(files, job.data));
  KeyFinder finder(job);
  std::vector<KeySet> sets;
  finder.Find(batch, &sets);
  constexpr uint32_t kParts = 4;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    HDPS_ASSIGN_OR_RETURN(const double all, SecondsToParse(files, job.data, 1));
    HDPS_ASSIGN_OR_RETURN(const double quarter, SecondsToParse(files, job.data, kParts));
    const double each = kNano / static_cast<double>(bytes);
    (*samples)["reader.read_byte"].push_back(each * all);
    // A quarter of the rows was parsed too.
    (*samples)["reader.scan_byte"].push_back(each * Above0((kParts * quarter - all) / 3));
    constexpr int kTimes = 10;
    const double before = ThreadCpuSeconds();
    for (int time = 0; time < kTimes; ++time) finder.Find(batch, &sets);
    (*samples)["reader.dedup_key"].push_back(kNano * (ThreadCpuSeconds() - before) / kTimes /
                                             (26.0 * kBatch));
  }
  return Status();
}

// ---- Layers ------------------------------------------------------------------------------------

// One model that computes steps of one batch, without servers.
class LoneModel {
 public:
  static Result<std::unique_ptr<LoneModel>> Make(const BenchSetting& setting, const Job& job,
                                                 const Batch& batch) {
    std::unique_ptr<LoneModel> lone(new LoneModel());
    lone->batch_ = batch;
    lone->executor_ = NewTbbExecutor(setting.threads);
    HDPS_ASSIGN_OR_RETURN(lone->model_, NewModel(job, *lone->executor_));
    HDPS_ASSIGN_OR_RETURN(lone->shape_, ShapeOf(job));
    HDPS_ASSIGN_OR_RETURN(lone->products_, ModelProducts::Make("cpu", setting.threads,
                                                               lone->shape_.products, kBatch));
    lone->model_->SetDense(lone->model_->InitialDense(1));
    std::vector<int> table_keys;
    FindKeys(job, batch, &lone->sets_, &table_keys);
    lone->rows_.resize(job.tables.size());
    lone->inputs_.resize(job.tables.size());
    for (size_t t = 0; t < job.tables.size(); ++t) {
      if (table_keys[t] < 0) continue;
      const KeySet& set = lone->sets_[static_cast<size_t>(table_keys[t])];
      lone->rows_[t].assign(set.unique.size() * job.tables[t].dim, 0.01f);
      lone->inputs_[t] = {&set, lone->rows_[t]};
    }
    lone->gradients_.resize(lone->model_->dense_floats());
    return lone;
  }

  const JobShape& shape() const { return shape_; }
  // Nanoseconds of an example beside the products, which are measured in turns with it.
  double LayersNs(int steps) {
    Step();
    const double all = SecondsOf([&] {
      for (int step = 0; step < steps; ++step) Step();
    });
    const double examples = static_cast<double>(steps) * kBatch;
    return kNano * Above0(all / examples - 1 / products_->ExamplesPerSecond(steps));
  }

 private:
  LoneModel() = default;
  void Step() { model_->Step(batch_, inputs_, &result_, gradients_); }

  Batch batch_;
  JobShape shape_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelProducts> products_;
  std::vector<KeySet> sets_;
  std::vector<std::vector<float>> rows_;
  std::vector<TableInput> inputs_;
  StepResult result_;
  std::vector<float> gradients_;
};

Status MeasureLayers(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  SayProgress(kBench, "layers");
  const auto make = [&](uint32_t dim, const char* hidden) -> Result<std::unique_ptr<LoneModel>> {
    HDPS_ASSIGN_OR_RETURN(const Job job,
                          ParseJob(ModelJob(dim, hidden, setting.scratch), kBench, {}));
    HDPS_ASSIGN_OR_RETURN(const Batch batch, FirstBatch(files, job.data));
    return LoneModel::Make(setting, job, batch);
  };
  HDPS_ASSIGN_OR_RETURN(const auto small, make(16, "64, 32"));
  HDPS_ASSIGN_OR_RETURN(const auto wide, make(80, "64, 32"));
  HDPS_ASSIGN_OR_RETURN(const auto large, make(16, "1024, 512, 256, 128"));
  const auto floats = [](const LoneModel& model, bool embedding) {
    const JobShape& shape = model.shape();
    return static_cast<double>(embedding ? shape.embedding_floats : shape.activation_floats);
  };
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    constexpr int kSmallSteps = 8, kLargeSteps = 3;
    const double t_small = small->LayersNs(kSmallSteps), t_wide = wide->LayersNs(kSmallSteps),
                 t_large = large->LayersNs(kLargeSteps);
    const double of_embedding =
        Above0((t_wide - t_small) / (floats(*wide, true) - floats(*small, true)));
    const double of_activation =
        Above0((t_large - t_small) / (floats(*large, false) - floats(*small, false)));
    (*samples)["model.embedding_float"].push_back(of_embedding);
    (*samples)["model.activation_float"].push_back(of_activation);
    (*samples)["model.example"].push_back(Above0(t_small - of_embedding * floats(*small, true) -
                                                 of_activation * floats(*small, false)));
  }
  return Status();
}

// ---- Disk and checkpoints ----------------------------------------------------------------------

Status MeasureDisk(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  SayProgress(kBench, "disk");
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
  SayProgress(kBench, "checkpoint");
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
  SayProgress(kBench, "start of a cluster");
  JobRunOptions options;
  options.job = ModelJob(16, "64, 32", setting.scratch);
  options.overrides = {"train.max_steps=2"};
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    options.out = JoinPath(setting.scratch, "start_" + std::to_string(repeat));
    HDPS_ASSIGN_OR_RETURN(const JobRun run, RunJob(setting, files, options));
    (*samples)["cluster.start"].push_back(run.first_step_seconds);
  }
  return Status();
}

}  // namespace

Result<ConstantSamples> MeasureConstants(const BenchSetting& setting, FileSystem& files) {
  SyntheticLogSpec log;
  log.rows = 65'536;
  log.eval_rows = 0;
  log.vocabulary = 100'000;
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, setting.scratch, log).status());
  HDPS_ASSIGN_OR_RETURN(const Job job,
                        ParseJob(ModelJob(16, "64, 32", setting.scratch), kBench, {}));
  ConstantSamples samples;
  samples["machine.cores"] = {double(NewTbbExecutor(setting.threads)->threads())};
  HDPS_RETURN_IF_ERROR(MeasureProducts(setting, &samples));
  HDPS_RETURN_IF_ERROR(MeasureLayers(setting, files, &samples));
  HDPS_RETURN_IF_ERROR(MeasureReader(setting, files, job, &samples));
  HDPS_RETURN_IF_ERROR(MeasureRows(setting, files, &samples));
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
  HDPS_RETURN_IF_ERROR(ConstantsOf(samples).status());  // None is missing.
  for (const auto& [name, of_name] : samples) {
    const size_t point = name.find('.');
    std::string unit = name.ends_with(".base") ? "us" : "ns";
    if (name.starts_with("products_")) unit = "GFLOP/s";
    for (const ConstantName& constant : AllConstants()) {
      if (name == constant.name) unit = constant.unit;
    }
    report.Add(kBench, name.substr(0, point), name.substr(point + 1), unit, of_name);
  }
  return Status();
}

}  // namespace hdps
