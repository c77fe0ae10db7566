// Measures one GPU's part of a model's step beside the products alone by cuBLASLt, the step's bytes
// alone over the bus, and a plain copy in the GPU's memory.
#include "benchmarks/cases/device_bench.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/yardsticks/device_yardsticks.h"
#include "common/base/enum_words.h"
#include "common/job/spec/precision.h"
#include "common/job/spec/table_spec.h"
#include "tools/plan/job_shape.h"

namespace hdps {
namespace {

constexpr char kBench[] = "device";

// REF-L: 39 fields, 200,000 rows, dim 80, MLP 1024-512-256-128-1, batches of 16,000.
constexpr ModelCase kRefL = {"ref_l",
                             16'000,
                             20,
                             R"("format": "libffm", "num_fields": 39)",
                             R"("embedding_dim": 80, "hidden": [1024, 512, 256, 128])",
                             false,
                             200'000 / 39};
// Steps that are not measured: memory is taken in the first, graphs are built in the second, and
// the libraries load their kernels and choose their algorithms.
constexpr int kFirstSteps = 3;
constexpr DeviceSizes kSizes = {kRefL, size_t{1} << 30, size_t{256} << 20, 10};

// The dense layers of a model alone, by the calls that its layers make: products with bias and
// ReLU, and the backward pass down to the gradient of the embeddings.
class DenseLayers {
 public:
  DenseLayers(DenseOps& ops, const std::vector<Product>& products, size_t batch)
      : ops_(ops), batch_(batch), in_(&ops), in_gradient_(&ops) {
    for (const Product& product : products) {
      Layer& layer = *layers_.emplace_back(std::make_unique<Layer>(&ops, product));
      Fill(layer.weights, size_t{product.inputs} * product.units, 0.01f);
      Fill(layer.weight_gradient, size_t{product.inputs} * product.units, 0.0f);
      Fill(layer.bias, product.units, 0.0f);
      Fill(layer.bias_gradient, product.units, 0.0f);
      Fill(layer.out, batch * RowStride(product.units), 0.25f);
      Fill(layer.out_gradient, batch * RowStride(product.units), 0.25f);
    }
    Fill(in_, batch * RowStride(products[0].inputs), 0.5f);
    Fill(in_gradient_, batch * RowStride(products[0].inputs), 0.0f);
    for (int step = 0; step < kFirstSteps; ++step) Step();
    ops_.Finish();
  }

  double ExamplesPerSecond(int steps) {
    const double seconds = SecondsOf([&] {
      for (int step = 0; step < steps; ++step) Step();
      ops_.Finish();
    });
    return steps * static_cast<double>(batch_) / seconds;
  }

 private:
  struct Layer {
    Layer(DenseOps* ops, const Product& of)
        : product(of),
          weights(ops),
          weight_gradient(ops),
          bias(ops),
          bias_gradient(ops),
          out(ops),
          out_gradient(ops),
          weights16(ops),
          out16(ops),
          out_gradient16(ops) {}
    Matrix Weights(DeviceArray& array) const {
      return {array.data(), product.inputs, product.units, product.units};
    }
    const Product product;
    DeviceArray weights, weight_gradient, bias, bias_gradient, out, out_gradient;
    DeviceArray weights16, out16, out_gradient16;  // In bf16.
  };

  void Fill(DeviceArray& array, size_t floats, float value) {
    ops_.Upload(std::vector<float>(floats, value), array.Reserve(floats));
  }
  // Returns the input of layer l, and its gradient.
  Matrix In(size_t l) {
    return (l == 0 ? in_ : layers_[l - 1]->out).ReserveRows(batch_, layers_[l]->product.inputs);
  }
  Matrix InGradient(size_t l) {
    return (l == 0 ? in_gradient_ : layers_[l - 1]->out_gradient)
        .ReserveRows(batch_, layers_[l]->product.inputs);
  }
  Matrix Out(size_t l) { return layers_[l]->out.ReserveRows(batch_, layers_[l]->product.units); }
  Matrix OutGradient(size_t l) {
    return layers_[l]->out_gradient.ReserveRows(batch_, layers_[l]->product.units);
  }

  // ---- in bf16.

  // Returns whether the layer's input is in bf16, by the rule of ChooseBf16().
  bool InBf16(size_t l) const {
    constexpr uint32_t kUnitsMin = 16;
    return ops_.bf16() != nullptr && l < layers_.size() && layers_[l]->product.units >= kUnitsMin;
  }
  // The memory of floats that are not looked at otherwise serves for what stands in bf16.
  Bf16Matrix In16(size_t l) {
    return (l == 0 ? in_ : layers_[l - 1]->out16)
        .ReserveBf16Rows(batch_, layers_[l]->product.inputs);
  }
  Bf16Matrix InGradient16(size_t l) {
    return (l == 0 ? in_gradient_ : layers_[l - 1]->out_gradient16)
        .ReserveBf16Rows(batch_, layers_[l]->product.inputs);
  }
  Bf16Matrix OutGradient16(size_t l) {
    return layers_[l]->out_gradient16.ReserveBf16Rows(batch_, layers_[l]->product.units);
  }
  Bf16Matrix Weights16(size_t l) {
    return layers_[l]->weights16.ReserveBf16Rows(layers_[l]->product.inputs,
                                                 layers_[l]->product.units);
  }

  void Forward(size_t l) {
    Layer& layer = *layers_[l];
    const GemmSpec spec{.bias = layer.bias.data(), .relu = l + 1 < layers_.size()};
    if (!InBf16(l)) return ops_.Gemm(spec, In(l), layer.Weights(layer.weights), Out(l));
    ops_.bf16()->Narrow(layer.Weights(layer.weights), Weights16(l));
    Bf16Tile out;
    if (InBf16(l + 1)) {
      out.bf16 = In16(l + 1);
    } else {
      out.fp32 = Out(l);
    }
    ops_.bf16()->Gemm(spec, In16(l), Weights16(l), out);
  }
  // `masked` says that the output's gradient is already that in front of the ReLU. Returns the same
  // of the input's gradient.
  bool Backward(size_t l, bool masked) {
    Layer& layer = *layers_[l];
    float* bias_gradient = layer.bias_gradient.data();
    if (!masked) ops_.ActivationBackward(Out(l), true, OutGradient(l), bias_gradient);
    if (!masked) bias_gradient = nullptr;
    if (InBf16(l)) {
      if (!InBf16(l + 1)) ops_.bf16()->Narrow(OutGradient(l), OutGradient16(l));
      Bf16DenseBackward backward;
      backward.x = In16(l);
      backward.weights = Weights16(l);
      backward.dy = OutGradient16(l);
      backward.weight_gradient = layer.Weights(layer.weight_gradient);
      backward.bias_gradient = bias_gradient;
      backward.dx.bf16 = InGradient16(l);
      backward.relu_below = l > 0;
      ops_.bf16()->BackwardOfDense(backward);
      return true;
    }
    DenseBackward backward;
    backward.x = In(l);
    backward.weights = layer.Weights(layer.weights);
    backward.dy = OutGradient(l);
    backward.weight_gradient = layer.Weights(layer.weight_gradient);
    backward.bias_gradient = bias_gradient;
    backward.dx = InGradient(l);
    backward.relu_below = l > 0;
    return ops_.BackwardOfDense(backward);
  }
  void Step() {
    for (size_t l = 0; l < layers_.size(); ++l) Forward(l);
    bool masked = true;  // The logits have no activation.
    for (size_t l = layers_.size(); l-- > 0;) masked = Backward(l, masked);
  }

  DenseOps& ops_;
  const size_t batch_;
  DeviceArray in_, in_gradient_;
  std::vector<std::unique_ptr<Layer>> layers_;
};

// The rows of a model's widest table, gathered for each key of the batch, and the gradients of all
// keys summed by row.
class PooledRows {
 public:
  PooledRows(ModelAtWork& model, size_t table)
      : ops_(model.ops()),
        batch_(model.batch().num_examples),
        dim_(model.job().tables[table].dim),
        num_rows_(model.keys_of_table(table).unique.size()),
        rows_(&ops_),
        row_gradients_(&ops_),
        pooled_(&ops_) {
    const KeySet& keys = model.keys_of_table(table);
    for (size_t f = 0; f < keys.row_index.size(); ++f) {
      if (keys.row_index[f].empty()) continue;
      bags_.push_back({model.batch().sparse[f].offsets, keys.row_index[f], {}});
      keys_ += keys.row_index[f].size();
    }
    ops_.Upload(std::vector<float>(num_rows_ * dim_, 0.5f), rows_.Reserve(num_rows_ * dim_));
    ops_.FillZero(row_gradients_.Reserve(num_rows_ * dim_), num_rows_ * dim_);
    ops_.LoadBags(bags_, static_cast<uint32_t>(num_rows_), &index_);
    Forward();
    Backward();  // Warms up: allocates memory.
  }

  // Counts for each key a row read and a value written in device memory, or the reverse.
  double ForwardGbs(int times) {
    return Gbs(times, [this] { Forward(); });
  }
  double BackwardGbs(int times) {
    return Gbs(times, [this] { Backward(); });
  }

 private:
  double Gbs(int times, const std::function<void()>& work) {
    ops_.Finish();
    const double seconds = SecondsOf([&] {
      for (int i = 0; i < times; ++i) work();
      ops_.Finish();
    });
    return times * 2.0 * static_cast<double>(keys_ * dim_ * sizeof(float)) * 1e-9 / seconds;
  }
  void Forward() {
    ops_.Pool(*index_, Spec(), std::span<const float>(rows_.data(), num_rows_ * dim_), Pooled());
  }
  void Backward() {
    ops_.PoolBackward(*index_, Spec(), ConstMatrix(Pooled()), Write::kOver,
                      std::span<float>(row_gradients_.data(), num_rows_ * dim_));
  }
  PoolSpec Spec() const { return {.dim = dim_}; }
  Matrix Pooled() { return pooled_.ReserveRows(batch_, bags_.size() * dim_); }

  DenseOps& ops_;
  const size_t batch_;
  const uint32_t dim_;
  const size_t num_rows_;
  size_t keys_ = 0;
  std::vector<Bags> bags_;
  std::unique_ptr<BagIndex> index_;
  DeviceArray rows_, row_gradients_, pooled_;
};

double Gigabytes(double bytes) { return bytes * 1e-9; }

// Measures the bus and the device's memory alone.
void RunCopies(const DeviceSizes& sizes, const BenchSetting& setting, DeviceYardsticks& yardsticks,
               BenchReport& report) {
  const double bus = Gigabytes(static_cast<double>(sizes.bus_bytes) * sizes.copies);
  const double memory = Gigabytes(static_cast<double>(sizes.memory_bytes) * sizes.copies);
  const auto copies = [&](size_t up, size_t down) {
    return yardsticks.BusCopies(up, down, sizes.copies);
  };
  const auto samples = InterleavedSamples(
      setting.repeats,
      {[&] { return bus / copies(sizes.bus_bytes, 0); },
       [&] { return bus / copies(0, sizes.bus_bytes); },
       [&] { return 2 * bus / copies(sizes.bus_bytes, sizes.bus_bytes); },
       [&] { return 2 * memory / yardsticks.MemoryCopies(sizes.memory_bytes, sizes.copies); },
       [&] { return memory / yardsticks.MemoryReads(sizes.memory_bytes, sizes.copies); }});
  report.Add(kBench, "bus", "pinned copies up", "GB/s", samples[0]);
  report.Add(kBench, "bus", "pinned copies down", "GB/s", samples[1]);
  report.Add(kBench, "bus", "both at once, together", "GB/s", samples[2]);
  report.Add(kBench, "memory", "a copy, read and written", "GB/s", samples[3]);
  report.Add(kBench, "memory", "read once by a kernel", "GB/s", samples[4]);
}

// Returns the table with keys that has the widest rows.
size_t WidestTable(const ModelAtWork& model) {
  size_t widest = 0;
  uint32_t dim = 0;
  for (size_t t = 0; t < model.job().tables.size(); ++t) {
    if (!model.has_keys(t) || model.job().tables[t].dim <= dim) continue;
    widest = t;
    dim = model.job().tables[t].dim;
  }
  return widest;
}

// Measures the pooling of its rows in device memory.
void RunPooling(const DeviceSizes& sizes, const BenchSetting& setting, ModelAtWork& model,
                DeviceYardsticks& yardsticks, BenchReport& report) {
  PooledRows rows(model, WidestTable(model));
  const double memory = 2 * Gigabytes(static_cast<double>(sizes.memory_bytes) * sizes.copies);
  const auto samples = InterleavedSamples(
      setting.repeats,
      {[&] { return rows.ForwardGbs(sizes.copies); },
       [&] { return rows.BackwardGbs(sizes.copies); },
       [&] { return memory / yardsticks.MemoryCopies(sizes.memory_bytes, sizes.copies); }});
  const char* const copy = "a copy within the GPU's memory";
  report.AddBeside(kBench, "rows", "gathered and pooled", "GB/s", samples[0], copy, samples[2]);
  report.AddBeside(kBench, "rows", "gradients added up by row", "GB/s", samples[1], copy,
                   samples[2]);
}

Status RunModel(const DeviceSizes& sizes, const BenchSetting& setting, Precision precision,
                DeviceYardsticks& yardsticks, BenchReport& report) {
  const ModelCase& c = sizes.model;
  const std::string word(WordOf(precision)), name = std::string(c.name) + "_" + word;
  if (!setting.Wants(name)) return Status();
  PrintProgress(kBench, name);
  HDPS_ASSIGN_OR_RETURN(const auto model, ModelAtWork::Make(c, setting, "plain", word));
  HDPS_ASSIGN_OR_RETURN(const JobShape shape, ShapeOf(model->job()));
  const DeviceTraffic before = model->ops().traffic();
  model->Step();
  const DeviceTraffic after = model->ops().traffic();
  model->ExamplesPerSecond(kFirstSteps);
  DenseLayers layers(model->ops(), shape.products, c.batch);
  const int steps = setting.quick ? 1 : c.steps;
  const double examples = static_cast<double>(c.batch) * steps;
  Status refused;
  const auto samples = InterleavedSamples(
      setting.repeats,
      {[&] { return model->ExamplesPerSecond(steps); },
       [&] { return layers.ExamplesPerSecond(steps); },
       [&] {
         const auto seconds = yardsticks.Products(shape.products, c.batch, precision, steps);
         if (!seconds.ok()) refused = seconds.status();
         return seconds.ok() ? examples / *seconds : 0.0;
       },
       [&] {
         return examples / yardsticks.BusCopies(after.up_bytes - before.up_bytes,
                                                after.down_bytes - before.down_bytes, steps);
       }});
  HDPS_RETURN_IF_ERROR(refused);
  double flops = 0;
  for (const Product& product : shape.products) flops += 3 * product.flops();
  std::vector<double> teraflops;
  for (const double speed : samples[2]) teraflops.push_back(speed * flops * 1e-12);
  const char* const alone = "the same products by cuBLASLt alone";
  report.Add(kBench, name, "products by cuBLASLt alone", "TFLOP/s", teraflops);
  report.AddBeside(kBench, name, "dense layers", "examples/s", samples[1], alone, samples[2]);
  report.AddBeside(kBench, name, "model step, rows from the host", "examples/s", samples[0], alone,
                   samples[2]);
  report.AddBeside(kBench, name, "model step beside its bytes", "examples/s", samples[0],
                   "the step's bytes over the bus alone, both ways at once", samples[3]);
  if (precision == Precision::kFp32) RunPooling(sizes, setting, *model, yardsticks, report);
  return Status();
}

}  // namespace

Status RunDeviceCases(const DeviceSizes& sizes, const BenchSetting& asked, BenchReport& report) {
  BenchSetting setting = asked;
  setting.device = "cuda";
  const auto yardsticks = DeviceYardsticks::Make();
  if (!yardsticks.ok()) {
    PrintProgress(kBench, "skipped: " + yardsticks.status().message());
    return Status();
  }
  if (setting.Wants("bus") || setting.Wants("memory")) {
    RunCopies(sizes, setting, **yardsticks, report);
  }
  // A case that fails does not stop the others.
  Status failed;
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    const Status status = RunModel(sizes, setting, precision, **yardsticks, report);
    if (status.ok()) continue;
    PrintProgress(kBench, std::string(WordOf(precision)) + ": " + status.message());
    failed = status;
  }
  return report.results().empty() ? failed : Status();
}

Status RunDeviceBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  return RunDeviceCases(kSizes, setting, report);
}

}  // namespace hdps
