// Computes products on arrays of its own.
#include "benchmarks/yardsticks/model_products.h"

#include <string>

namespace hdps {

// Arrays of one product, on the device.
struct ModelProducts::Arrays {
  Arrays(DenseOps& ops, const Product& product, size_t batch)
      : in(&ops), in_gradient(&ops), out(&ops), weights(&ops), weight_gradient(&ops) {
    const auto fill = [&ops](DeviceArray& array, size_t floats, float value) {
      ops.Upload(std::vector<float>(floats, value), array.Reserve(floats));
    };
    fill(in, batch * RowStride(product.inputs), 0.5f);
    fill(in_gradient, batch * RowStride(product.inputs), 0.0f);
    fill(out, batch * RowStride(product.units), 0.25f);
    fill(weights, size_t{product.inputs} * product.units, 0.01f);
    fill(weight_gradient, size_t{product.inputs} * product.units, 0.0f);
  }
  DeviceArray in, in_gradient, out, weights, weight_gradient;
};

ModelProducts::~ModelProducts() = default;

Result<std::unique_ptr<ModelProducts>> ModelProducts::Make(const std::string& device, int threads,
                                                           const std::vector<Product>& products,
                                                           size_t batch, Bf16Products bf16,
                                                           Precision on_gpu) {
  std::unique_ptr<ModelProducts> made(new ModelProducts());
  made->batch_ = batch;
  made->products_ = products;
  made->executor_ = NewTbbExecutor(threads);
  if (device == "cuda") {
    HDPS_ASSIGN_OR_RETURN(made->ops_, NewCudaOps({.precision = on_gpu}));
  } else {
    made->ops_ = NewCpuOps(*made->executor_, bf16);
  }
  for (const Product& product : products) {
    made->arrays_.push_back(std::make_unique<Arrays>(*made->ops_, product, batch));
  }
  return made;
}

void ModelProducts::Step() {
  if (ops_->bf16() != nullptr) {
    StepInBf16();
  } else {
    StepInFp32();
  }
  float last = 0;  // Waits for the device.
  ops_->Download(arrays_[0]->weight_gradient.Reserve(1), {&last, 1});
}

// Computes with activations, their gradients and weights as in a model: in bf16, in half of each
// array.
void ModelProducts::StepInBf16() {
  Bf16Ops& bf16 = *ops_->bf16();
  const auto view = [](DeviceArray& array, size_t rows, size_t cols) {
    return array.ReserveBf16Rows(rows, cols);
  };
  for (size_t p = 0; p < products_.size(); ++p) {
    const size_t inputs = products_[p].inputs, units = products_[p].units;
    bf16.Gemm({}, view(arrays_[p]->in, batch_, inputs), view(arrays_[p]->weights, inputs, units),
              {{}, view(arrays_[p]->out, batch_, units)});
  }
  for (size_t p = products_.size(); p-- > 0;) {
    const size_t inputs = products_[p].inputs, units = products_[p].units;
    Bf16DenseBackward layer;
    layer.x = view(arrays_[p]->in, batch_, inputs);
    layer.weights = view(arrays_[p]->weights, inputs, units);
    layer.dy = view(arrays_[p]->out, batch_, units);
    layer.weight_gradient = {arrays_[p]->weight_gradient.Reserve(inputs * units), inputs, units,
                             units};
    layer.dx.bf16 = view(arrays_[p]->in_gradient, batch_, inputs);
    bf16.BackwardOfDense(layer);
  }
}

namespace {

Matrix View(DeviceArray& array, size_t rows, size_t cols, size_t stride) {
  return {array.Reserve(rows * stride), rows, cols, stride};
}

}  // namespace

void ModelProducts::Forward(DenseOps& ops, const std::vector<Product>& products,
                            std::vector<std::unique_ptr<Arrays>>& arrays, size_t batch) {
  for (size_t p = 0; p < products.size(); ++p) {
    const size_t inputs = products[p].inputs, units = products[p].units;
    ops.Gemm({}, View(arrays[p]->in, batch, inputs, RowStride(inputs)),
             View(arrays[p]->weights, inputs, units, units),
             View(arrays[p]->out, batch, units, RowStride(units)));
  }
}

double ModelProducts::ForwardExamplesPerSecond(int batches) {
  struct Own {
    std::unique_ptr<Executor> alone = NewInlineExecutor();
    std::unique_ptr<DenseOps> ops = NewCpuOps(*alone);
    std::vector<std::unique_ptr<Arrays>> arrays;
  };
  std::vector<Own> threads(static_cast<size_t>(executor_->threads()));
  for (Own& own : threads) {
    for (const Product& product : products_) {
      own.arrays.push_back(std::make_unique<Arrays>(*own.ops, product, batch_));
    }
    Forward(*own.ops, products_, own.arrays, batch_);  // Warms up.
  }
  const double seconds = SecondsOf([&] {
    executor_->ParallelFor(threads.size(), [&](size_t t) {
      for (int b = 0; b < batches; ++b) {
        Forward(*threads[t].ops, products_, threads[t].arrays, batch_);
      }
    });
  });
  return static_cast<double>(threads.size()) * batches * static_cast<double>(batch_) / seconds;
}

void ModelProducts::StepInFp32() {
  // Lays out arrays as a model does: activations with a row stride that suits the caches, weights
  // dense.
  const auto activations = [&](DeviceArray& array, size_t cols) {
    return View(array, batch_, cols, RowStride(cols));
  };
  const auto weights = [&](DeviceArray& array, const Product& product) {
    return View(array, product.inputs, product.units, product.units);
  };
  Forward(*ops_, products_, arrays_, batch_);
  for (size_t p = products_.size(); p-- > 0;) {
    const Product& product = products_[p];
    const Matrix gradient = activations(arrays_[p]->out, product.units);
    ops_->Gemm({.transpose_a = true}, activations(arrays_[p]->in, product.inputs), gradient,
               weights(arrays_[p]->weight_gradient, product));
    ops_->Gemm({.transpose_b = true}, gradient, weights(arrays_[p]->weights, product),
               activations(arrays_[p]->in_gradient, product.inputs));
  }
}

double ModelProducts::ExamplesPerSecond(int steps) {
  Step();  // Warms up.
  const double seconds = SecondsOf([&] {
    for (int step = 0; step < steps; ++step) Step();
  });
  return steps * static_cast<double>(batch_) / seconds;
}

}  // namespace hdps
