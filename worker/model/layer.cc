// Makes layers by their kind, and has code that layers share.
#include "worker/model/layer.h"

#include <glog/logging.h>

#include <string_view>

#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {
namespace {

using Maker = std::unique_ptr<Layer> (*)(const LayerSite&);

Maker BuiltInMaker(std::string_view kind) {
#define HDPS_LAYER(file, name) \
  if (kind == #file) return New##name;
#include "common/job/layers/layer_list.def"
#undef HDPS_LAYER
  return nullptr;
}

}  // namespace

void ExchangeLayer::Forward(Pass& pass) {
  BeginForward(pass);
  CHECK(EndForward(pass).ok()) << "it has nothing to exchange";
}

void ExchangeLayer::Backward(Pass& pass) {
  BeginBackward(pass);
  CHECK(EndBackward(pass).ok()) << "it has nothing to exchange";
}

void CollectBags(const Pass& pass, uint32_t table, const std::vector<uint32_t>& features,
                 std::vector<Bags>* bags) {
  bags->clear();
  for (const uint32_t f : features) {
    const SparseColumn& column = pass.sources.sparse[f];
    bags->push_back({column.offsets, pass.tables[table].keys->row_index[f], column.weights});
  }
}

size_t LayerSite::TensorAt(size_t i) const { return tensors[i].first_chunk * kDenseChunkFloats; }

double LayerSite::Number(const std::string& name) const {
  for (const LayerNumber& number : RegistryOf(job.model).layers.Find(spec.kind)->numbers) {
    if (number.name == name) return NumberOf(spec, number);
  }
  LOG(FATAL) << "layers of kind " << spec.kind << " have no setting " << name;
}

const std::string& LayerSite::Word(const std::string& name) const {
  for (const LayerWord& word : RegistryOf(job.model).layers.Find(spec.kind)->words) {
    if (word.name == name) return WordOf(spec, word);
  }
  LOG(FATAL) << "layers of kind " << spec.kind << " have no choice " << name;
}

std::unique_ptr<Layer> NewLayer(const LayerSite& site) {
  const LayerRecord& record = *RegistryOf(site.job.model).layers.Find(site.spec.kind);
  if (record.make) return record.make(site);
  const Maker maker = BuiltInMaker(record.kind);
  CHECK(maker != nullptr) << "layers of kind " << record.kind << " have no maker";
  return maker(site);
}

}  // namespace hdps
