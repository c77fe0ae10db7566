// Measures a model's layers beside its products, and splits the time into costs of an example, a
// float and a distinct row.
#include <algorithm>
#include <barrier>
#include <memory>
#include <span>
#include <utility>

#include "benchmarks/cases/constants/constants.h"
#include "benchmarks/yardsticks/model_products.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/table_spec.h"
#include "worker/data/batch_reader.h"
#include "worker/model/model.h"
#include "worker/model/step_parts.h"

namespace hdps {
namespace {

constexpr double kNano = 1e9;
constexpr uint32_t kBatch = kConstantsBatch;
constexpr size_t kBatches = kConstantsBatches;

double Above0(double value) { return std::max(value, 0.0); }

// A model that computes steps without servers. As in a run, each step has another batch, whose rows
// were just written by the threads that a server would use.
class LoneModel {
 public:
  static Result<std::unique_ptr<LoneModel>> Make(const BenchSetting& setting, FileSystem& files,
                                                 uint32_t dim, const char* hidden,
                                                 const char* first_layer) {
    HDPS_ASSIGN_OR_RETURN(Job job, ParseJob(ConstantsJob(dim, hidden, setting.scratch, first_layer),
                                            "constants", {}));
    std::unique_ptr<LoneModel> lone(new LoneModel(std::move(job)));
    HDPS_ASSIGN_OR_RETURN(lone->batches_, FirstBatches(files, lone->job_.data, kBatches));
    lone->executor_ = NewTbbExecutor(setting.threads);
    HDPS_ASSIGN_OR_RETURN(lone->model_, NewModel(lone->job_, *lone->executor_));
    HDPS_ASSIGN_OR_RETURN(lone->shape_, ShapeOf(lone->job_));
    std::vector<Product> products = lone->shape_.products;
    if (std::string(first_layer) == "unique_rows") {
      // Products without the embedding inputs that the first layer multiplies on rows.
      for (Product& product : products) {
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
  // Returns the seconds of a step on one of kBatches batches.
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
  // Returns the nanoseconds of an example without the products, which are measured in turns with
  // it.
  double LayersNs(size_t steps) {
    Step(0);
    double all = 0;
    for (size_t step = 1; step <= steps; ++step) all += Step(step % kBatches);
    const double examples = static_cast<double>(steps) * kBatch;
    return kNano * Above0(all / examples - 1 / products_->ExamplesPerSecond(int(steps)));
  }

 private:
  explicit LoneModel(Job job) : job_(std::move(job)) {}

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

// Reads `count` batches and finds their distinct keys.
Status ReadBatches(FileSystem& files, const Job& job, size_t count) {
  HDPS_ASSIGN_OR_RETURN(const auto reader,
                        NewBatchReader(files, job.data, job.data.train,
                                       {.batch_size = kConstantsBatch, .shuffle = true}));
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  KeyFinder finder(job);
  std::vector<KeySet> sets;
  for (size_t b = 0; b < count; ++b) {
    HDPS_ASSIGN_OR_RETURN(const auto batch, reader->Next());
    if (!batch.has_value()) return {Code::kUnavailable, "constants: too few batches"};
    finder.Find(*batch, &sets);
  }
  return {};
}

// Nanoseconds of an example in a first layer with `unique` distinct rows per example.
struct FirstLayerNs {
  double narrow, wide;      // Rows of 16 and 80 floats, 768 units.
  double wide_few, unique;  // Rows of 80 floats, 64 units.
};
void AddFirstLayer(const FirstLayerNs& t, ConstantSamples* samples) {
  constexpr double kFields = 26, kNarrow = 16, kWide = 80, kMany = 768, kFew = 64;
  // Cost of a float of a distinct row: units * product + place.
  const double with_many = Above0(t.wide - t.narrow) / ((kWide - kNarrow) * t.unique);
  const double gather = Above0(t.wide - kWide * t.unique * with_many) / (kFields * kMany);
  const double with_few = Above0(t.wide_few - kFields * kFew * gather) / (kWide * t.unique);
  constexpr double kLeast = 1e-6, kFlops = 6;  // Forward and both gradients.
  const double product = std::max(with_many - with_few, kLeast) / (kMany - kFew);
  (*samples)["model.row_rate"].push_back(kFlops / product);
  (*samples)["model.row_float"].push_back(Above0(with_few - kFew * product));
  (*samples)["model.gather_float"].push_back(gather);
}

// CPU and wall seconds of a step, with computing workers and readers beside them.
struct SharedStep {
  double cpu = 0, wall = 0;
};

// A worker of a cluster and its reader, without a server.
struct LoneWorker {
  std::unique_ptr<LoneModel> model;
  Status read;
};

// Lets each worker compute a step. In lockstep they wait for each other, as they do for a server;
// readers do not.
SharedStep TimeSteps(FileSystem& files, const Job& job, std::span<LoneWorker> workers,
                     std::span<LoneWorker> readers, bool lockstep = false) {
  constexpr size_t kSteps = 20;
  std::barrier<> all_done(static_cast<ptrdiff_t>(workers.size()));
  const double before = ProcessCpuSeconds();
  SharedStep step;
  step.wall = SecondsOf([&] {
    std::vector<std::unique_ptr<Thread>> threads;
    for (LoneWorker& reader : readers) {
      threads.push_back(
          StartThread("reader", [&] { reader.read = ReadBatches(files, job, kSteps); }));
    }
    for (LoneWorker& worker : workers) {
      threads.push_back(StartThread("worker", [&] {
        for (size_t s = 0; s < kSteps; ++s) {
          worker.model->Step(s % kBatches);
          if (lockstep) all_done.arrive_and_wait();
        }
      }));
    }
  });
  step.cpu = (ProcessCpuSeconds() - before) / kSteps;
  step.wall /= kSteps;
  return step;
}

}  // namespace

// Measures what threads on the same cores cost each other: caches, switches, and parallel loops in
// which one core is late.
Status MeasureSharing(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  PrintProgress("constants", "threads that share the cores");
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(ConstantsJob(16, "64, 32", setting.scratch, "auto"),
                                                "constants", {}));
  std::vector<LoneWorker> two(2);
  for (LoneWorker& worker : two) {
    HDPS_ASSIGN_OR_RETURN(worker.model, LoneModel::Make(setting, files, 16, "64, 32", "auto"));
  }
  const std::span<LoneWorker> one = std::span(two).first(1), none;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    const SharedStep model = TimeSteps(files, job, one, none);
    const SharedStep reader = TimeSteps(files, job, none, one);
    const SharedStep beside = TimeSteps(files, job, one, one);
    const SharedStep apart = TimeSteps(files, job, two, two);
    const SharedStep lockstep = TimeSteps(files, job, two, two, true);
    for (const LoneWorker& worker : two) HDPS_RETURN_IF_ERROR(worker.read);
    (*samples)["sharing.beside"].push_back(Above0(beside.cpu - model.cpu - reader.cpu) /
                                           reader.cpu);
    // Two workers that do not wait keep all cores busy.
    (*samples)["sharing.lockstep"].push_back(std::min(apart.wall / lockstep.wall, 1.0));
  }
  return {};
}

Status MeasureLayers(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  PrintProgress("constants", "layers");
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

// Measures how the rows of micro-batches are cut out of those of the step, and their gradients
// summed.
Status MeasureParts(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  constexpr uint32_t kParts = 4, kNarrow = 16, kWide = 80;
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(ConstantsJob(16, "64, 32", setting.scratch, "auto"),
                                                "constants", {}));
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
        parts.AddRowGradients(p, kTable, dim, scratch[p], nullptr,
                              std::span(sums).first(rows * dim));
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

}  // namespace hdps
