// Runs a layer on host copies of the graph's places, with their values and gradients.
#include "worker/model/host_layer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {
namespace {

// Invariant: between two calls the copies equal the values of the pass on the device.
class HostLayer : public Layer {
 public:
  HostLayer(const LayerSite& site, DenseOps& host)
      : place_(site.place), host_(host), packed_(&site.ops) {
    for (const Place& place : site.places) {
      Place& copy = places_.emplace_back(place);
      copy.value_home = copy.gradient_home = -1;  // Each place has memory of its own here.
    }
    for (const DenseTensor& tensor : site.tensors) {
      runs_.push_back({tensor.first_chunk * kDenseChunkFloats, tensor.size()});
      floats_ = std::max(floats_, runs_.back().begin + runs_.back().size);
    }
    for (size_t i = 0; i < inputs().size() + 1; ++i) {
      values_.push_back(std::make_unique<DeviceArray>(&host));
      gradients_.push_back(std::make_unique<DeviceArray>(&host));
    }
    inner_ = NewLayer({site.job, site.spec, site.place, places_, host, site.tensors});
  }

  bool has_exchange() const {
    const auto* const exchange = dynamic_cast<const ExchangeLayer*>(inner_.get());
    return exchange != nullptr && exchange->has_exchange();
  }

  void Bring(Pass& pass) override {
    host_pass_.emplace(Pass{host_, pass.batch, pass.sources, places_, pass.tables});
    host_pass_->training = pass.training;
    for (size_t i = 0; i < inputs().size(); ++i) {
      LayMatrices(pass.places[inputs()[i]], i, &places_[inputs()[i]]);
    }
    LayMatrices(pass.places[place_], inputs().size(), &places_[place_]);
    inner_->Bring(*host_pass_);
  }

  void Forward(Pass& pass) override {
    for (const uint32_t i : inputs()) FetchLater(pass, pass.places[i].value, places_[i].value);
    dense_.resize(floats_);
    for (const Run& run : runs_) {
      pass.ops.FetchLater(pass.dense + run.begin, std::span(dense_).subspan(run.begin, run.size));
    }
    pass.ops.Fetch();
    host_pass_->dense = dense_.data();
    inner_->Forward(*host_pass_);
    pass.ops.UploadRows(Whole(places_[place_].value), pass.places[place_].value);
  }

  void Backward(Pass& pass) override {
    Place& self = places_[place_];
    FetchLater(pass, pass.places[place_].gradient, self.gradient);
    pass.ops.Fetch();
    self.gradient_masked = pass.places[place_].gradient_masked;
    dense_gradients_.resize(floats_);
    host_pass_->dense_gradients = dense_gradients_.data();
    for (const uint32_t i : inputs())
      places_[i].gradient_begun = places_[i].gradient_masked = false;
    inner_->Backward(*host_pass_);
    for (const Run& run : runs_) {
      pass.ops.Upload(std::span(dense_gradients_).subspan(run.begin, run.size),
                      pass.dense_gradients + run.begin);
    }
    for (size_t n = 0; n < inputs().size(); ++n) GiveGradient(pass, n);
  }

 private:
  struct Run {
    size_t begin = 0, size = 0;
  };

  const std::vector<uint32_t>& inputs() const { return places_[place_].inputs; }
  static std::span<float> Whole(const Matrix& m) { return {m.data, m.rows * m.cols}; }

  // Lays matrices without gaps between rows, as they travel.
  void LayMatrices(const Place& on_device, size_t n, Place* place) {
    const size_t rows = on_device.value.rows, cols = place->width;
    place->value = {values_[n]->Reserve(rows * cols), rows, cols, cols};
    if (place->learns) place->gradient = {gradients_[n]->Reserve(rows * cols), rows, cols, cols};
  }

  // Fetches a matrix from the device; if its rows have gaps, it is packed there first.
  void FetchLater(Pass& pass, const Matrix& from, const Matrix& to) {
    if (from.stride == from.cols || from.rows <= 1) {
      return pass.ops.FetchLater(from.data, Whole(to));
    }
    const Matrix packed{packed_.Reserve(Whole(to).size()), from.rows, from.cols, from.cols};
    pass.ops.Copy(Write::kOver, from, packed);
    pass.ops.Download(packed.data, Whole(to));
  }

  // Uploads the gradient of the n-th input, unless an earlier input is the same place.
  void GiveGradient(Pass& pass, size_t n) {
    const uint32_t input = inputs()[n];
    const Place& copy = places_[input];
    const bool again = std::find(inputs().begin(), inputs().begin() + static_cast<ptrdiff_t>(n),
                                 input) != inputs().begin() + static_cast<ptrdiff_t>(n);
    if (again || !copy.learns || !copy.gradient_begun) return;
    Place& to = pass.places[input];
    const Matrix brought{packed_.Reserve(Whole(copy.gradient).size()), copy.gradient.rows,
                         copy.gradient.cols, copy.gradient.cols};
    pass.ops.Upload(Whole(copy.gradient), brought.data);
    pass.ops.Copy(to.NextGradient(), brought, to.gradient);
    to.gradient_masked = copy.gradient_masked;
  }

  const uint32_t place_;
  DenseOps& host_;
  std::vector<Place> places_;  // Copies of the graph's places.
  std::vector<Run> runs_;      // Ranges of its tensors in the flat array.
  size_t floats_ = 0;          // Length of the flat array up to the last of them.
  std::unique_ptr<Layer> inner_;
  // [inputs + 1]: of the inputs, and last of the layer itself.
  std::vector<std::unique_ptr<DeviceArray>> values_, gradients_;
  std::vector<float> dense_, dense_gradients_;
  DeviceArray packed_;  // On the device.
  std::optional<Pass> host_pass_;
};

}  // namespace

bool ComputedOnHost(const Job& job, const DenseOps& ops, size_t place) {
  return !ops.on_host() && job.model.layers[place].device == "cpu";
}

Result<std::vector<bool>> TablesOnHost(const Job& job, const DenseOps& ops) {
  std::vector<bool> on_host(job.tables.size(), false);
  for (size_t t = 0; t < job.tables.size(); ++t) {
    const TableSpec& table = job.tables[t];
    const std::string* by_device = nullptr;
    const std::string* by_host = nullptr;
    for (size_t p = 0; p < job.model.layers.size(); ++p) {
      if (table.dense || job.model.layers[p].table != table.name) continue;
      (ComputedOnHost(job, ops, p) ? by_host : by_device) = &job.model.layers[p].name;
    }
    on_host[t] = by_host != nullptr;
    if (by_host == nullptr) continue;
    const std::string where = "model.layers: \"" + *by_host + "\": device cpu: ";
    if (by_device != nullptr) {
      return Status(Code::kInvalidArgument, where + "its table \"" + table.name +
                                                "\" is also read by \"" + *by_device +
                                                "\" on the GPU; give both the same device");
    }
    if (table.vocab_cache_size > 0) {
      return Status(Code::kInvalidArgument,
                    where + "its table \"" + table.name +
                        "\" keeps rows on the GPU (vocab_cache_size); leave one of both out");
    }
  }
  return on_host;
}

Result<std::unique_ptr<Layer>> NewHostLayer(const LayerSite& site, DenseOps& host) {
  auto layer = std::make_unique<HostLayer>(site, host);
  if (layer->has_exchange()) {
    return Status(Code::kInvalidArgument,
                  "model.layers: \"" + site.spec.name +
                      "\": device cpu: all workers meet within this layer, which is possible "
                      "where the model is; leave device out");
  }
  return std::unique_ptr<Layer>(std::move(layer));
}

}  // namespace hdps
