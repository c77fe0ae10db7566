// Makes one PushRequest a server, with its gradients gathered or written in place.
#include "worker/exchange/push_plan.h"

#include <glog/logging.h>

#include <cmath>
#include <utility>

#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "kernels/host/half_scale.h"
#include "worker/exchange/row_moves.h"

namespace hdps {
namespace {

// Gathers values from the caller's order into one section in `server`'s wire order, rounded to
// `format` after a product with 2^exponent. Skips tables with a place in `places`, whose values are
// in the section already.
void GatherValues(const KeySplit& split, ServerId server,
                  std::span<const std::span<const float>> values, DType format, int exponent,
                  std::span<const RowSpans<float>> places, std::byte* to) {
  CHECK_EQ(values.size(), split.num_tables());
  const ServerKeys& its = split.at(server);
  for (size_t t = 0; t < its.tables.size(); ++t) {
    const uint32_t input = its.input[t];
    const size_t floats = its.tables[t].row_floats;
    if (places.empty() || places[input].empty()) {
      CHECK_EQ(values[input].size(), split.KeysOfInput(input) * floats);
      GatherRows(split.movers(), {format, floats, std::ldexp(1.0f, exponent)},
                 split.PositionsAt(server, input), values[input].data(), to);
    }
    to += its.tables[t].num_keys * floats * FloatBytes(format);
  }
}

// Returns the largest magnitude of the values at the split's keys.
float LargestOf(const KeySplit& split, std::span<const std::span<const float>> values) {
  float largest = 0;
  for (uint32_t s = 0; s < split.num_servers(); ++s) {
    const ServerKeys& its = split.at({s});
    for (size_t t = 0; t < its.tables.size(); ++t) {
      const size_t floats = its.tables[t].row_floats;
      for (const uint32_t position : split.PositionsAt({s}, its.input[t])) {
        const float of_row =
            LargestMagnitude(values[its.input[t]].subspan(position * floats, floats));
        if (!(of_row <= largest)) largest = of_row;  // NaN stays.
      }
    }
  }
  return largest;
}

}  // namespace

PushPlan::PushPlan(const KeySplit& split, MakeBytes make)
    : split_(&split), make_(std::move(make)) {}

PushPlan::Section PushPlan::MakeSection(ServerId server, DType format) const {
  const size_t size = split_->at(server).num_floats * FloatBytes(format);
  Section section;
  section.buffer = make_ ? make_(server, size, &section.bytes)  //
                         : Buffer::Allocate(size, &section.bytes);
  return section;
}

void PushPlan::Open() {
  CHECK(sections_.empty());
  places_.resize(split_->num_tables());
  for (uint32_t s = 0; s < split_->num_servers(); ++s) {
    const ServerKeys& its = split_->at({s});
    sections_.push_back(MakeSection({s}, DType::kFp32));
    auto* place = reinterpret_cast<float*>(sections_.back().bytes.data());
    for (size_t t = 0; t < its.tables.size(); ++t) {
      const size_t floats = size_t{its.tables[t].num_keys} * its.tables[t].row_floats;
      if (split_->IsContiguous(its.input[t])) places_[its.input[t]].Append({place, floats});
      place += floats;
    }
  }
}

std::vector<ServerRequest> PushPlan::Requests(const PushTerms& terms,
                                              std::span<const std::span<const float>> gradients) {
  const bool open = !sections_.empty();
  CHECK(!open || terms.format == DType::kFp32);
  // One scale for all servers, so that their number changes no bit.
  const bool scaled = terms.format == DType::kFp16 && terms.loss_scale != 1;
  const int exponent =
      scaled ? ScaleExponent(LargestOf(*split_, gradients), terms.loss_scale, 1) : 0;
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < split_->num_servers(); ++s) {
    Section section = open ? std::move(sections_[s]) : MakeSection({s}, terms.format);
    GatherValues(*split_, {s}, gradients, terms.format, exponent, places_, section.bytes.data());
    requests.push_back(RequestTo({s}, terms, exponent, std::move(section.buffer)));
  }
  return requests;
}

ServerRequest PushPlan::RequestTo(ServerId server, const PushTerms& terms, int exponent,
                                  Buffer gradients) const {
  const ServerKeys& its = split_->at(server);
  const bool named = terms.list != 0 && !its.tables.empty();
  PushRequest push;
  push.sequence = terms.sequence;
  push.clock = terms.clock;
  push.num_examples = terms.num_examples;
  push.list = named ? terms.list : 0;
  push.format = terms.format;
  push.rate = terms.rate;
  push.epoch = terms.epoch;
  push.part = terms.part;
  push.steps_before = terms.steps_before;
  push.scale_exponent = exponent;
  push.rows_mark = split_->marks(server).rows;
  push.dense_mark = split_->marks(server).dense;
  push.counts = terms.counts;
  push.messages = terms.messages;
  push.gradients = std::move(gradients);
  ServerRequest request = {server, Frame(), {}, terms.clock};
  if (named) request.frame = EncodeMessage(push);
  push.tables = its.tables;
  push.keys = its.keys;
  (named ? request.whole.emplace() : request.frame) = EncodeMessage(push);
  return request;
}

std::vector<ServerRequest> StoreRequests(const KeySplit& split, Sequence sequence, Clock clock,
                                         std::span<const std::span<const float>> rows) {
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < split.num_servers(); ++s) {
    const ServerKeys& its = split.at({s});
    if (its.tables.empty()) continue;
    StoreRequest store;
    store.tables = its.tables;
    store.keys = its.keys;
    std::span<std::byte> section;
    store.rows = Buffer::Allocate(its.num_floats * sizeof(float), &section);
    GatherValues(split, {s}, rows, DType::kFp32, 0, {}, section.data());
    store.sequence = sequence;
    store.clock = clock;
    requests.push_back({ServerId{s}, EncodeMessage(store)});
  }
  return requests;
}

std::vector<ServerRequest> AdvanceRequests(uint32_t num_servers, Clock clock,
                                           const SquareSum& squares) {
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < num_servers; ++s) {
    requests.push_back({ServerId{s}, EncodeMessage(AdvanceRequest{clock, squares})});
  }
  return requests;
}

std::vector<ServerRequest> SquaresRequests(uint32_t num_servers, Clock clock) {
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < num_servers; ++s) {
    requests.push_back({ServerId{s}, EncodeMessage(SquaresRequest{clock})});
  }
  return requests;
}

}  // namespace hdps
