// A layer that this program adds: y = gain * |x|^power, a column its own gain. Trained from a job
// file that names it, on one process with servers and workers inside.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <variant>

#include "common/job/job.h"
#include "common/job/job_registry.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/command_line.h"
#include "tools/local_cluster.h"
#include "worker/model/layer.h"

namespace {

// What one step computes, in plain loops on the host. `x` and `y` have shape [examples, width].
class PowersLayer : public hdps::Layer {
 public:
  explicit PowersLayer(const hdps::LayerSite& site)
      : place_(site.place),
        power_(static_cast<float>(site.Number("power"))),
        gain_(site.TensorAt(0)) {}

  void Forward(hdps::Pass& pass) override {
    const hdps::Place& self = pass.places[place_];
    const hdps::Matrix x = pass.places[self.inputs[0]].value;
    for (size_t r = 0; r < x.rows; ++r) {
      for (size_t j = 0; j < x.cols; ++j) {
        self.value.Row(r)[j] = pass.dense[gain_ + j] * std::pow(std::abs(x.Row(r)[j]), power_);
      }
    }
  }

  // dL/dgain_j = sum_r dy_rj |x_rj|^p; dL/dx_rj = dy_rj gain_j p |x_rj|^(p-1) sign(x_rj).
  void Backward(hdps::Pass& pass) override {
    const hdps::Place& self = pass.places[place_];
    hdps::Place& input = pass.places[self.inputs[0]];
    const hdps::Matrix x = input.value, dy = self.gradient;
    float* const gain_gradient = pass.dense_gradients + gain_;
    std::fill_n(gain_gradient, x.cols, 0.0f);
    for (size_t r = 0; r < x.rows; ++r) {
      for (size_t j = 0; j < x.cols; ++j) {
        gain_gradient[j] += dy.Row(r)[j] * std::pow(std::abs(x.Row(r)[j]), power_);
      }
    }
    if (!input.learns) return;  // Numbers of the data: nobody wants their gradient.
    // The first reader of a layer writes its gradient, the others add to it.
    const bool add = input.NextGradient() == hdps::Write::kAdd;
    for (size_t r = 0; r < x.rows; ++r) {
      for (size_t j = 0; j < x.cols; ++j) {
        const float slope = pass.dense[gain_ + j] * power_ *
                            std::pow(std::abs(x.Row(r)[j]), power_ - 1) *
                            (x.Row(r)[j] < 0 ? -1.0f : 1.0f);
        float& dx = input.gradient.Row(r)[j];
        dx = (add ? dx : 0.0f) + dy.Row(r)[j] * slope;
      }
    }
  }

 private:
  uint32_t place_;
  float power_;
  size_t gain_;  // First float of the tensor among all dense parameters.
};

// What the layer is: its word and settings in job files, its width, and what it learns.
hdps::LayerRecord Powers() {
  hdps::LayerRecord record;
  record.kind = "powers";
  record.gives = "the size of x to a power, times a gain";
  record.numbers = {{"power", 1, 8, 2, "What the size of x is raised to."}};
  record.measure = [](const hdps::LayerQuestion& question)
      -> std::variant<hdps::LayerShape, hdps::LayerProblem> {
    hdps::LayerShape shape;
    shape.width = question.inputs[0].shape.width;
    shape.learns = true;
    shape.tensors = {{"gain", {shape.width}, {hdps::InitKind::kConstant, 1.0f}}};
    return shape;
  };
  record.make = [](const hdps::LayerSite& site) -> std::unique_ptr<hdps::Layer> {
    return std::make_unique<PowersLayer>(site);
  };
  return record;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: own_layer JOB OUT\n";
    return 2;
  }
  hdps::JobRegistry registry = hdps::BuiltInRegistry();
  const hdps::Status added = registry.layers.Add(Powers());
  if (!hdps::StartLogging("own_layer", "", "warning").ok()) return 3;  // Onto the terminal.
  const std::unique_ptr<hdps::FileSystem> files = hdps::NewPosixFileSystem();
  const std::unique_ptr<hdps::MonotonicClock> clock = hdps::NewSystemClock();
  hdps::Result<hdps::Job> job =
      hdps::LoadJob(*files, argv[1], {}, hdps::DataFiles::kMustExist, registry);
  if (!added.ok() || !job.ok()) {
    std::cerr << "own_layer: error: " << (added.ok() ? job.status() : added).message() << "\n";
    return 2;
  }
  hdps::LocalClusterOptions options;
  options.job = std::make_shared<const hdps::Job>(*std::move(job));
  options.out = argv[2];
  options.num_workers = 2;
  const hdps::Result<hdps::ProcessEnd> end = hdps::RunLocalCluster(options, *files, *clock);
  if (!end.ok() || end->status != 0) {
    std::cerr << "own_layer: error: " << (end.ok() ? end->reason : end.status().message()) << "\n";
    return 3;
  }
  std::cout << "trained with a layer of its own: " << argv[2] << "/summary.json\n";
  return 0;
}
