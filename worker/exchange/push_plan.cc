// Makes one PushRequest a server, with its gradients gathered or written in place.
#include "worker/exchange/push_plan.h"

#include <glog/logging.h>

#include <utility>

#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "worker/exchange/row_moves.h"

namespace hdps {
namespace {

// Gathers values from the caller's order into one section in `server`'s wire order, rounded to
// `format`. Skips tables with a place in `places`, whose values are in the section already.
void GatherValues(const KeySplit& split, ServerId server,
                  std::span<const std::span<const float>> values, DType format,
                  std::span<const RowSpans<float>> places, std::byte* to) {
  CHECK_EQ(values.size(), split.num_tables());
  const ServerKeys& its = split.at(server);
  for (size_t t = 0; t < its.tables.size(); ++t) {
    const uint32_t input = its.input[t];
    const size_t floats = its.tables[t].row_floats;
    if (places.empty() || places[input].empty()) {
      CHECK_EQ(values[input].size(), split.KeysOfInput(input) * floats);
      GatherRows(split.movers(), {format, floats}, split.PositionsAt(server, input),
                 values[input].data(), to);
    }
    to += its.tables[t].num_keys * floats * FloatBytes(format);
  }
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
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < split_->num_servers(); ++s) {
    Section section = open ? std::move(sections_[s]) : MakeSection({s}, terms.format);
    GatherValues(*split_, {s}, gradients, terms.format, places_, section.bytes.data());
    requests.push_back(RequestTo({s}, terms, std::move(section.buffer)));
  }
  return requests;
}

ServerRequest PushPlan::RequestTo(ServerId server, const PushTerms& terms, Buffer gradients) const {
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
  push.gradients = std::move(gradients);
  ServerRequest request = {server, Frame()};
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
    GatherValues(split, {s}, rows, DType::kFp32, {}, section.data());
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
