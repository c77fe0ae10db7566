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
#include "worker/train/step_parts.h"

namespace hdps {
namespace {

constexpr char kBench[] = "constants";
constexpr double kNano = 1e9;
constexpr uint32_t kBatch = 4096;
constexpr uint64_t kLogRows = 131'072;  // Twice what a reader mixes.
constexpr size_t kBatches = 6;          // Different ones, so that what a step finds is not at hand.

double Above0(double value) { return std::max(value, 0.0); }

std::string ModelJob(uint32_t dim, const std::string& hidden, const std::string& folder,
                     const std::string& first_layer = "auto") {
  return R"({"name": "constants", "data": {"format": "criteo", "train": [")" +
         JoinPath(folder, "train.tsv") + R"("]}, "model": {"type": "wide_deep", "device": "cpu",
         "embedding_dim": )" +
         std::to_string(dim) + R"(, "first_layer": ")" + first_layer + R"(", "hidden": [)" +
         hidden + R"(]}, "train": {"batch_size": )" + std::to_string(kBatch) + "}}";
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

// Of the first epoch and the one behind it.
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

Result<std::vector<Batch>> FirstBatches(FileSystem& files, const DataSpec& data, size_t count) {
  HDPS_ASSIGN_OR_RETURN(const auto reader, NewBatchReader(files, data, data.train,
                                                          {.batch_size = kBatch, .shuffle = true}));
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  std::vector<Batch> batches;
  while (batches.size() < count) {
    HDPS_ASSIGN_OR_RETURN(auto batch, reader->Next());
    if (!batch.has_value()) return Status(Code::kUnavailable, "constants: too few batches");
    batches.push_back(*std::move(batch));
  }
  return batches;
}

Status MeasureReader(const BenchSetting& setting, FileSystem& files, const Job& job,
                     ConstantSamples* samples) {
  SayProgress(kBench, "reader");
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
    HDPS_ASSIGN_OR_RETURN(const ParseSeconds many,
                          SecondsToParse(files, job.data, 16 * kPartsMany));
    const double each = kNano / static_cast<double>(bytes);
    (*samples)["reader.read_byte"].push_back(each * whole_log.first);
    // A quarter of the rows was parsed too.
    (*samples)["reader.scan_byte"].push_back(
        each * Above0((kParts * quarter.first - whole_log.first) / 3));
    constexpr double kOwnOfFew = 1.0 / kPartsMany, kOwnOfMany = kOwnOfFew / 16;
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

// Rows of micro-batches cut out of those of the step, and their gradients added up.
Status MeasureParts(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  constexpr uint32_t kParts = 4, kNarrow = 16, kWide = 80;
  HDPS_ASSIGN_OR_RETURN(const Job job,
                        ParseJob(ModelJob(16, "64, 32", setting.scratch), kBench, {}));
  HDPS_ASSIGN_OR_RETURN(std::vector<Batch> batches, FirstBatches(files, job.data, 1));
  KeyFinder finder(job);
  StepParts parts;
  parts.Assign(std::move(batches[0]), kParts, finder);
  constexpr TableId kTable{0};
  size_t part_rows = 0;
  for (size_t p = 0; p < kParts; ++p) part_rows += parts.SetOf(p, kTable)->unique.size();
  const size_t rows = parts.KeysOf(kTable).size();
  std::vector<float> of_step(rows * kWide, 0.01f), sums(rows * kWide);
  std::vector<std::vector<float>> scratch(kParts);
  const auto seconds = [&](uint32_t dim) {
    return SecondsOf([&] {
      for (size_t p = 0; p < kParts; ++p) {
        parts.RowsOfPart(p, kTable, dim, std::span(of_step).first(rows * dim), &scratch[p]);
        parts.AddRowGradients(p, kTable, dim, scratch[p], std::span(sums).first(rows * dim));
      }
    });
  };
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    const double narrow = seconds(kNarrow) / double(part_rows);
    const double wide = seconds(kWide) / double(part_rows);
    const double a_float = Above0((wide - narrow) / double(kWide - kNarrow));
    (*samples)["model.merge_float"].push_back(kNano * a_float);
    (*samples)["model.merge_row"].push_back(kNano * Above0(narrow - kNarrow * a_float));
  }
  return Status();
}

// ---- Layers ------------------------------------------------------------------------------------

// One model that computes steps, without servers. As in a run, each has another batch, and its rows
// have just been written by whichever threads a server uses.
class LoneModel {
 public:
  static Result<std::unique_ptr<LoneModel>> Make(const BenchSetting& setting, FileSystem& files,
                                                 uint32_t dim, const char* hidden,
                                                 const char* first_layer) {
    HDPS_ASSIGN_OR_RETURN(
        Job job, ParseJob(ModelJob(dim, hidden, setting.scratch, first_layer), kBench, {}));
    std::unique_ptr<LoneModel> lone(new LoneModel(std::move(job)));
    HDPS_ASSIGN_OR_RETURN(lone->batches_, FirstBatches(files, lone->job_.data, kBatches));
    lone->executor_ = NewTbbExecutor(setting.threads);
    HDPS_ASSIGN_OR_RETURN(lone->model_, NewModel(lone->job_, *lone->executor_));
    HDPS_ASSIGN_OR_RETURN(lone->shape_, ShapeOf(lone->job_));
    std::vector<Product> products = lone->shape_.products;
    if (std::string(first_layer) == "unique_rows") {
      for (Product& product : products) {  // What is left of it.
        product.inputs -= product.row_features * product.row_dim;
      }
    }
    HDPS_ASSIGN_OR_RETURN(lone->products_,
                          ModelProducts::Make("cpu", setting.threads, products, kBatch));
    lone->model_->SetDense(lone->model_->InitialDense(1));
    lone->gradients_.resize(lone->model_->dense_floats());
    KeyFinder finder(lone->job_);
    lone->sets_.resize(kBatches);
    for (size_t b = 0; b < kBatches; ++b) finder.Find(lone->batches_[b], &lone->sets_[b]);
    lone->table_keys_ = finder.table_keys();
    return lone;
  }

  const JobShape& shape() const { return shape_; }
  double unique() const {
    double sum = 0;
    for (const std::vector<KeySet>& sets : sets_) sum += double(sets[0].unique.size());
    return sum / kBatches;
  }
  // Nanoseconds of an example beside the products, which are measured in turns with it.
  double LayersNs(size_t steps) {
    Step(0);
    double all = 0;
    for (size_t step = 1; step <= steps; ++step) all += Step(step % kBatches);
    const double examples = static_cast<double>(steps) * kBatch;
    return kNano * Above0(all / examples - 1 / products_->ExamplesPerSecond(int(steps)));
  }

 private:
  explicit LoneModel(Job job) : job_(std::move(job)) {}

  double Step(size_t b) {
    rows_.resize(job_.tables.size());
    std::vector<TableInput> inputs(job_.tables.size());
    for (size_t t = 0; t < inputs.size(); ++t) {
      if (table_keys_[t] < 0) continue;
      const KeySet& set = sets_[b][static_cast<size_t>(table_keys_[t])];
      rows_[t].resize(set.unique.size() * job_.tables[t].dim);
      constexpr size_t kShards = 32;
      executor_->ParallelFor(kShards, [&](size_t shard) {
        const size_t begin = rows_[t].size() * shard / kShards;
        const size_t end = rows_[t].size() * (shard + 1) / kShards;
        std::fill(rows_[t].begin() + long(begin), rows_[t].begin() + long(end), 0.01f);
      });
      inputs[t] = {&set, rows_[t]};
    }
    return SecondsOf([&] { model_->Step(batches_[b], inputs, &result_, gradients_); });
  }

  const Job job_;
  std::vector<Batch> batches_;
  JobShape shape_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelProducts> products_;
  std::vector<std::vector<KeySet>> sets_;  // [batches]
  std::vector<int> table_keys_;
  std::vector<std::vector<float>> rows_;
  StepResult result_;
  std::vector<float> gradients_;
};

// Nanoseconds of an example in a first layer on `unique` distinct rows an example.
struct FirstLayerNs {
  double narrow, wide;      // Rows of 16 and 80 floats, 768 units.
  double wide_few, unique;  // Rows of 80 floats, 64 units.
};
void AddFirstLayer(const FirstLayerNs& t, ConstantSamples* samples) {
  constexpr double kFields = 26, kNarrow = 16, kWide = 80, kMany = 768, kFew = 64;
  // Of a float of a distinct row: units * product + place.
  const double with_many = Above0(t.wide - t.narrow) / ((kWide - kNarrow) * t.unique);
  const double gather = Above0(t.wide - kWide * t.unique * with_many) / (kFields * kMany);
  const double with_few = Above0(t.wide_few - kFields * kFew * gather) / (kWide * t.unique);
  constexpr double kLeast = 1e-6, kFlops = 6;  // Forward and both gradients.
  const double product = std::max(with_many - with_few, kLeast) / (kMany - kFew);
  (*samples)["model.row_rate"].push_back(kFlops / product);
  (*samples)["model.row_float"].push_back(Above0(with_few - kFew * product));
  (*samples)["model.gather_float"].push_back(gather);
}

Status MeasureLayers(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  SayProgress(kBench, "layers");
  const auto make = [&](uint32_t dim, const char* hidden, const char* first_layer) {
    return LoneModel::Make(setting, files, dim, hidden, first_layer);
  };
  HDPS_ASSIGN_OR_RETURN(const auto small, make(16, "64, 32", "plain"));
  HDPS_ASSIGN_OR_RETURN(const auto wide, make(80, "64, 32", "plain"));
  HDPS_ASSIGN_OR_RETURN(const auto large, make(16, "768, 256", "plain"));
  HDPS_ASSIGN_OR_RETURN(const auto rows, make(16, "768, 256", "unique_rows"));
  HDPS_ASSIGN_OR_RETURN(const auto wide_rows, make(80, "768, 256", "unique_rows"));
  HDPS_ASSIGN_OR_RETURN(const auto few_units, make(80, "64, 32", "unique_rows"));
  const auto floats = [](const LoneModel& model, bool embedding) {
    const JobShape& shape = model.shape();
    return static_cast<double>(embedding ? shape.embedding_floats : shape.activation_floats);
  };
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    constexpr size_t kSmallSteps = 12, kLargeSteps = 3;
    const double t_small = small->LayersNs(kSmallSteps), t_wide = wide->LayersNs(kSmallSteps),
                 t_large = large->LayersNs(kLargeSteps), t_rows = rows->LayersNs(kLargeSteps),
                 t_wide_rows = wide_rows->LayersNs(kLargeSteps),
                 t_few_units = few_units->LayersNs(kSmallSteps);
    const double of_embedding =
        Above0((t_wide - t_small) / (floats(*wide, true) - floats(*small, true)));
    const double of_activation =
        Above0((t_large - t_small) / (floats(*large, false) - floats(*small, false)));
    const double of_example = Above0(t_small - of_embedding * floats(*small, true) -
                                     of_activation * floats(*small, false));
    (*samples)["model.embedding_float"].push_back(of_embedding);
    (*samples)["model.activation_float"].push_back(of_activation);
    (*samples)["model.example"].push_back(of_example);
    // Beside the first layer, and the rows of the other table.
    constexpr double kFields = 26;
    const auto first_layer_ns = [&](const LoneModel& model, double all) {
      return Above0(all - of_example - of_activation * floats(model, false) -
                    of_embedding * kFields);
    };
    AddFirstLayer({first_layer_ns(*rows, t_rows), first_layer_ns(*wide_rows, t_wide_rows),
                   first_layer_ns(*few_units, t_few_units), rows->unique() / kBatch},
                  samples);
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
                        ParseJob(ModelJob(16, "64, 32", setting.scratch), kBench, {}));
  ConstantSamples samples;
  samples["machine.cores"] = {double(NewTbbExecutor(setting.threads)->threads())};
  HDPS_RETURN_IF_ERROR(MeasureProducts(setting, &samples));
  HDPS_RETURN_IF_ERROR(MeasureLayers(setting, files, &samples));
  HDPS_RETURN_IF_ERROR(MeasureParts(setting, files, &samples));
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
